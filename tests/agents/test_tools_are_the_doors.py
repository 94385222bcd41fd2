"""What the tools declare is what the doors take and give, and it needs nothing of the server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from aftersend_mcp import tools, words

from refunds.api import codes
from refunds.api.answers import Result
from refunds.api.mcp_calls import OrderIn, StatusIn, WithdrawnIn
from refunds.api.mcp_outputs import FILE, output_schemas
from refunds.api.schemas import ProposalIn, Strict
from refunds.proposal import REASON_CODES
from refunds.queries import results
from tests.provider_process import ROOT

BY_NAME = {tool.name: tool for tool in tools.TOOLS}
READ_AS: dict[str, type[Strict]] = {
    "propose_refund": ProposalIn,
    "get_refund_status": StatusIn,
    "list_order_refunds": OrderIn,
    "withdraw_refund": WithdrawnIn,
}
PROJECT = ROOT / "refunds/mcp_client/pyproject.toml"
# Over MCP a call may go without ids; the door finds it some.
OPTIONAL = {"session_id", "tool_call_id"}


@pytest.mark.parametrize("name", READ_AS)
def test_a_tool_takes_the_arguments_that_the_door_reads(name: str) -> None:
    declared, read = BY_NAME[name].input_schema, READ_AS[name].model_json_schema()
    assert declared["additionalProperties"] is False
    assert declared["properties"].keys() == read["properties"].keys()
    assert set(declared["required"]) == set(read["required"]) - OPTIONAL


@pytest.mark.parametrize("name", READ_AS)
def test_a_tool_names_the_types_and_bounds_that_the_door_has(name: str) -> None:
    read = READ_AS[name].model_json_schema()
    for field, declared in BY_NAME[name].input_schema["properties"].items():
        theirs = _plain(read["properties"][field], read)
        assert declared["type"] == theirs["type"], field
        for bound in ("minimum", "maximum", "default", "format", "maxItems", "maxProperties"):
            if bound in theirs and theirs[bound] is not None:
                assert declared.get(bound) == theirs[bound], (field, bound)


def _plain(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Without "or null", and with what it points at."""
    [first] = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    if "$ref" in first:
        first = whole["$defs"][first["$ref"].rpartition("/")[2]]
    return {**first, "default": schema.get("default") or None}


def test_the_reason_codes_are_those_of_the_policy() -> None:
    declared = BY_NAME["propose_refund"].input_schema["properties"]["reason_code"]["enum"]
    assert tuple(declared) == REASON_CODES


def test_the_outputs_are_written_from_the_models_of_the_rest_door() -> None:
    assert json.loads(FILE.read_text()) == output_schemas(), (
        "write them anew: python -m refunds.api.mcp_outputs"
    )


def test_hosts_are_told_the_truth_about_the_tools() -> None:
    hints = {name: tool.annotations for name, tool in BY_NAME.items()}
    assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == {
        "get_refund_status",
        "list_order_refunds",
    }
    proposes = hints["propose_refund"]
    assert proposes is not None
    assert (proposes.idempotent_hint, proposes.open_world_hint) == (False, True)


def test_the_words_for_a_model_say_what_unknown_means() -> None:
    for name in ("propose_refund", "get_refund_status"):
        words = " ".join((BY_NAME[name].description or "").split())
        assert "may or may not have moved" in words.lower()
        assert "do not propose" in words.lower()
        assert "`say`" in words


def test_every_advice_is_one_line_that_a_model_reads() -> None:
    advised = results.NEXT_ACTIONS | results.ERROR_ACTIONS | codes.STDIO_ACTIONS
    assert words.NEXT_ACTIONS.keys() == advised.keys()
    for name in ("propose_refund", "get_refund_status"):
        read = BY_NAME[name].description or ""
        for action, asks in words.NEXT_ACTIONS.items():
            assert f"\n- {action}: {asks}" in read


def test_every_outcome_is_explained_before_anything_is_proposed() -> None:
    outcomes = Result.model_json_schema()["properties"]["outcome"]["enum"]
    for outcome in [*outcomes, "conflict"]:
        assert re.search(rf"\b{outcome}\b", words.PROPOSE), outcome


def test_a_model_is_told_to_end_its_turn_and_what_was_not_recorded() -> None:
    said = " ".join(words.PROPOSE.split())
    assert "You cannot wait" in said
    assert "end your turn" in said
    assert "tool_call_reused and request_ref_reused your refund was NOT recorded" in said
    assert "already_done: nothing new recorded" in said
    assert "Read `state`" in said


def test_no_words_promise_that_a_person_approves() -> None:
    for said in (words.INSTRUCTIONS, *(tool.description or "" for tool in tools.TOOLS)):
        assert "person approves" not in said


def test_the_words_are_short_enough_for_hosts_that_cut_them_off() -> None:
    for said in (words.INSTRUCTIONS, *(tool.description or "" for tool in tools.TOOLS)):
        assert len(said) <= 2_000


def test_both_ways_call_themselves_by_one_version() -> None:
    [declared] = [line for line in (PROJECT.read_text()).splitlines() if line.startswith("version")]
    assert declared == f'version = "{tools.VERSION}"'


def test_an_agents_machine_needs_no_django() -> None:
    program = (
        "import sys, aftersend_mcp.stdio;"
        "found = {name.partition('.')[0] for name in sys.modules};"
        "print(sorted(found & {'django', 'config', 'refunds', 'psycopg', 'celery', 'ninja'}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/"
    )
    assert ran.stdout.strip() == "[]"
