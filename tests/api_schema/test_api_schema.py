"""Thousands of generated calls against a real process: it does what its own document says.

No server error, no status, header, content type or shape that is not documented; nothing that
breaks the document is taken. Seeded: `API_SEED=7` makes other calls, `API_CASES=20000` more; the
suite makes a thousand, and `make test-api` five times as many.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api_schema.conftest import ORDERS, Visit
from tests.api_schema.realistic import realistic
from tests.flows.door import wish

SEED = int(os.environ.get("API_SEED", "1"))
CASES = int(os.environ.get("API_CASES", "1000"))

# Each address by its operationId: the scope that opens it, and its part of the calls.
ADDRESSES: dict[str, tuple[str, float]] = {
    "propose_refund": ("refund:propose", 0.28),
    "put_order": ("order:write", 0.22),
    "feed_orders": ("order:write", 0.14),
    "get_refund": ("refund:read", 0.10),
    "withdraw_refund": ("refund:propose", 0.10),
    "list_refunds": ("refund:read", 0.08),
    "get_order_refunds": ("refund:read", 0.08),
}


def generated(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """So many calls, the same ones for the same seed, without looking for the smallest failure."""

    def drawn(test: Callable[..., None]) -> Callable[..., None]:
        several = settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        return seed(SEED)(several(test))

    return drawn


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_whatever_is_sent_the_answer_is_as_documented(visit: Visit, address: str) -> None:
    scope, part = ADDRESSES[address]
    statuses: Counter[int] = Counter()
    checks = [*CHECKS, line_rejection if address == "feed_orders" else rejection]

    @generated(round(CASES * part))
    @given(case=cases(visit, address), key=keys(visit, scope))
    def call(case: Case[Any], key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        response = case.call(base_url=visit.url, session=visit.session, headers=headers)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=checks)

    call()
    assert statuses.total() >= round(CASES * part)
    told = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    sys.stderr.write(f"\n{address}: {statuses.total()} calls: {told}\n")


def rejection(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """A call that breaks the document is refused, where what breaks it was sent at all: a
    parameter without a value never leaves, and the key is always ours."""
    sent = parse_qs(urlsplit(str(response.request.url)).query, keep_blank_values=True)
    if set(case.query or {}) <= set(sent):
        negative_data_rejection(context, response, case)


def line_rejection(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """A batch is taken and refuses its lines: a line that breaks the document is refused."""
    assert case.meta is not None
    if case.meta.generation.mode.is_negative and response.status_code == 200:
        for line in response.content.splitlines():
            assert json.loads(line)["status"] >= 400, line


def cases(visit: Visit, address: str) -> st.SearchStrategy[Case[Any]]:
    """Calls that keep to the document, half of them about what exists, and calls that break it."""
    operation = visit.schema.find_operation_by_id(address)
    positive = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    return st.one_of(
        positive,
        positive.flatmap(lambda case: realistic(case, visit)),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    ).map(_impatient)


def _impatient(case: Case[Any]) -> Case[Any]:
    """Nothing changes while these calls wait, so none of them waits long."""
    if isinstance(case.query, dict) and isinstance(case.query.get("wait_seconds"), int):
        case.query["wait_seconds"] = min(case.query["wait_seconds"], 0)
    return case


def keys(visit: Visit, scope: str) -> st.SearchStrategy[str]:
    """The right key nearly always; another scope's, a revoked one, or something else."""
    wrong = [*visit.keys.values(), "as_AAAAAAAA_" + "x" * 43, "nonsense"]
    return st.sampled_from([visit.keys[scope]] * 60 + wrong)


def test_no_address_answers_without_its_key(visit: Visit) -> None:
    for address, (scope, _) in ADDRESSES.items():
        _needs_its_key(visit, address, {"Authorization": f"Bearer {visit.keys[scope]}"})


def _needs_its_key(visit: Visit, address: str, headers: dict[str, str]) -> None:
    @generated(5)
    @given(case=cases(visit, address))
    def call(case: Case[Any]) -> None:
        response = case.call(base_url=visit.url, session=visit.session, headers=headers)
        # The check sends the same call again without the key, and with another one.
        case.validate_response(response, checks=[ignored_auth], headers=headers)

    call()


def test_a_refund_lives_through_all_its_addresses_as_documented(visit: Visit) -> None:
    propose, ask, withdraw = (
        visit.schema.find_operation_by_id(name)
        for name in ("propose_refund", "get_refund", "withdraw_refund")
    )
    ended = Counter[str]()

    @generated(20)
    @given(order=st.sampled_from(ORDERS), amount_minor=st.integers(1, 4_000))
    def live(order: str, amount_minor: int) -> None:
        body = wish(order, amount_minor=amount_minor)
        proposed = visit.send("POST", "/refunds", "refund:propose", json.dumps(body))
        propose.validate_response(proposed)
        known = proposed.json()["operation_id"]
        asked = visit.send("GET", f"/refunds/{known}", "refund:read")
        ask.validate_response(asked)
        taken_back = visit.send("POST", f"/refunds/{known}/withdraw", "refund:propose")
        withdraw.validate_response(taken_back)
        again = visit.send("POST", f"/refunds/{known}/withdraw", "refund:propose")
        assert again.json() | {"as_of": ""} == taken_back.json() | {"as_of": ""}
        ended[taken_back.json()["state"]] += 1

    live()
    assert ended["withdrawn"]
