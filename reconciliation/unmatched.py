"""Notices that no operation explains yet: parked, matched again, shown to people, never forgotten.

A notice may overtake our own answer, and a restored database may not know what it names; so it
waits. Nothing is guessed: it is matched by our marker or by a reference that we hold (rule 20).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from reconciliation.cases import close_if_explained, open_account_case, open_payment_case
from reconciliation.models import Notice
from refunds import doorbell
from refunds.domain.errors import Refusal
from refunds.domain.money import display
from refunds.models import Operation, Order, Payment, ProviderRefund

# Seconds after its arrival at which a parked notice is matched again; then hourly.
REMATCH: Final = (60, 300, 900, 3600)
KEPT: Final = timedelta(days=30)
_HOUR: Final = timedelta(hours=1)
_CANDIDATES_MAX: Final = 3


def match(notice: Notice) -> UUID | None:
    """The operation that a notice is about, by our marker or a refund that is tied to one."""
    account, facts = notice.provider_account, notice.facts
    marker = _as_id(facts.get("marker"))
    if marker is not None:
        own = Operation.objects.filter(pk=marker, provider_account=account)
        found = own.values_list("pk", flat=True).first()
        if found is not None:
            return found
    if facts.get("ref"):
        tied = ProviderRefund.objects.filter(provider_account=account, ref=facts["ref"])
        return tied.exclude(operation=None).values_list("operation", flat=True).first()
    return _touched(notice)


def _touched(notice: Notice) -> UUID | None:
    """Of a notice that shows a change of a payment and no refund: an operation whose lookup reads
    that payment, one in doubt before one that ended."""
    of_payment = Operation.objects.filter(
        provider_account=notice.provider_account,
        payment__ref__in=notice.facts["payment_refs"],
        attempt_count__gt=0,
    )
    newest = of_payment.order_by(F("settled_at").desc(nulls_first=True), "-pk")
    return newest.values_list("pk", flat=True).first()


def park(notice: Notice) -> str:
    """Keep a notice for later, and tell people when it stays unexplained; a word for what it is."""
    facts, now = notice.facts, timezone.now()
    if not facts.get("ref"):
        # A change of a payment of which we have no refund: the account's own lists will tell.
        doorbell.ring_account_sweep(notice.provider_account)
        return end(notice.pk, "nothing")
    if notice.tries == 0:
        doorbell.ring_account_sweep(notice.provider_account)
    late = now - notice.arrived_at
    if late >= KEPT:
        return end(notice.pk, "given_up")
    if late >= timedelta(seconds=settings.LIMITS.unmatched_notice_seconds):
        _tell_people(notice)
    Notice.objects.filter(pk=notice.pk, applied_at=None).update(
        tries=F("tries") + 1, due_at=next_match(notice.arrived_at, now)
    )
    return "parked"


def next_match(arrived_at: datetime, now: datetime) -> datetime:
    """When a parked notice is matched again."""
    for seconds in REMATCH:
        at = arrived_at + timedelta(seconds=seconds)
        if at > now:
            return at
    return now + _HOUR


def end(notice_id: int, outcome: str) -> str:
    """Mark a notice as applied; the case that it alone kept open is closed. Returns `outcome`."""
    with transaction.atomic():
        notice = Notice.objects.select_for_update().get(pk=notice_id)
        if notice.applied_at is None:
            Notice.objects.filter(pk=notice_id).update(
                applied_at=timezone.now(), outcome=outcome, due_at=None
            )
            case = notice.case
            waits = Notice.objects.filter(case=case, applied_at=None)
            if case is not None and outcome != "given_up" and not waits.exists():
                close_if_explained(case, "What the provider told of is explained now.")
    return outcome


def candidates(notice: Notice) -> list[Operation]:
    """Operations that a person may compare with the notice; none of them is taken for it."""
    of_payment = Operation.objects.filter(
        provider_account=notice.provider_account, payment__ref__in=notice.facts["payment_refs"]
    )
    return list(of_payment.order_by("-pk")[:_CANDIDATES_MAX])


def _tell_people(notice: Notice) -> None:
    """A case about the payment where we know it, and otherwise about the account."""
    payments = Payment.objects.filter(
        provider_account=notice.provider_account, ref__in=notice.facts["payment_refs"]
    )
    with transaction.atomic():
        fresh = Notice.objects.select_for_update().get(pk=notice.pk)
        if fresh.case_id is not None or fresh.applied_at is not None:
            return
        known = payments.values_list("pk", "order_id").first()
        if known is None:
            case = open_account_case(notice.provider_account, "unmatched_notice", _words(notice))
        else:
            Order.objects.select_for_update().get(pk=known[1])
            payment = Payment.objects.select_for_update().get(pk=known[0])
            opened = open_payment_case(payment, "unmatched_notice", _words(notice))
            case = opened or payment.cases.get(operation=None, closed_at=None)
        Notice.objects.filter(pk=notice.pk).update(case=case)


def _words(notice: Notice) -> str:
    facts = notice.facts
    told = f"{notice.provider_account} tells of {facts['ref']} on {facts['payment_ref']}"
    compared = ", ".join(str(each.pk) for each in candidates(notice))
    near = f"On that payment: {compared}." if compared else "No payment of that name is known here."
    return f"{told}, {_amount(facts)}, {facts['provider_status']}: no operation explains it. {near}"


def _amount(facts: dict[str, object]) -> str:
    minor, currency = facts["amount_minor"], facts["currency"]
    if not isinstance(minor, int):
        return "without an amount"
    try:
        return display(minor, str(currency))
    except Refusal:  # a word of theirs that is no ISO currency: shown as it came
        return f"{minor} minor units of {currency or 'no currency'}"


def _as_id(marker: object) -> UUID | None:
    try:
        found = UUID(str(marker))
    except ValueError:
        return None
    return found if str(found) == marker else None
