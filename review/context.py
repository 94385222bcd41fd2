"""What stands around every page: who reads, what waits, and what stops sending."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from refunds.queries import pages
from review import (
    access,
    case_reads,
    keys,
    people,
    preferences,
    roles,
    step_up,
)
from review.presenters.words import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry of the rail: `page` is the name of an address."""

    page: str
    word: str
    icon: str
    current: bool
    count: int | None = None

    @property
    def url(self) -> str:
        return reverse(self.page)

    @property
    def key(self) -> str:
        """The key after `g` that opens it; empty where it has none."""
        return keys.GO.get(self.page, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The frame of a page; drawn only by full pages, so fragments cost none of its queries."""

    reader: str
    roles: str
    items: list[Item]
    halts: list[pages.Halt]
    sandbox: bool
    clock: Clock
    theme: str
    shortcuts: bool
    second_factor_off: bool
    confirmed_seconds: int
    keys: list[keys.Key]

    @property
    def now_seconds(self) -> int:
        return int(self.clock.now.timestamp())

    @property
    def utc_now(self) -> str:
        return f"{self.clock.now.astimezone(UTC):%H:%M:%S} UTC"

    @property
    def local_now(self) -> str:
        """The reader's own time, where it is not UTC."""
        local = self.clock.local(self.clock.now)
        return f"{local:%H:%M}" if local.utcoffset() else ""


def console(request: HttpRequest) -> dict[str, Any]:
    return {"shell": SimpleLazyObject(lambda: _shell(request))}


def counts(request: HttpRequest) -> case_reads.Counts:
    """The counts of this request, read once."""
    known = getattr(request, "aftersend_counts", None)
    if not isinstance(known, case_reads.Counts):
        known = case_reads.counts()
        request.aftersend_counts = known  # type: ignore[attr-defined]
    return known


def _shell(request: HttpRequest) -> Shell:
    signed_in = request.user.is_authenticated
    who = access.viewer(request) if signed_in else None
    reads = who is not None and who.may(roles.SEE)
    chosen = preferences.of(who.person if who else None)
    items = _items(request, reads=reads) if who else []
    return Shell(
        reader=who.person.username if who else "",
        roles=", ".join(role.replace("_", " ") for role in sorted(who.roles)) if who else "",
        items=items,
        keys=keys.help_of(who.roles if who else (), _ways(items)),
        halts=who.halts if who and reads else [],
        sandbox=settings.SANDBOX,
        clock=who.clock if who else Clock(timezone.now(), ZoneInfo("UTC")),
        theme=preferences.theme(request, chosen),
        second_factor_off=not settings.SECOND_FACTOR,
        confirmed_seconds=step_up.left_seconds(request) if reads else 0,
        shortcuts=chosen.shortcuts,
    )


def _ways(items: list[Item]) -> dict[str, str]:
    """The second key of every page that the reader may go to, and the page's words."""
    ways = {item.key: item.word.lower() for item in items if item.key}
    return ways | {keys.GO["profile"]: "profile"}


def _items(request: HttpRequest, *, reads: bool) -> list[Item]:
    here = request.resolver_match.url_name if request.resolver_match else ""
    home = Item(page="home", word="My work", icon="n-work", current=here == "home")
    status = Item(
        page="status",
        word="Status",
        icon="n-status",
        current=here in ("status", "order_status"),
    )
    statuses = [status] if access.viewer(request).may(roles.SEE_STATUS) else []
    if not reads:
        return [home, *statuses]
    waits = counts(request)
    return [
        home,
        Item(
            page="approvals",
            word="Approvals",
            icon="s-authorized",
            current=here
            in (
                "approvals",
                "approve",
                "reject",
                "review_ticked",
                "approve_ticked",
                "ticked_result",
            ),
            count=waits.waiting,
        ),
        Item(
            page="unknown",
            word="Unknown",
            icon="s-unknown",
            current=here in ("unknown", "together", "by_hand") or str(here).startswith("case"),
            count=waits.queue,
        ),
        Item(
            page="orders",
            word="Orders",
            icon="n-order",
            current=here in ("orders", "order", "propose", "freeze", "unfreeze"),
        ),
        *statuses,
        Item(
            page="sending",
            word="Providers",
            icon="n-provider",
            current=str(here).startswith("sending"),
        ),
        Item(
            page="alerts",
            word="Alerts",
            icon="n-alert",
            current=here in ("alerts", "alarm_acknowledge"),
            count=waits.alarms or None,
        ),
        Item(
            page="deliveries",
            word="Deliveries",
            icon="k-notice",
            current=here in ("deliveries", "delivery_replay"),
            count=waits.given_up or None,
        ),
        *_admins(request, str(here)),
    ]


def _admins(request: HttpRequest, here: str) -> list[Item]:
    """Owners find their agents from their profile; the rail has them for admins."""
    if not access.viewer(request).may(roles.ADMINISTER):
        return []
    current = here.startswith(("agent", "key_"))
    waiting = people.waiting_for(access.viewer(request).person)
    return [
        Item(page="agents", word="Agents", icon="k-agent", current=current),
        Item(
            page="people",
            word="People",
            icon="k-person",
            current=here.startswith("people"),
            count=waiting or None,
        ),
    ]
