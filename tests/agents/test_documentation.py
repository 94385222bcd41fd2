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

from refunds.api import codes
from refunds.api.mcp import PATH
from refunds.models import Operation
from refunds.queries import results
from tests import build
from tests.agents.documentation import FILE, PARTS, written
from tests.agents.scripted_rest import LOST, scripted
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


CALL_ONCE = TRY_IT.partition("again =")[0] + "print(json.dumps([first]))"
ASK_ONCE = (
    "import json, refund_tool;"
    "print(json.dumps([refund_tool.get_refund('chat-8812', '0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a')]))"
)
IDS = {"session_id": "chat-8812", "tool_call_id": "call_17"}


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """The folder of the tool as it is written down, but without pauses."""
    [code] = blocks("python")
    hurried = code.replace("PAUSES_SECONDS = (1, 4)", "PAUSES_SECONDS = (0, 0)")
    assert hurried != code
    (tmp_path / "refund_tool.py").write_text(hurried)
    return tmp_path


@pytest.mark.parametrize("program", [CALL_ONCE, ASK_ONCE])
def test_the_tool_in_python_says_not_sent_when_no_try_has_left(tool: Path, program: str) -> None:
    [told] = _run(tool, "http://127.0.0.1:9", "as_key", program)
    assert (told["outcome"], told["next_action"]) == ("not_sent", "repeat_later")
    assert "could not be passed on" in told["say"]


def test_the_tool_in_python_never_says_failed_when_no_answer_comes(tool: Path) -> None:
    with scripted() as rest:
        rest.answers += [LOST, (502, b"<html>Bad gateway</html>"), LOST]
        [told] = _run(tool, rest.address, "as_key", CALL_ONCE)
        assert rest.ids() == [tuple(IDS.values())] * 3
    assert told["outcome"] == "not_known"
    assert told.items() >= IDS.items()
    assert "Repeat this very call later" in told["what_to_do"]
    assert "fail" not in told["say"]


def test_the_tool_in_python_asks_for_a_status_as_patiently(tool: Path) -> None:
    with scripted() as rest:
        rest.answers += [LOST, (503, b"no JSON")]
        rest.then(200, {"outcome": "succeeded"})
        [told] = _run(tool, rest.address + "/", "as_key", ASK_ONCE)
        assert {path for _, path, _ in rest.received} == {
            "/api/v1/refunds/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a?session_id=chat-8812"
        }
    assert told == {"outcome": "succeeded"}


def test_the_tool_in_python_repeats_no_earlier_than_it_is_told(tool: Path) -> None:
    problem = {"code": "rate_limited", "next_action": "repeat_later", "retry_after_seconds": 60}
    with scripted() as rest:
        rest.retry_after = "60"
        rest.then(429, problem)
        [told] = _run(tool, rest.address, "as_key", CALL_ONCE)
        assert len(rest.received) == 1
    assert told.items() >= (problem | IDS).items()
    assert told["say"]


def test_the_tool_in_python_repeats_what_may_be_repeated_at_once(tool: Path) -> None:
    with scripted() as rest:
        rest.retry_after = "0"
        rest.then(503, {"code": "database_unavailable"})
        rest.then(201, {"outcome": "awaiting_approval"})
        [told] = _run(tool, rest.address, "as_key", CALL_ONCE)
        assert rest.ids() == [tuple(IDS.values())] * 2
    assert told == {"outcome": "awaiting_approval"}


def test_every_code_and_every_advice_is_written_down() -> None:
    for code in codes.CODES:
        assert f"| `{code}` |" in TEXT
    for action in (*results.NEXT_ACTIONS, *results.ERROR_ACTIONS, *codes.STDIO_ACTIONS):
        assert f"| `{action}` |" in TEXT


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
