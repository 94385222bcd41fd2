"""docs/agents.md: its tables are the code's own, and what it says to copy works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aftersend_mcp import tools
from pytest_django.live_server_helper import LiveServer

from refunds.api.mcp import PATH
from refunds.models import Operation
from tests import build
from tests.agents.documentation import FILE, PARTS, written
from tests.cast import Cast
from tests.flows.door import Door

TEXT = FILE.read_text()
TRY_IT = """
import json, sys
import refund_tool

asked = dict(
    session_id="chat-8812", tool_call_id="call_17", order_ref="4821", amount="79.00",
    currency="USD", reason_code="damaged_item", reason_text="arrived broken", customer_ref="cus_204",
)
first = refund_tool.propose_refund(**asked)
again = refund_tool.propose_refund(**asked)
other = refund_tool.propose_refund(**asked | {"tool_call_id": "call_18"})
wrong = refund_tool.propose_refund(**asked | {"tool_call_id": "call_19", "amount": 79.0})
status = refund_tool.get_refund("chat-8812", first["operation_id"])
print(json.dumps([first, again, other, wrong, status]))
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_generated_parts_are_what_the_code_says() -> None:
    assert written(TEXT) == TEXT, "write them anew: python -m tests.agents.documentation"
    for part in PARTS:
        assert f"<!-- generated: {part} -->" in TEXT


def test_every_tool_is_named() -> None:
    for tool in tools.TOOLS:
        assert f"`{tool.name}`" in TEXT


@pytest.mark.django_db(transaction=True)
def test_the_tool_in_python_works_as_it_stands(
    cast: Cast, live_server: LiveServer, tmp_path: Path
) -> None:
    build.order()
    [code] = blocks("python")
    name, code = code.split("\n", 1)
    (tmp_path / name.removeprefix("# ")).write_text(code)
    first, again, other, wrong, status = _run(tmp_path, live_server.url, Door(cast.echo).key)
    [operation] = Operation.objects.all()
    assert operation.amount_minor == 7900
    assert {told["operation_id"] for told in (first, again, other, status)} == {str(operation.pk)}
    assert (first["outcome"], other["outcome"]) == ("awaiting_approval", "conflict")
    assert first["say"]
    assert wrong["code"] == "amount_format"


@pytest.mark.django_db(transaction=True)
def test_the_tool_in_python_never_says_failed_when_no_answer_comes(tmp_path: Path) -> None:
    [code] = blocks("python")
    (tmp_path / "refund_tool.py").write_text(code.replace("(1, 4, 0)", "(0, 0, 0)"))
    program = TRY_IT.partition("again =")[0] + "print(json.dumps([first]))"
    [told] = _run(tmp_path, "http://127.0.0.1:9", "as_key", program)
    assert (told["outcome"], told["do_not_repeat"]) == ("not_known", True)
    assert "fail" not in told["say"]


def _run(folder: Path, address: str, key: str, program: str = TRY_IT) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"AFTERSEND_URL": address, "AFTERSEND_TOKEN": key, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def test_the_configurations_name_what_exists() -> None:
    over_http, over_stdio = (json.loads(each)["mcpServers"]["aftersend"] for each in blocks("json"))
    assert over_http["url"].endswith(PATH)
    assert over_http["headers"]["Authorization"].startswith("Bearer as_")
    assert (Path(sys.executable).parent / over_stdio["command"]).exists()
    read = (Path(tools.__file__).parent / "stdio.py").read_text()
    assert all(f'"{name}"' in read for name in over_stdio["env"])
