"""What people settled by hand, the newest first: who signed, on what, and how often of late."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet

from reconciliation.choices import STILL_UNKNOWN, TITLES
from reconciliation.models import CaseStatement, Ruling
from review.paging import PAGE_ROWS

LOOK_BACK: Final = timedelta(days=30)
_IN_FORCE = Q(end__outcome="in_force") & ~Q(choice=STILL_UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """One ruling that is in force. `signers` in the order of their signatures, once each;
    `ref` and `statements` are what it rests on, empty where it rests on neither."""

    ruling: Ruling
    title: str
    at: datetime
    signers: tuple[str, ...]
    ref: str
    statements: tuple[str, ...]


def listed(after: tuple[datetime, int] | None) -> list[Settled]:
    """One page and one row more, after (instant of the end, id) of a ruling."""
    found = _in_force().order_by("-end__at", "-pk")
    if after is not None:
        at, last = after
        found = found.filter(Q(end__at__lt=at) | Q(end__at=at, pk__lt=last))
    rulings = list(found[: PAGE_ROWS + 1])
    names: dict[int, list[str]] = {}
    attached = CaseStatement.objects.filter(case__in=[each.case_id for each in rulings])
    for case_id, name in attached.order_by("at").values_list("case_id", "name"):
        names.setdefault(case_id, []).append(name)
    return [_settled(each, tuple(names.get(each.case_id, ()))) for each in rulings]


def signed_lately(now: datetime) -> list[tuple[str, int]]:
    """Who signed how many that came into force in the last 30 days, the most first."""
    counted: Counter[str] = Counter()
    for first, second in _in_force(end__at__gte=now - LOOK_BACK).values_list(
        "first_by__username", "end__by__username"
    ):
        counted.update({first, second} - {None})
    return sorted(counted.items(), key=lambda each: (-each[1], each[0]))


def _in_force(**more: Any) -> QuerySet[Ruling]:
    return Ruling.objects.filter(_IN_FORCE, **more).select_related(
        "first_by",
        "end__by",
        "case__operation__order",
        "case__payment__order",
    )


def _settled(ruling: Ruling, statements: tuple[str, ...]) -> Settled:
    second = ruling.end.by.username if ruling.end.by else ""
    signers = dict.fromkeys(name for name in (ruling.first_by.username, second) if name)
    testimony = ruling.said.get("testimony") or {}
    return Settled(
        ruling=ruling,
        title=TITLES[ruling.choice],
        at=ruling.end.at,
        signers=tuple(signers),
        ref=str(
            ruling.said.get("ref") or testimony.get("ref") or ruling.said.get("reference") or ""
        ),
        statements=statements,
    )
