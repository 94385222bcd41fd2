"""How one account has answered lately: reads of its page, each over an index or a short time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Q

from reconciliation.models import AccountSweep, Notice, NoticeRefused
from refunds.models import Attempt, Evidence

DAY = timedelta(days=1)
LAST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Counts are of the last 24 hours; a last time is None where nothing happened in them."""

    sends: int
    trusted: int
    ambiguous: int
    turned_away: int
    last_sent_at: datetime | None
    lookups: int
    told: int
    last_told_at: datetime | None
    last: list[Attempt]
    sweeps: list[AccountSweep]
    last_notice_at: datetime | None
    notices_waiting: int
    notices_refused: int

    @property
    def ambiguous_share(self) -> str:
        """ "2.5 %", or empty where nothing was sent."""
        return f"{100 * self.ambiguous / self.sends:.3g} %" if self.sends else ""


def health(account: str, now: datetime) -> Health:
    """What the account answered since yesterday, and when its lists and notices last came."""
    since = now - DAY
    attempts = Attempt.objects.filter(recorded_at__gt=since, operation__provider_account=account)
    closed = attempts.exclude(closed_at=None)
    lost = Q(outcome="unanswered") | Q(outcome=None)
    sends = closed.aggregate(
        sends=Count("no"),
        ambiguous=Count("no", filter=lost),
        turned_away=Count("no", filter=Q(outcome__in=["turned_away", "not_sent"])),
        trusted=Count("no", filter=Q(outcome__in=["confirmed", "accepted", "refused"])),
        last_sent_at=Max("first_byte_at"),
    )
    looked = Evidence.objects.filter(
        kind="lookup", stored_at__gt=since, operation__provider_account=account
    )
    told = ~Q(facts__verdict="cannot_tell")
    lookups = looked.aggregate(
        lookups=Count("pk"),
        told=Count("pk", filter=told),
        last_told_at=Max("stored_at", filter=told),
    )
    newest = Notice.objects.filter(provider_account=account).order_by("-pk")
    refused = NoticeRefused.objects.filter(provider_account=account, minute__gt=since)
    return Health(
        **sends,
        **lookups,
        last=list(closed.select_related("operation__order").order_by("-recorded_at")[:LAST]),
        sweeps=list(AccountSweep.objects.filter(provider_account=account).order_by("-kind")),
        last_notice_at=newest.values_list("stored_at", flat=True).first(),
        notices_waiting=Notice.objects.filter(provider_account=account, applied_at=None).count(),
        notices_refused=sum(refused.values_list("count", flat=True)),
    )


def newest(account: str, now: datetime) -> list[str]:
    """The last of everything that `health` tells of, as texts that differ when there is a newer."""
    attempts = Attempt.objects.filter(
        recorded_at__gt=now - DAY, operation__provider_account=account, closed_at__isnull=False
    )
    sent = attempts.order_by("-recorded_at").values_list("recorded_at", flat=True).first()
    sweeps = AccountSweep.objects.filter(provider_account=account).values_list(
        "kind", "completed_at", "because"
    )
    notices = Notice.objects.filter(provider_account=account)
    newest_notice = notices.order_by("-pk").values_list("pk", flat=True).first()
    return [f"sent {sent}", f"notice {newest_notice}", *(f"list {each}" for each in sweeps)]
