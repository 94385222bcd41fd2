"""Orders as the merchant feeds them: one snapshot in, all of it or nothing of it.

An upsert never removes; what is not named stays. `version`, `frozen`, refunded and held are
ours and cannot be fed. Equal facts leave the version alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.ledger import Actor, bump
from refunds.ledger.external import learn_external, place_waiting, standing_state
from refunds.models import Order, OrderMove, Payment, ProviderAccount, ProviderRefund
from refunds.snapshot import (
    PAYMENT_STATES,
    ExternalRefund,
    OrderSnapshot,
    PaymentSnapshot,
    check,
)

__all__ = [
    "PAYMENT_STATES",
    "ExternalRefund",
    "Fed",
    "OrderSnapshot",
    "PaymentSnapshot",
    "upsert",
]

# Facts of an order that move its version; the rest is shown, never interpreted.
_REFUNDABLE_FACTS = ("currency", "customer_ref", "return_state")
_SHOWN_FACTS = ("fulfilment_state", "placed_at", "lines", "facts", "links")


@dataclass(slots=True)
class Fed:
    """What an upsert did."""

    order: Order
    created: bool
    changed: bool = False
    changes: dict[str, list[Any]] = field(default_factory=dict)


def upsert(snapshot: OrderSnapshot, *, by: str) -> Fed:
    """Store one snapshot. Raises Refusal: older_snapshot, snapshot_conflict, payment_moved,
    account_unknown, currency_unknown and the amount and text refusals; nothing is changed then.
    """
    check(snapshot)
    try:
        with transaction.atomic():
            return _store(snapshot, Actor("feed", by))
    except IntegrityError as error:
        if not any(name in str(error) for name in ("orders_ref", "payment_ref")):
            raise
        # Two first snapshots of one order or payment at once: the other one made it; look again.
        with transaction.atomic():
            return _store(snapshot, Actor("feed", by))


def _store(snapshot: OrderSnapshot, by: Actor) -> Fed:
    order = Order.objects.select_for_update().filter(ref=snapshot.ref).first()
    created = order is None
    if order is None:
        order = _first_seen(snapshot, by)
    elif not _is_newer(order, snapshot):
        return Fed(order, created=False)
    _require_currency(order, snapshot)
    fed = Fed(order, created=created)
    _facts_of_order(order, snapshot, fed)
    named = frozenset(each.provider_refund_ref for each in snapshot.external_refunds)
    learned = [ref for each in snapshot.payments for ref in _payment(order, each, fed, named)]
    order.save(
        update_fields=[
            *_REFUNDABLE_FACTS,
            *_SHOWN_FACTS,
            "feed_seq",
            "facts_as_of",
            "snapshot_digest",
        ]
    )
    learned += [ref for each in snapshot.external_refunds if (ref := _external(order, each, by))]
    fed.changed = created or bool(fed.changes) or bool(learned)
    if not created and (fed.changes or learned):
        cause = "feed" if fed.changes else "external"
        detail = fed.changes | {"external": learned}
        bump(order, cause, by=by, detail=detail)
    return fed


def _first_seen(snapshot: OrderSnapshot, by: Actor) -> Order:
    order = Order.objects.create(ref=snapshot.ref, currency=snapshot.currency)
    OrderMove.objects.create(
        order=order, version=1, cause="first_seen", actor=by.name, at=timezone.now()
    )
    return order


def _is_newer(order: Order, snapshot: OrderSnapshot) -> bool:
    """Whether to apply; False for the same snapshot again. Raises for older or conflicting."""
    new: Any
    old: Any
    if snapshot.feed_seq is not None:
        new, old = snapshot.feed_seq, order.feed_seq
    else:
        new, old = snapshot.facts_as_of, order.facts_as_of
    if new is None or old is None or new > old:
        return True
    if new < old:
        raise Refusal(
            "older_snapshot",
            f"Order {order.ref} already holds a newer snapshot ({old}); this one is {new}.",
            status=409,
            what_to_do="Send the current facts with a higher feed_seq or facts_as_of.",
            field="feed_seq" if snapshot.feed_seq is not None else "facts_as_of",
        )
    if bytes(order.snapshot_digest or b"") == snapshot.content_digest():
        return False
    raise Refusal(
        "snapshot_conflict",
        f"Order {order.ref} holds other facts under the same sequence {old}.",
        status=409,
        what_to_do="Raise feed_seq (or facts_as_of) whenever a fact changes.",
        field="feed_seq" if snapshot.feed_seq is not None else "facts_as_of",
    )


def _require_currency(order: Order, snapshot: OrderSnapshot) -> None:
    if snapshot.currency == order.currency or not Payment.objects.filter(order=order).exists():
        return
    raise Refusal(
        "currency_moved",
        f"Order {order.ref} has payments in {order.currency}; its currency cannot become"
        f" {snapshot.currency}.",
        status=409,
        what_to_do=f"Send the order in {order.currency}, or feed another order.",
        field="currency",
    )


def _facts_of_order(order: Order, snapshot: OrderSnapshot, fed: Fed) -> None:
    for name in _REFUNDABLE_FACTS:
        value = getattr(snapshot, name)
        if value is not None and value != getattr(order, name):
            if not fed.created:
                fed.changes[name] = [getattr(order, name), value]
            setattr(order, name, value)
    for name in (*_SHOWN_FACTS, "feed_seq", "facts_as_of"):
        value = getattr(snapshot, name)
        if value is not None:
            setattr(order, name, value)
    order.snapshot_digest = snapshot.content_digest()


def _payment(order: Order, snapshot: PaymentSnapshot, fed: Fed, named: frozenset[str]) -> list[str]:
    """Store the payment; refunds of it that were known before it was fed are counted with it."""
    account, ref = snapshot.provider_account, snapshot.ref
    payment = Payment.objects.select_for_update().filter(provider_account=account, ref=ref).first()
    if payment is None:
        ProviderAccount.objects.get_or_create(name=account)
        payment = Payment.objects.create(
            order=order,
            provider_account=account,
            ref=ref,
            currency=order.currency,
            state=snapshot.state,
            captured_minor=snapshot.captured_minor,
            captured_at=snapshot.captured_at,
        )
        fed.changes[f"payment {ref}"] = [None, snapshot.captured_minor]
        placed = place_waiting(payment, named=named)
        state = standing_state(payment, snapshot.state)
        if state != snapshot.state:
            Payment.objects.filter(pk=payment.pk).update(state=state)
        return placed
    if payment.order_id != order.pk or payment.currency != order.currency:
        raise Refusal(
            "payment_moved",
            f"Payment {ref} belongs to another order or currency.",
            status=409,
            what_to_do="A payment never moves; check the order reference.",
            field="payments",
        )
    told = {
        "state": standing_state(payment, snapshot.state),
        "captured_minor": snapshot.captured_minor,
    }
    for name, value in told.items():
        if value != getattr(payment, name):
            fed.changes[f"{ref} {name}"] = [getattr(payment, name), value]
            setattr(payment, name, value)
    payment.captured_at = snapshot.captured_at or payment.captured_at
    payment.save(update_fields=["state", "captured_minor", "captured_at"])
    return []


def _external(order: Order, refund: ExternalRefund, by: Actor) -> str | None:
    payment = (
        Payment.objects.select_for_update().filter(order=order, ref=refund.payment_ref).first()
    )
    if payment is None:
        raise Refusal(
            "payment_unknown",
            f"Order {order.ref} has no payment {refund.payment_ref}.",
            what_to_do="Name the payment under payments first.",
            field="external_refunds",
        )
    money.check_minor(refund.amount_minor)
    if (
        ProviderRefund.objects.filter(
            provider_account=payment.provider_account, ref=refund.provider_refund_ref
        )
        .exclude(payment=payment)
        .exists()
    ):
        raise Refusal(
            "external_refund_moved",
            f"Refund {refund.provider_refund_ref} belongs to another payment.",
            status=409,
            what_to_do="A refund never moves; check the payment's reference.",
            field="external_refunds",
        )
    learned = learn_external(
        payment,
        ref=refund.provider_refund_ref,
        amount_minor=refund.amount_minor,
        provider_status=refund.provider_status,
        created_at=refund.created_at,
    )
    return refund.provider_refund_ref if learned.changed else None
