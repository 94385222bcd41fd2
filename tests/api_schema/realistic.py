"""Generated calls drawn towards the shop that exists, so that they pass the first checks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from schemathesis import Case

from refunds.proposal import REASON_CODES
from tests.api_schema.conftest import ORDERS, Visit

_BODIES: dict[str, Any] = {
    "propose_refund": {
        "order_ref": st.sampled_from(ORDERS),
        "payment_ref": st.none(),
        "currency": st.sampled_from(["USD", "USD", "USD", "EUR", "usd"]),
        "amount": st.none(),
        "amount_minor": st.integers(0, 13_000),
        "reason_code": st.sampled_from(REASON_CODES),
        "request_ref": st.sampled_from([None, "return-1", "return-2", "return-3"]),
        "session_id": st.sampled_from(["chat-1", "chat-2"]),
        "tool_call_id": st.integers(1, 99).map("call_{}".format),
        "separate_from": st.none(),
        "reason_text": st.sampled_from(["", "arrived broken"]),
        "ticket_ref": st.sampled_from([None, "T-551"]),
        "run_ref": st.sampled_from([None, "run-55"]),
        "step_ref": st.none(),
        "claims": st.sampled_from([{}, {"order_total_minor": 12900, "mood": ["polite", None]}]),
        "read_links": st.just([]),
        "wait_seconds": st.sampled_from([0, 8]),
    },
    "put_order": {
        "currency": st.sampled_from(["USD", "USD", "JPY"]),
        "feed_seq": st.one_of(st.none(), st.integers(0, 9)),
        "facts_as_of": st.none(),
        "customer_ref": st.sampled_from([None, "cus_204"]),
        "return_state": st.sampled_from([None, "received"]),
        "fulfilment_state": st.none(),
        "placed_at": st.none(),
        "links": st.none(),
        "facts": st.none(),
        "lines": st.none(),
        "payments": st.lists(
            st.fixed_dictionaries(
                {
                    "ref": st.sampled_from([f"pi_{ref}" for ref in ORDERS]),
                    "provider_account": st.sampled_from(["plain-main", "plain-main", "nobody"]),
                    "state": st.sampled_from(["captured", "disputed", "uncaptured", "odd"]),
                    "captured_minor": st.integers(0, 20_000),
                }
            ),
            max_size=2,
        ),
        "external_refunds": st.just([]),
    },
}

_BODIES["feed_orders"] = _BODIES["put_order"] | {"order_ref": st.sampled_from(ORDERS)}


def realistic(case: Case[Any], visit: Visit) -> st.SearchStrategy[Case[Any]]:
    """The same call with most of its names replaced by names that exist."""
    name = case.operation.definition.raw["operationId"]
    parts: dict[str, st.SearchStrategy[Any]] = {}
    if name in _BODIES and isinstance(case.body, dict):
        # Now and then one field stays as it was generated.
        kept = st.sampled_from([None, None, None, *_BODIES[name]])
        parts["body"] = kept.flatmap(lambda field: st.fixed_dictionaries(_without(name, field)))
    if "operation_id" in case.path_parameters:
        parts["operation_id"] = st.sampled_from(visit.refunds)
    if "order_ref" in case.path_parameters:
        parts["order_ref"] = st.sampled_from(ORDERS)
    return st.fixed_dictionaries(parts).map(lambda drawn: _with(case, drawn))


def _without(name: str, field: str | None) -> dict[str, st.SearchStrategy[Any]]:
    return {each: made for each, made in _BODIES[name].items() if each != field}


def _with(case: Case[Any], drawn: dict[str, Any]) -> Case[Any]:
    if "body" in drawn:
        case.body = case.body | drawn.pop("body")
    case.path_parameters = case.path_parameters | drawn
    return case
