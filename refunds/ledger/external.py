"""Refunds that no operation of ours explains, and disputes: they count, whoever made them (R25)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.utils import timezone

from refunds.domain.outcome import RefundRecord
from refunds.models import Dispute, Order, Payment, ProviderRefund, UnplacedRefund

# Whatever is not known to have ended without paying counts as gone: a word that we do not know
# must not make room for a second refund.
NOT_PAID = frozenset({"failed", "canceled", "cancelled", "rejected", "declined"})
# What stands as the status of money that a dispute took.
LOST_DISPUTE = "lost dispute"


@dataclass(frozen=True, slots=True)
class Learned:
    """What one reading of an outside refund did to the payment's refunded sum, minor units."""

    created: bool
    before_minor: int
    after_minor: int

    @property
    def changed(self) -> bool:
        return self.before_minor != self.after_minor


_NOTHING = Learned(created=False, before_minor=0, after_minor=0)


def learn_external(
    payment: Payment,
    *,
    ref: str,
    amount_minor: int,
    provider_status: str,
    created_at: datetime | None = None,
    shown: bool = False,
) -> Learned:
    """Store or update one outside refund of this payment, and count it while it is not void.

    Learning the same thing again changes nothing. `shown`: the provider itself shows it; what a
    feed says afterwards is not listened to. The payment's row is locked by the caller, who also
    moves the order's version. A refund of our own is left to its operation.
    """
    counts = provider_status.strip().lower() not in NOT_PAID
    told = {"amount_minor": amount_minor, "provider_status": provider_status, "counts": counts}
    row, created = ProviderRefund.objects.get_or_create(
        provider_account=payment.provider_account,
        ref=ref,
        defaults={
            "payment": payment,
            "provider_created_at": created_at,
            "shown_at": timezone.now() if shown else None,
            **told,
        },
    )
    if row.operation_id is not None or (row.shown_at is not None and not shown):
        return _NOTHING
    before = 0 if created else (row.amount_minor if row.counts else 0)
    after = amount_minor if counts else 0
    stored = {name: getattr(row, name) for name in told}
    if not created and (stored != told or (shown and row.shown_at is None)):
        shown_at = timezone.now() if shown else row.shown_at
        ProviderRefund.objects.filter(pk=row.pk).update(shown_at=shown_at, **told)
    count(payment, after - before)
    return Learned(created=created, before_minor=before, after_minor=after)


def learn_shown(payment: Payment, record: RefundRecord) -> Learned:
    """The same of a refund that the provider itself shows, with its amount."""
    assert record.amount_minor is not None, "what has no amount cannot be counted"
    return learn_external(
        payment,
        ref=record.ref,
        amount_minor=record.amount_minor,
        provider_status=record.provider_status,
        created_at=record.created_at,
        shown=True,
    )


def lock_payments(*payments: Payment) -> dict[int, Payment]:
    """The payments by id, their orders' rows and their own locked: orders first, each in order."""
    order_ids = sorted({each.order_id for each in payments})
    orders = Order.objects.filter(pk__in=order_ids).order_by("pk").select_for_update()
    by_id = {each.pk: each for each in orders}
    ids = {each.pk for each in payments}
    locked = Payment.objects.filter(pk__in=ids).order_by("pk").select_for_update()
    found = {each.pk: each for each in locked}
    for each in found.values():
        each.order = by_id[each.order_id]
    return found


def count(payment: Payment, difference_minor: int) -> None:
    """Move the payment's refunded sum; its row is locked by the caller."""
    if difference_minor:
        Payment.objects.filter(pk=payment.pk).update(
            refunded_minor=F("refunded_minor") + difference_minor
        )
        payment.refunded_minor += difference_minor


def place_waiting(payment: Payment, *, named: frozenset[str]) -> list[str]:
    """A payment is fed for the first time: what the provider showed of it before counts now.

    `named`: outside refunds that the same snapshot names. Returns the references that count.
    What else follows from them (a case, a lookup) is done by whoever finds them out.
    """
    waiting = UnplacedRefund.objects.select_for_update().filter(
        provider_account=payment.provider_account,
        payment_refs__contains=[payment.ref],
        placed_at=None,
    )
    counted = []
    for each in waiting:
        if each.currency == payment.currency and each.amount_minor is not None:
            counted += [each.ref] if learn_shown(payment, each.record).changed else []
        each.placed_at, each.explained = timezone.now(), each.ref in named
        each.save(update_fields=["placed_at", "explained"])
    Dispute.objects.filter(
        provider_account=payment.provider_account,
        payment_refs__contains=[payment.ref],
        payment=None,
    ).update(payment=payment)
    count_lost(payment)
    return counted


def standing_state(payment: Payment, told: str) -> str:
    """The state of a payment of which `told` is the feed's word: a dispute outranks `captured`.

    A feed that has not heard of a dispute must not open the payment for refunds again. One that was
    lost takes the payment, or a part of it that `count_lost` counts: what is left may be refunded.
    """
    if told not in ("captured", "disputed"):
        return told
    disputes = list(Dispute.objects.filter(payment=payment))
    if any(each.standing == "lost" and not is_part(each, payment) for each in disputes):
        return "reversed"
    return "disputed" if any(each.standing == "open" for each in disputes) else told


def count_lost(payment: Payment) -> int:
    """Count the parts of a payment that disputes took for good, as refunds made elsewhere are.

    Under the dispute's own reference, once; one that is won after all no longer counts. The rows
    are locked by the caller, who also moves the order. Returns the difference in minor units.
    """
    difference_minor = 0
    for each in Dispute.objects.filter(payment=payment).order_by("pk"):
        known = ProviderRefund.objects.filter(
            provider_account=payment.provider_account, ref=each.ref
        ).exists()
        if not is_part(each, payment) or not (known or each.standing == "lost"):
            continue
        assert each.amount_minor is not None, "a part has an amount"
        learned = learn_external(
            payment,
            ref=each.ref,
            amount_minor=each.amount_minor,
            provider_status=LOST_DISPUTE if each.standing == "lost" else "rejected",
            created_at=each.provider_created_at,
            shown=True,
        )
        difference_minor += learned.after_minor - learned.before_minor
    return difference_minor


def is_part(dispute: Dispute, payment: Payment) -> bool:
    """Whether it is about less than the payment, in figures that can be counted."""
    amount_minor = dispute.amount_minor
    in_figures = amount_minor is not None and dispute.currency == payment.currency
    return in_figures and 0 < (amount_minor or 0) < payment.captured_minor
