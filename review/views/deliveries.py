"""Who was told what: the list of deliveries, and sending one of them once more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from reconciliation import outbox
from reconciliation.models import Delivery, DeliveryTry, Line
from review import access, delivery_reads, intent, roles
from review.access import Viewer
from review.intent import Hidden, Pressed
from review.paging import PAGE_ROWS, cursor_instant
from review.presenters import delivery as words


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One message. `form` is there where this reader may replay it now."""

    row: Delivery
    kind: str
    to: str
    stands: str
    lines: list[Line]
    tries: list[DeliveryTry]
    form: Hidden | None

    @property
    def more_count(self) -> int:
        return len(self.lines) - 1


@require_GET
def deliveries(request: HttpRequest) -> HttpResponse:
    """`tab` given_up, failing, waiting or delivered; without it all. `after`: where a page begins;
    `done`: a press of this reader."""
    access.require(request, roles.SEE)
    return _page(request, intent.pressed_before(request))


@require_POST
def replay(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    """Once more, under the same id. Posts intent, obj_version, shown_digest."""
    who = access.viewer(request)
    found = delivery_reads.one(delivery_id) if who.may(roles.SEE) else None
    if found is None:
        raise Http404
    access.require(request, roles.REPLAY, str(delivery_id))

    def act(hidden: Hidden) -> dict[str, Any]:
        hidden.require_same(
            version=found.fence, shown_digest=_digest(found), moved="It was sent meanwhile."
        )
        outbox.replay(
            delivery_id, by=who.person.username, version=hidden.obj_version, now=timezone.now()
        )
        return {"act": "replay", "receiver": found.receiver}

    pressed = intent.press(request, form="replay", object_ref=str(delivery_id), act=act)
    if pressed.row is not None and not pressed.repeated:
        done = reverse("deliveries", query={"done": pressed.row.pk})
        return HttpResponseRedirect(done, status=303)
    return _page(request, pressed)


def _page(request: HttpRequest, pressed: Pressed | None) -> HttpResponse:
    who = access.viewer(request)
    tab = request.GET.get("tab", "")
    found = list(delivery_reads.listed(tab, after=_after(request))[: PAGE_ROWS + 1])
    shown = found[:PAGE_ROWS]
    context: dict[str, Any] = {
        "clock": who.clock,
        "tab": tab if tab in delivery_reads.TABS else "",
        "counts": delivery_reads.counts(),
        "told": delivery_reads.told(),
        "receivers": [words.receiver_word(each) for each in delivery_reads.told().receivers],
        "rows": [_row(each, who) for each in shown],
        "next": f"{shown[-1].created_at.isoformat()}~{shown[-1].pk}"
        if len(found) > PAGE_ROWS
        else "",
        "may_replay": who.may(roles.REPLAY),
        "pressed": pressed,
    }
    status = pressed.status if pressed else 200
    return render(request, "review/deliveries.html", context, status=status)


def _after(request: HttpRequest) -> tuple[datetime, UUID] | None:
    at, _, last = request.GET.get("after", "").rpartition("~")
    if not last:
        return None
    try:
        return cursor_instant(at), UUID(last)
    except ValueError as error:
        raise Http404 from error


def _row(row: Delivery, who: Viewer) -> Row:
    tried = row.state in ("delivered", "given_up") or row.try_count > 0
    return Row(
        row=row,
        kind=words.KINDS[row.kind],
        to=words.receiver_word(row.receiver),
        stands=stands(row, who),
        lines=list(row.lines.all()),
        tries=list(row.tries.all()),
        form=intent.drawn(version=row.fence, shown_digest=_digest(row))
        if tried and who.may(roles.REPLAY)
        else None,
    )


def stands(row: Delivery, who: Viewer) -> str:
    """How a message stands, in words."""
    return words.standing(
        state=row.state,
        because=row.last_because,
        due_at=row.due_at,
        delivered_at=row.delivered_at,
        clock=who.clock,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLine:
    """One thing that somebody was told about a refund, or is about to be."""

    to: str
    about: str
    stands: str
    at: datetime


def lines_of(operation_id: UUID, who: Viewer) -> list[ToldLine]:
    """Everything that was told about one refund, the newest last."""
    return [
        ToldLine(
            to=words.receiver_word(each.receiver),
            about=each.about,
            stands=stands(each.delivery, who),
            at=each.at,
        )
        for each in delivery_reads.of_operation(operation_id)
    ]


def _digest(row: Delivery) -> str:
    return intent.digest_of(row.state, row.try_count, row.fence)
