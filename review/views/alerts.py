"""Alerts: what fires, why, since when and what to do; and that the monitors have data at all."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from reconciliation import alarms as verbs
from review import access, alarm_reads, intent, polled, roles
from review.alarm_reads import Row
from review.intent import Hidden, Pressed
from review.paging import signature
from review.presenters import alarms as words

POLL_SECONDS = 60


@require_GET
def alerts(request: HttpRequest) -> HttpResponse:
    """`tab` open (with what is acknowledged), ended, or watched; `done` is a press of the reader."""
    access.require(request, roles.SEE)
    if "since" in request.GET:
        return _poll(request)
    return _page(request, intent.pressed_before(request))


@require_POST
def acknowledge(request: HttpRequest, alarm_id: int) -> HttpResponse:
    """Say that one has an alarm. Posts intent, obj_version, shown_digest, note."""
    who = access.require(request, roles.ACKNOWLEDGE, alarm_reads.object_ref(alarm_id))
    if alarm_reads.one(alarm_id) is None:
        raise Http404

    def act(hidden: Hidden) -> dict[str, Any]:
        seen = verbs.acknowledge(
            alarm_id, by=who.person, note=request.POST.get("note", ""), now=who.clock.now
        )
        return {"act": "acknowledge", "alarm": alarm_id, "until": seen.until.isoformat()}

    pressed = intent.press(
        request, form="acknowledge", object_ref=alarm_reads.object_ref(alarm_id), act=act
    )
    if pressed.row is not None and not pressed.repeated:
        return HttpResponseRedirect(reverse("alerts", query={"done": pressed.row.pk}), status=303)
    return _page(request, pressed, about=alarm_id)


def _page(request: HttpRequest, pressed: Pressed | None, *, about: int = 0) -> HttpResponse:
    who = access.viewer(request)
    now = who.clock.now
    rows = alarm_reads.open_rows(now)
    tab = request.GET.get("tab", "")
    ran_at, oldest_at = alarm_reads.heartbeat()
    watched = alarm_reads.watched({row.alarm.name for row in rows})
    without = sum(each.state == "no data" for each in watched)
    context: dict[str, Any] = {
        "clock": who.clock,
        "tab": tab if tab in ("ended", "watched") else "",
        "summary": words.summary(len(rows), without, ran_at, oldest_at, who.clock),
        "open": [row for row in rows if row.seen is None],
        "seen": [row for row in rows if row.seen is not None],
        "firing_count": len(rows),
        "ended": alarm_reads.ended_rows(now) if tab == "ended" else [],
        "watched": watched,
        "rounds": alarm_reads.rounds() if tab == "watched" else [],
        "may": who.may(roles.ACKNOWLEDGE),
        "who_may": roles.words_of(roles.ACKNOWLEDGE.roles),
        "pressed": pressed,
        "about": about,
        "typed": request.POST,
        "poll_seconds": POLL_SECONDS,
        "signature": signature(_marks(rows)),
    }
    status = pressed.status if pressed else 200
    return render(request, "review/alerts.html", context, status=status)


def _marks(rows: list[Row]) -> list[tuple[object, int]]:
    """What makes a page another one: an alarm that begins, rises, ends, or is taken by somebody."""
    return [
        (f"{row.alarm.pk} {row.alarm.level} {row.seen.pk if row.seen else ''}", 0) for row in rows
    ]


def _poll(request: HttpRequest) -> HttpResponse:
    now = access.viewer(request).clock.now
    tab = request.GET.get("tab", "")
    url = f"{request.path}?tab={tab}" if tab in ("ended", "watched") else request.path
    return polled.answer(request, _marks(alarm_reads.open_rows(now)), url=url)
