"""The documentation: complete, served by ourselves, under the strict policy of every page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from refunds.proposal import REASON_CODES
from refunds.queries import results

pytestmark = pytest.mark.django_db


@pytest.fixture
def schema(client: Client) -> dict[str, Any]:
    response = client.get("/api/v1/openapi.json")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_every_address_is_described_with_its_problems(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    described = {(method, path) for path, methods in schema["paths"].items() for method in methods}
    assert described == {
        ("post", "/api/v1/refunds"),
        ("get", "/api/v1/refunds"),
        ("get", "/api/v1/refunds/{operation_id}"),
        ("post", "/api/v1/refunds/{operation_id}/withdraw"),
        ("get", "/api/v1/orders/{order_ref}/refunds"),
        ("put", "/api/v1/orders/{order_ref}"),
        ("post", "/api/v1/orders:batch"),
    }
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert operation["security"] == [{"Bearer": []}]
            for status in ("400", "401", "403", "404", "422", "429", "503"):
                assert list(operation["responses"][status]["content"]) == [
                    "application/problem+json"
                ]


def test_only_a_call_with_a_body_can_be_refused_for_its_body(schema: dict[str, Any]) -> None:
    of_bodies = {"409", "413", "415"}
    for methods in schema["paths"].values():
        for method, operation in methods.items():
            told = operation["responses"].keys() & of_bodies
            assert told == (set() if method == "get" else of_bodies), operation["operationId"]


def test_a_conflict_has_a_shape_of_its_own_with_the_refund_that_it_met(
    schema: dict[str, Any],
) -> None:
    shapes = schema["components"]["schemas"]
    for path in ("/api/v1/refunds", "/api/v1/refunds/{operation_id}/withdraw"):
        content = schema["paths"][path]["post"]["responses"]["409"]["content"]
        assert content["application/problem+json"]["schema"]["$ref"].endswith("/Conflict")
    conflict, result = (shapes[name]["properties"].keys() for name in ("Conflict", "Result"))
    assert conflict >= result | shapes["Problem"]["properties"].keys()
    assert set(shapes["Conflict"]["required"]) == set(shapes["Problem"]["required"])


def test_a_withdrawals_body_may_be_left_out_and_is_never_null(schema: dict[str, Any]) -> None:
    body = schema["paths"]["/api/v1/refunds/{operation_id}/withdraw"]["post"]["requestBody"]
    assert not body.get("required", False)
    assert "null" not in json.dumps(body)
    assert "default" not in body["content"]["application/json"]["schema"], "generators refuse it"


def test_a_proposals_limits_are_described(schema: dict[str, Any]) -> None:
    fields = schema["components"]["schemas"]["ProposalIn"]["properties"]
    first = {name: field.get("anyOf", [field])[0] for name, field in fields.items()}
    assert first["reason_code"]["enum"] == list(REASON_CODES)
    assert (first["amount_minor"]["minimum"], first["amount_minor"]["maximum"]) == (1, 10**12 - 1)
    assert first["currency"]["pattern"] == "^[A-Z]{3}$"
    assert first["reason_text"]["maxLength"] == 500
    assert {first[name]["maxLength"] for name in ("request_ref", "ticket_ref", "run_ref")} == {128}


def test_the_description_refuses_unknown_fields_and_names_every_outcome(
    schema: dict[str, Any],
) -> None:
    shapes = schema["components"]["schemas"]
    assert shapes["ProposalIn"]["additionalProperties"] is False
    assert shapes["OrderIn"]["additionalProperties"] is False
    assert {"unknown", "stale", "already_done"} <= set(
        shapes["Result"]["properties"]["outcome"]["enum"]
    )


def test_the_list_of_next_actions_is_the_same_everywhere(schema: dict[str, Any]) -> None:
    shapes = schema["components"]["schemas"]
    assert shapes["NextAction"]["enum"] == list(results.NEXT_ACTIONS)
    assert shapes["ErrorAction"]["enum"] == list(results.ERROR_ACTIONS)
    assert {advice.next_action for advice in results.ADVICE.values()} <= results.NEXT_ACTIONS.keys()
    assert {"ask_customer", results.STOP} <= results.NEXT_ACTIONS.keys()
    agents = (Path(__file__).resolve().parents[2] / "docs/agents.md").read_text()
    assert results.next_actions_table() in agents


def test_shapes_point_only_at_shapes_that_exist(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    named = set(re.findall(r'"\$ref": "([^"]*)"', text))
    assert (
        named
        == {f"#/components/schemas/{name}" for name in schema["components"]["schemas"]} & named
    )
    assert "$defs" not in text


def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    response = client.get("/api/docs")
    page = response.content.decode()
    assert response.status_code == 200
    assert "script-src 'self'" in response["Content-Security-Policy"]
    for address in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert address.startswith(("/", "data:,")), address
        if address.startswith("/static/"):
            file = client.get(address)
            assert file.status_code == 200
            file.close()
    assert not re.search(r"<script(?![^>]*(src=|application/json))", page), "no inline script"
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=", page)
