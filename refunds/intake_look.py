"""What a proposal meets: the order locked, then everything about it, in one statement each.

Two statements and not one: a statement sees the rows as they stood when it began, so what is to be
read under a lock is read by the statement after the one that takes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from refunds import prepared
from refunds.domain import sameness, states
from refunds.models import Order, Payment
from refunds.proposal import Caller, ProposalRequest

# What counts towards the sums: pending ones too, but nothing that ended without moving money.
_NOTHING_MOVED = (
    states.DENIED,
    states.REJECTED,
    states.WITHDRAWN,
    states.EXPIRED,
    states.FAILED,
)
# As the model has them one after the other: so `from_db` wants its values.
_ORDER = ("id", "ref", "version", "facts_as_of", "currency", "customer_ref", "frozen")
_PAYMENT = tuple(field.attname for field in Payment._meta.concrete_fields)


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


# The proposals of one caller, and those for one customer, come one after the other. The order's
# lock keeps only its own proposals apart: two on different orders would each sum up without the
# other, and many small ones at once would stay under every limit. Held until the transaction ends;
# the caller's turn always comes first, so that no two wait for each other.
_ENTER = """
WITH known AS MATERIALIZED (
  SELECT FROM proposal
  WHERE /*caller*/ AND session_id = %(session)s::text AND tool_call_id = %(call)s::text
), locked AS MATERIALIZED (
  SELECT /*order*/ FROM orders
  WHERE ref = %(order_ref)s::text AND NOT EXISTS (SELECT FROM known) FOR UPDATE
), turns AS MATERIALIZED (
  SELECT pg_advisory_xact_lock(hashtextextended(turn, 0))
  FROM locked l, unnest(ARRAY['proposals of ' || %(actor)s::text,
                              'proposals for ' || coalesce(nullif(l.customer_ref, ''), l.ref)]) turn
)
SELECT EXISTS (SELECT FROM known), (SELECT count(*) FROM turns), l.*
FROM (SELECT) here LEFT JOIN locked l ON true
"""

_LOOK = """
WITH ours AS MATERIALIZED (
  SELECT o.*, o.created_at >= %(since)s::timestamptz AND o.currency = %(currency)s::text
              AND o.state NOT IN (/*nothing_moved*/) AS counts
  FROM operation o WHERE o.order_id = %(order)s::bigint
), theirs AS MATERIALIZED (/*theirs*/), mine AS MATERIALIZED (/*mine*/)
SELECT
  EXISTS (SELECT FROM proposal WHERE /*caller*/ AND session_id = %(session)s::text
          AND tool_call_id = %(call)s::text) AS known_call,
  EXISTS (SELECT FROM ours WHERE request_ref = %(request_ref)s::text) AS known_wish,
  (SELECT count(*) FROM ours) AS operations,
  (SELECT count(*) FROM ours WHERE state IN (/*uncertain*/)) AS uncertain,
  mine.minor, mine.on_order, theirs.minor, theirs.equal,
  EXISTS (SELECT FROM ours o WHERE o.payment_id = p.id
          AND o.amount_minor = %(amount)s::bigint AND o.blocks_equivalent) AS live,
  EXISTS (SELECT FROM ours o WHERE o.payment_id = p.id
          AND o.amount_minor = %(amount)s::bigint AND o.currency = %(currency)s::text
          AND o.state IN (/*done*/)
          AND o.settled_at >= %(repeat_since)s::timestamptz) AS ended,
  (SELECT coalesce(sum(o.amount_minor), 0)::bigint FROM ours o
   WHERE o.payment_id = p.id AND o.counts) AS of_payment,
  /*payment*/
FROM theirs CROSS JOIN mine LEFT JOIN payment p ON p.order_id = %(order)s::bigint ORDER BY p.id
"""
_SUMS = """
  SELECT coalesce(sum(o.amount_minor), 0)::bigint AS minor,
         count(*) FILTER (WHERE o.amount_minor = %(amount)s::bigint) AS equal
"""
_OF_THE_ORDER = _SUMS + " FROM ours o WHERE o.counts"
_OF_THE_CUSTOMER = (
    _SUMS
    + """  FROM orders r JOIN operation o ON o.order_id = r.id
  WHERE r.customer_ref = %(customer)s::text
    AND o.created_at >= %(since)s::timestamptz AND o.currency = %(currency)s::text
    AND o.state NOT IN (/*nothing_moved*/)
