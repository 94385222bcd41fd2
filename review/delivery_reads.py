"""Reads about what was told to whom: the list of deliveries, its counts, and those of one refund."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Min, Prefetch, Q, QuerySet

from reconciliation import outbox_receivers as receivers
from reconciliation.models import Consequence, Delivery, DeliveryTry, Line

_UNDER_WAY = Q(state__in=["waiting", "sending"])
TABS = {
    "given_up": Q(state="given_up"),
    "failing": _UNDER_WAY & ~Q(last_because=""),
    "waiting": _UNDER_WAY & Q(last_because=""),
    "delivered": Q(state="delivered"),
}
# Delivered ones only grow; more than so many are not counted.
_COUNT_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Who is told in this installation, and what has not become messages yet."""

    receivers: tuple[str, ...]
    mail: bool
    unread_count: int
    unread_since: datetime | None

    @property
    def nobody(self) -> bool:
        return not self.receivers and not self.mail


def told() -> Told:
    waiting = Consequence.objects.filter(expanded_at=None)
    found = waiting.aggregate(count=Count("pk"), since=Min("created_at"))
    return Told(
        receivers=tuple(sorted(settings.CALLBACKS)),
        mail=receivers.writes_mail(),
        unread_count=found["count"],
        unread_since=found["since"],
    )


def counts() -> dict[str, int]:
    """By tab; at most 200 of each."""
    return {tab: Delivery.objects.filter(where)[:_COUNT_MAX].count() for tab, where in TABS.items()}


def listed(tab: str, *, after: tuple[datetime, UUID] | None) -> QuerySet[Delivery]:
    """The deliveries of a tab, the newest first, after one of them; all for another tab."""
    found = Delivery.objects.filter(TABS.get(tab, Q()))
    if after is not None:
        at, last = after
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=last))
    return _whole(found).order_by("-created_at", "-pk")


def one(delivery_id: UUID) -> Delivery | None:
    return _whole(Delivery.objects.filter(pk=delivery_id)).first()


def of_operation(operation_id: UUID) -> list[Line]:
    """What was told about one refund, the newest last."""
    return list(
        Line.objects.filter(operation=operation_id).select_related("delivery").order_by("pk")
    )


def _whole(found: QuerySet[Delivery]) -> QuerySet[Delivery]:
    return found.prefetch_related(
        Prefetch("lines", Line.objects.order_by("pk")),
        Prefetch("tries", DeliveryTry.objects.order_by("pk")),
    )
