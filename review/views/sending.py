"""What stops sending: the accounts with their pauses, and the one button that halts everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds.domain.errors import Refusal
from refunds.ledger import accepted_now
from refunds.ledger import sending as verbs
from refunds.providers import registry
from refunds.queries import pages
from refunds.text import check_text
from review import access, intent, polled, quarantine_page, roles
from review.access import Viewer
from review.intent import Hidden, Pressed
from review.paging import signature
from review.presenters.sentences import what_may_be_done
from review.quarantine_page import Standing

REASON_LENGTH_MIN = 10
REASON_LENGTH_MAX = 300
POLL_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """One provider account: does it send, and how much waits for it."""

    name: str
    mode: str
    can: list[str]
    halt: pages.Halt | None
    waiting: int
    first_ends_at: datetime | None
    own_pause: bool
    form: Hidden


@require_GET
def accounts(request: HttpRequest) -> HttpResponse:
    """Which accounts send; `done` is a press of this reader, `since` a poll."""
    who = access.require(request, roles.SEE)
    if "since" in request.GET:
        now = _marks(pages.halts(), pages.waiting_by_account(), quarantine_page.standing(who))
        return polled.answer(request, now)
    return _page(request, intent.pressed_before(request))


def _page(request: HttpRequest, pressed: Pressed | None, *, about: str = "") -> HttpResponse:
    who = access.viewer(request)
    halts = pages.halts()
    waiting = pages.waiting_by_account()
    stop = next((each for each in halts if each.kind == "stop"), None)
    quarantine = quarantine_page.standing(who)
    context: dict[str, Any] = {
        "clock": who.clock,
        "stop": stop,
        "quarantine": quarantine,
        "rows": [_row(name, halts, waiting, who) for name in sorted(registry.accounts())],
        "waiting": sum(count for count, _ in waiting.values()),
        "stop_form": _drawn(stop),
        "may_stop": who.may(roles.STOP),
        "may_pause": who.may(roles.PAUSE),
        "may_start": who.may(roles.START),
        "own_stop": stop is not None and stop.by == who.person.username,
        "pressed": pressed,
        "about": about,
        "typed": request.POST,
        "poll_seconds": POLL_SECONDS,
        "signature": signature(_marks(halts, waiting, quarantine)),
    }
    status = pressed.status if pressed else 200
    return render(request, "review/sending.html", context, status=status)


def _marks(
    halts: list[pages.Halt],
    waiting: dict[str, tuple[int, datetime]],
    quarantine: Standing | None,
) -> list[tuple[object, int]]:
    """What makes the page another one: what stops, how much waits, what a quarantine still lacks."""
    marks: list[tuple[object, int]] = [
        (f"{each.kind} {each.account} {each.at.isoformat()}", 0) for each in halts
    ]
    marks += [(name, count) for name, (count, _) in waiting.items()]
    if quarantine is not None:
        marks.append((quarantine_page.digest(quarantine.row), len(quarantine.missing)))
    return marks


def _row(
    name: str,
    halts: list[pages.Halt],
    waiting: dict[str, tuple[int, datetime]],
    who: Viewer,
) -> AccountRow:
    account = registry.accounts()[name]
    halt = next((each for each in halts if each.account == name), None)
    count, first = waiting.get(name, (0, None))
    return AccountRow(
        name=name,
        mode=account.mode,
        can=what_may_be_done(account.contract, accepted_now(name)),
        halt=halt,
        waiting=count,
        first_ends_at=first,
        own_pause=halt is not None and halt.kind == "person" and halt.by == who.person.username,
        form=_drawn(halt),
    )


def _drawn(halt: pages.Halt | None) -> Hidden:
    """A pause or stop has no version of its own: 1 while it lasts, 0 otherwise."""
    return intent.drawn(version=int(halt is not None), shown_digest=_digest(halt))


def _digest(halt: pages.Halt | None) -> str:
    return intent.digest_of(*([halt.kind, halt.at.isoformat(), halt.by] if halt else ["sending"]))


@require_POST
def stop(request: HttpRequest) -> HttpResponse:
    """The big stop. Posts intent, obj_version, shown_digest, reason. Never refused as stale."""
    who = access.require(request, roles.STOP, "sending")

    def act(hidden: Hidden) -> dict[str, Any]:
        stopped = verbs.stop_everything(by=who.person.username, reason=_reason(request))
        return {"act": "stop", "stop": stopped.pk, "by": stopped.stopped_by}

    return press(request, "stop", "sending", act)


@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """End the stop, by another person than the one who pressed it."""
    who = access.require(request, roles.START, "sending")

    def act(hidden: Hidden) -> dict[str, Any]:
        verbs.start_again(by=who.person.username)
        return {"act": "start"}

    return press(request, "start", "sending", act)


@require_POST
def pause(request: HttpRequest, account: str) -> HttpResponse:
    """Pause one account. Posts intent, obj_version, shown_digest, reason."""
    who = access.require(request, roles.PAUSE, account)
    _require_known(account)

    def act(hidden: Hidden) -> dict[str, Any]:
        reason = _reason(request)
        if not verbs.pause(account, kind="person", reason=reason, by=who.person.username):
            raise _moved(account)
        return {"act": "pause", "account": account}

    return press(request, "pause", account, act)


@require_POST
def resume(request: HttpRequest, account: str) -> HttpResponse:
    """End an account's pause; a person's pause is ended by another person."""
    who = access.require(request, roles.START, account)
    _require_known(account)

    def act(hidden: Hidden) -> dict[str, Any]:
        halt = next((each for each in pages.halts() if each.account == account), None)
        verbs.resume(account, by=who.person.username)
        hidden.require_same(
            version=int(halt is not None),
            shown_digest=_digest(halt),
            moved=f"{account} was paused anew while you looked.",
        )
        return {"act": "resume", "account": account}

    return press(request, "resume", account, act)


def press(
    request: HttpRequest, form: str, about: str, act: Callable[[Hidden], dict[str, Any]]
) -> HttpResponse:
    """Press a form of this page, and show the page with what it led to."""
    pressed = intent.press(request, form=form, object_ref=about, act=act)
    if pressed.row is not None and not pressed.repeated:
        done = reverse("sending", query={"done": pressed.row.pk})
        return HttpResponseRedirect(done, status=303)
    return _page(request, pressed, about=about)


def _reason(request: HttpRequest) -> str:
    reason = request.POST.get("reason", "").strip()
    if len(reason) < REASON_LENGTH_MIN:
        raise Refusal(
            "reason_too_short",
            f"Not recorded. The reason needs {REASON_LENGTH_MIN} characters or more.",
            what_to_do="Say why, for whoever has to start it again.",
            field="reason",
        )
    return check_text(reason, field="reason", length_max=REASON_LENGTH_MAX)


def _require_known(account: str) -> None:
    if account not in registry.accounts():
        raise Http404


def _moved(account: str) -> Refusal:
    return Refusal(
        "stale_page",
        f"Not recorded. {account} is paused already.",
        status=409,
        what_to_do="Look at its cause below.",
    )