"""
)
# All of them are looked up by their keys in one pass over the index, however many a caller has made:
# one by one they would each begin at its root, and a join of all with all grows with the square.
_OF_THE_CALLER = """
  SELECT coalesce(sum(o.amount_minor), 0)::bigint AS minor,
         count(*) FILTER (WHERE o.order_id = %(order)s::bigint) AS on_order
  FROM operation o
  WHERE o.id = ANY (ARRAY(
      SELECT c.operation_id FROM proposal c
      WHERE c./*caller*/ AND c.created AND c.at >= %(since)s::timestamptz))
    AND o.created_at >= %(since)s::timestamptz AND o.currency = %(currency)s::text
    AND o.state NOT IN (/*nothing_moved*/)
"""
_CALLERS = {True: "agent_id = %(caller)s::bigint", False: "person_id = %(caller)s::bigint"}
_LISTS = {
    "/*order*/": ", ".join(_ORDER),
    "/*payment*/": ", ".join(f"p.{name}" for name in _PAYMENT),
    "/*nothing_moved*/": _words(_NOTHING_MOVED),
    "/*uncertain*/": _words(states.UNCERTAIN),
    "/*done*/": _words(frozenset(sameness.DONE_STATES)),
}


def _whole(statement: str, caller: str, theirs: str = "") -> str:
    text = statement.replace("/*theirs*/", theirs).replace("/*mine*/", _OF_THE_CALLER)
    text = text.replace("/*caller*/", caller)
    for place, names in _LISTS.items():
        text = text.replace(place, names)
    return text


_ENTERS = {agent: _whole(_ENTER, caller) for agent, caller in _CALLERS.items()}
_LOOKS = {
    (agent, known): _whole(_LOOK, caller, theirs)
    for agent, caller in _CALLERS.items()
    for known, theirs in ((True, _OF_THE_CUSTOMER), (False, _OF_THE_ORDER))
}


@dataclass(frozen=True, slots=True)
class Entered:
    """`known`: this very call was answered before; then nothing is locked and `order` is None.
    Otherwise the order with its row locked, or None where there is no such order."""

    known: bool
    order: Order | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPayment:
    """One payment of the order. `live` and `ended`: whether an equal refund of it is open, or has
    ended lately. `sum_minor`: of its refunds in the policy's window."""

    payment: Payment
    live: bool
    ended: bool
    sum_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of the order, read under its lock; amounts in minor units of the currency of
    the request, sums over the policy's window and without this proposal."""

    known_call: bool
    known_wish: bool
    operations: int
    uncertain: int
    of_caller_minor: int
    of_caller_on_order: int
    of_customer_minor: int
    equal_of_customer: int
    payments: tuple[OnPayment, ...]


def enter(request: ProposalRequest, caller: Caller) -> Entered:
    """Lock the order and wait for the turns of caller and customer, unless the call is known."""
    row = prepared.one(
        _ENTERS[caller.agent is not None],
        _call(request, caller) | {"order_ref": request.order_ref, "actor": caller.actor},
    )
    assert row is not None
    known, _, *order = row
    if order[0] is None:
        return Entered(known, None)
    return Entered(known, Order.from_db("default", _ORDER, order))


def look(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    *,
    since: datetime,
    repeat_since: datetime,
) -> Seen:
    """Everything about the order that a proposal may meet; call after `enter`.

    `since` begins the window of the sums, `repeat_since` that in which an ended refund counts.
    """
    values = _call(request, caller) | {
        "order": order.pk,
        "customer": order.customer_ref,
        "request_ref": request.request_ref,
        "amount": request.amount_minor,
        "currency": request.currency,
        "since": since,
        "repeat_since": repeat_since,
    }
    is_agent = caller.agent is not None
    found = prepared.rows(_LOOKS[is_agent, bool(order.customer_ref)], values)
    known_call, known_wish, operations, uncertain, *sums = found[0][:8]
    of_caller_minor, of_caller_on_order, of_customer_minor, equal = sums
    return Seen(
        known_call=known_call,
        known_wish=known_wish,
        operations=operations,
        uncertain=uncertain,
        of_caller_minor=of_caller_minor,
        of_caller_on_order=of_caller_on_order,
        of_customer_minor=of_customer_minor,
        equal_of_customer=equal,
        payments=tuple(_on_payment(row[8:], order) for row in found if row[11] is not None),
    )


def _on_payment(row: tuple[Any, ...], order: Order) -> OnPayment:
    live, ended, sum_minor, *values = row
    payment = Payment.from_db("default", _PAYMENT, values)
    payment.order = order
    return OnPayment(payment=payment, live=live, ended=ended, sum_minor=sum_minor)


def _call(request: ProposalRequest, caller: Caller) -> dict[str, Any]:
    who = caller.agent or caller.person
    assert who is not None, "an agent or a person proposes"
    return {"caller": who.pk, "session": request.session_id, "call": request.tool_call_id}
