"""Freezing an order: until it is lifted nothing on it is proposed, approved or sent."""

from __future__ import annotations

from django.db import transaction

from refunds.consent import checked_reason, require_role
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import Actor, mark_frozen
from refunds.models import Order, Person


def freeze(order_ref: str, person: Person, *, reason: str, version: int) -> Order:
    """Freeze the order whose version was on the page; frozen already is the same result.

    Its version moves: approvals given before do not send any more, and what waits is stale.
    `reason`: 10 to 500 characters, kept with the move of the version.

    Raises Refusal: role_missing (403), reason_too_short and the text refusals (422),
    order_unknown (404), stale_page (409, facts version_then and version_now).
    """
    said = _allowed(person, reason, act="freeze an order", not_done="Not frozen")
    return _set(order_ref, person, said, version, frozen=True)


def unfreeze(order_ref: str, person: Person, *, reason: str, version: int) -> Order:
    """Lift the freeze; not frozen is the same result. Arguments and refusals as for `freeze`.

    The version moves again: what was approved before the freeze needs a new approval.
    """
    said = _allowed(person, reason, act="lift a freeze", not_done="Not lifted")
    return _set(order_ref, person, said, version, frozen=False)


def _allowed(person: Person, reason: str, *, act: str, not_done: str) -> str:
    require_role(person, {"ops_lead"}, act)
    return checked_reason(
        reason, not_done=not_done, what_to_do="Say why, for those who work on the order."
    )


def _set(order_ref: str, person: Person, reason: str, version: int, *, frozen: bool) -> Order:
    with transaction.atomic():
        order = Order.objects.select_for_update().filter(ref=order_ref).first()
        if order is None:
            raise Refusal(
                "order_unknown",
                f"There is no order {order_ref!r}.",
                status=404,
                what_to_do="Check the reference.",
            )
        if order.frozen == frozen:
            return order
        if order.version != version:
            raise Refusal(
                "stale_page",
                f"Not recorded. Order {order.ref} changed from version {version} to"
                f" {order.version} after this page was drawn.",
                status=409,
                what_to_do="Look at what changed, then decide again.",
                facts={"version_then": version, "version_now": order.version},
            )
        by = Actor(states.OPERATORS, f"person:{person.username}")
        mark_frozen(order, frozen=frozen, by=by, reason=reason)
    return order
