"""Taking over a refund that another system left stuck: it begins as unknown and is never sent.

There is no attempt of ours and no approval, so no claim can take it; what it may have moved is
held on its payment until its end is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.utils import timezone

from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger.door import Actor
from refunds.ledger.external import lock_payments
from refunds.ledger.identity import mint
from refunds.ledger.orders import bump
from refunds.models import Event, Operation, Payment, Person, ProviderRefund, Reservation

POLICY_VERSION = "adopted"
_TIER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A refund of another system: `source_ref` is its name there, `requested_at` when it was asked
    for, `provider_refund_ref` the provider's, empty where nobody knows it. Amount in minor units.
    """

    payment: Payment
    amount_minor: int
    currency: str
    source_ref: str
    requested_at: datetime
    provider_refund_ref: str = ""


def adopt(stuck: Stuck, by: Person) -> Operation:
    """Store it as unknown, held on its payment and due to be looked up; call in a transaction.

    Raises Refusal: request_ref_reused (known under this name with other facts), currency_mismatch,
    equivalent_unresolved, refund_of_another. The same again returns the operation that is there.
    """
    [payment] = lock_payments(stuck.payment).values()
    known = Operation.objects.filter(order=payment.order, request_ref=stuck.source_ref).first()
    if known is not None:
        return _same(known, stuck)
    _require_room_for_it(payment, stuck)
    operation = _stored(payment, stuck, by)
    actor = Actor(states.OPERATORS, f"person:{by.username}")
    Event.objects.create(
        operation=operation,
        seq=1,
        event="adopted",
        from_state=states.NONE,
        to_state=states.UNKNOWN,
        actor_kind=actor.kind,
        actor=actor.name,
        detail={"source_ref": stuck.source_ref, "ref": stuck.provider_refund_ref},
        at=timezone.now(),
    )
    Reservation.objects.create(
        operation=operation, payment=payment, amount_minor=operation.amount_minor, state="held"
    )
    # Without asking for room: what may have left cannot be wished away.
    Payment.objects.filter(pk=payment.pk).update(
        held_minor=F("held_minor") + operation.amount_minor
    )
    bump(
        payment.order,
        "reserved",
        by=actor,
        operation=operation,
        amount_minor=operation.amount_minor,
    )
    if stuck.provider_refund_ref:
        _tie(operation, stuck.provider_refund_ref)
    return operation


def _same(known: Operation, stuck: Stuck) -> Operation:
    same = (known.payment_id, known.amount_minor, known.policy_version) == (
        stuck.payment.pk,
        stuck.amount_minor,
        POLICY_VERSION,
    )
    if same:
        return known
    raise Refusal(
        "request_ref_reused",
        f"{stuck.source_ref} names another refund of this order: {known.business_key}.",
        status=409,
        what_to_do="Give each stuck refund the name that it has in the other system.",
        field="source_ref",
    )


def _require_room_for_it(payment: Payment, stuck: Stuck) -> None:
    if stuck.currency != payment.currency:
        raise Refusal(
            "currency_mismatch",
            f"The payment is in {payment.currency}.",
            what_to_do=f"Write {payment.currency}, or the payment that was meant.",
            field="currency",
        )
    equal = Operation.objects.filter(
        payment=payment, amount_minor=stuck.amount_minor, blocks_equivalent=True
    ).first()
    if equal is not None:
        raise Refusal(
            "equivalent_unresolved",
            f"An equal refund of this payment has not ended: {equal.business_key}.",
            status=409,
            what_to_do="Find out about that one first, then import this row again.",
            field="amount_minor",
        )
    tied = (
        ProviderRefund.objects.filter(
            provider_account=payment.provider_account, ref=stuck.provider_refund_ref
        )
        .select_related("operation")
        .first()
    )
    if tied is not None and (tied.operation is not None or tied.payment_id != payment.pk):
        owner = tied.operation.business_key if tied.operation else "another payment"
        raise Refusal(
            "refund_of_another",
            f"{tied.ref} is known as the refund of {owner}.",
            status=409,
            what_to_do="Leave the reference empty, and a person chooses among what there is.",
            field="provider_refund_ref",
        )


def _stored(payment: Payment, stuck: Stuck, by: Person) -> Operation:
    now = timezone.now()
    return Operation.objects.create(
        **mint(
            payment,
            amount_minor=stuck.amount_minor,
            currency=stuck.currency,
            reason_code="other",
            request_ref=stuck.source_ref,
        ),
        requested_by_kind="system",
        requested_by_ref="import_unknown",
        proposer=by,
        policy_version=POLICY_VERSION,
        tier=_TIER,
        quorum=2,
        state=states.UNKNOWN,
        version=1,
        entered_at=now,
        unknown_since=stuck.requested_at,
        created_at=stuck.requested_at,
        expires_at=now,
        due_at=now,
    )


def _tie(operation: Operation, ref: str) -> None:
    """What the other system knew of the provider's refund: a lookup asks for it by this name."""
    row, created = ProviderRefund.objects.get_or_create(
        provider_account=operation.provider_account,
        ref=ref,
        defaults={
            "payment": operation.payment,
            "operation": operation,
            "amount_minor": operation.amount_minor,
            "provider_status": "",
            "counts": False,
        },
    )
    if not created:
        ProviderRefund.objects.filter(pk=row.pk).update(operation=operation)
