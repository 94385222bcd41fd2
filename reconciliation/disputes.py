"""Learning of a dispute that a provider shows: what may still be refunded follows it."""

from __future__ import annotations

from django.db import transaction

from reconciliation.outside import Heard, payment_of
from refunds.ledger import RECONCILER, bump
from refunds.ledger.external import count_lost, is_part, lock_payments, standing_state
from refunds.models import Dispute, Payment
from refunds.providers.account_list import ListedDispute


def learn_dispute(account: str, listed: ListedDispute) -> Heard:
    """Take in one dispute: the payment is closed for refunds while it stands, or for good.

    Won, it is open again, and lost about a part of it, so is the rest: the part counts like a refund
    made elsewhere. The order moves with each change.
    """
    payment = payment_of(account, listed.payment_refs)
    told = {
        "payment_refs": list(listed.payment_refs),
        "amount_minor": listed.amount_minor,
        "currency": listed.currency or "",
        "standing": listed.standing,
        "provider_status": listed.provider_status,
    }
    with transaction.atomic():
        if payment is not None:
            [payment] = lock_payments(payment).values()
        row, created = Dispute.objects.get_or_create(
            provider_account=account,
            ref=listed.ref,
            defaults={**told, "payment": payment, "provider_created_at": listed.created_at},
        )
        before = (row.standing, row.amount_minor, row.currency)
        now = (listed.standing, listed.amount_minor, listed.currency or "")
        if not created and before == now and row.payment_id is not None:
            return Heard.KNOWN
        Dispute.objects.filter(pk=row.pk).update(**told, payment=payment)
        if payment is None:
            return Heard.UNPLACED if created else Heard.KNOWN
        # A part that was lost had closed nothing, which what follows could open again.
        was = "part" if row.standing == "lost" and is_part(row, payment) else row.standing
        _turn(payment, listed, was=was)
    return Heard.NEW if created else Heard.FOLLOWED


def _turn(payment: Payment, listed: ListedDispute, *, was: str) -> None:
    """Follow the disputes of the payment, and count what they took; `was` is the standing of this
    one before."""
    taken_minor = count_lost(payment)
    state = _state_after(payment, listed, was=was)
    detail: dict[str, object] = {"dispute": listed.ref}
    if state != payment.state:
        Payment.objects.filter(pk=payment.pk).update(state=state)
        detail[f"{payment.ref} state"] = [payment.state, state]
    elif not taken_minor:
        return
    bump(
        payment.order,
        "dispute",
        by=RECONCILER,
        amount_minor=taken_minor or None,
        detail=detail,
    )
    payment.state = state


def _state_after(payment: Payment, listed: ListedDispute, *, was: str) -> str:
    """What the feed says of its own, a capture reversed or a dispute unknown here, is left to it."""
    state = standing_state(payment, "captured")
    if payment.state == "uncaptured":
        return payment.state
    if state == "captured":
        if payment.state == "reversed" and was != "lost":
            return payment.state
        if payment.state == "disputed" and was != "open" and listed.standing != "won":
            return payment.state
    return state
