"""The page of one operation: what it is, what happened, and what the provider's record says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from reconciliation import outbox_receivers
from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.say import Said, say
from refunds.domain.sentences import Told as Words
from refunds.models import Operation
from refunds.queries import pages, results
from review import access, as_seen, case_panel, case_reads, facts, intent, proposal, roles
from review.intent import Pressed
from review.paging import whole
from review.presenters import case as case_words
from review.presenters import evidence, rows, sentences
from review.presenters.facts import CaseFacts
from review.presenters.timeline import timeline
from review.presenters.trail import Entry, Trail
from review.presenters.words import actor_word
from review.views import deliveries


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Everything under the head of the page that a poll may replace."""

    slip: proposal.Slip
    sentence: str
    said: Said
    bar: rows.Bar | None
    case: CaseFacts | None
    case_panel: case_panel.Panel | None
    support: str
    only_a_person: bool
    panel: evidence.Panel
    entries: list[Entry]
    mark: str


@require_GET
def operation(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """The page; `evidence` chooses an item, `done` a press, `at` a version of the operation;
    `since` is a poll (204 or parts), with `buttons` where the page has any."""
    since = request.GET.get("since")
    if since is not None:
        access.require(request, roles.SEE)
        if since == _mark(pages.version_of(operation_id), case_reads.mark_of(operation_id)):
            return HttpResponse(status=204)
    found = access.operation(request, operation_id, roles.SEE)
    at = whole(request.GET.get("at"))
    if at is not None and since is None:
        return _as_seen(request, found, at)
    pressed = intent.pressed_before(request)
    if since is not None:
        context = _context(request, found, pressed)
        return render(request, "review/operation.html#moved", context | {"oob": True})
    return page(request, found, pressed)


def _as_seen(request: HttpRequest, found: Operation, version: int) -> HttpResponse:
    """The operation at one of its versions, with what was known until it moved on; no form."""
    who = access.viewer(request)
    seen = as_seen.read(found, version, who)
    if seen is None:
        raise Http404
    chosen = whole(request.GET.get("evidence"))
    context = {
        "clock": who.clock,
        "seen": seen,
        "op": found,
        "shown": {
            "panel": evidence.panel(seen.trail, chosen, settings.LIMITS, who.clock),
            "entries": timeline(seen.trail, who.clock, until=seen.until),
        },
        "url": reverse("operation", args=[found.pk]),
    }
    return render(request, "review/as_seen.html", context)


def page(request: HttpRequest, found: Operation, pressed: Pressed | None) -> HttpResponse:
    """The whole page, with what a press led to; a refused press has its own status."""
    context = _context(request, found, pressed)
    status = pressed.status if pressed else 200
    return render(request, "review/operation.html", context, status=status)


def _context(request: HttpRequest, found: Operation, pressed: Pressed | None) -> dict[str, Any]:
    who = access.viewer(request)
    told = _told(found, who, whole(request.GET.get("evidence")))
    has_buttons = bool(told.slip.can_take_back or told.slip.can_withdraw or told.case_panel)
    # A poll says whether its page has buttons; only then are they off after a change.
    polled = "since" in request.GET
    return {
        "clock": who.clock,
        "told": told,
        "slip": told.slip,
        "op": found,
        "pressed": pressed,
        "has_buttons": has_buttons,
        "drew_buttons": request.GET.get("buttons") == "on" if polled else has_buttons,
        "ended": found.state in states.ENDED and told.case is None,
        "url": reverse("operation", args=[found.pk]),
        "sees_status": who.may(roles.SEE_STATUS),
        "told_lines": deliveries.lines_of(found.pk, who),
        "told_nobody": not outbox_receivers.anybody(),
        **case_panel.context(request, told.case_panel),
    }


def _told(found: Operation, who: access.Viewer, chosen: int | None) -> Told:
    slip = proposal.slip(found, who)
    past = pages.history(found)
    found_cases = case_reads.cases_of(found.pk)
    cases = [facts.case(each) for each in found_cases]
    trail = Trail(
        op=slip.facts,
        events=tuple(facts.event(each) for each in past.events),
        attempts=tuple(facts.attempt(each) for each in past.attempts),
        evidence=tuple(facts.evidence(each) for each in past.evidence),
        cases=tuple(cases),
        approvals=tuple(slip.all_given),
        booked_ref=slip.booked_ref,
        steps=tuple(facts.step(each) for each in case_reads.steps_of(found_cases)),
        remedies=tuple(facts.remedy(each) for each in slip.remedies),
    )
    uncertain = found.state in states.UNCERTAIN
    case = next((each for each in cases if each.closed_at is None), None)
    return Told(
        slip=slip,
        sentence=sentences.state_sentence(found.state, _words(trail, slip), who.clock.local_now),
        said=say(
            results.about_read(found, past.events, slip.failed_checks),
            who.clock.now,
            who.clock.zone,
        ),
        bar=_bar(slip, case, who) if uncertain else None,
        case=case,
        case_panel=_panel(found, found_cases, who),
        support=_support(trail, found) if uncertain and past.attempts else "",
        only_a_person=uncertain and sentences.only_a_person(slip.facts.contract),
        panel=evidence.panel(trail, chosen, settings.LIMITS, who.clock),
        entries=timeline(trail, who.clock),
        mark=_mark(
            (found.version, found.lookup_started, len(past.evidence)),
            sum(each.version for each in found_cases),
        ),
    )


def _panel(found: Operation, cases: list[Case], who: access.Viewer) -> case_panel.Panel | None:
    open_one = next((each for each in cases if each.closed_at is None), None)
    if open_one is None:
        return None
    open_one.operation, open_one.payment = found, found.payment
    found.payment.order = found.order
    return case_panel.panel(open_one, who)


def _support(trail: Trail, found: Operation) -> str:
    headers = [each.facts.get("headers") or {} for each in trail.evidence if each.kind == "answer"]
    return case_words.support_text(
        trail.op,
        found.provider_key,
        [each.first_byte_at for each in trail.attempts if each.first_byte_at],
        [each["request-id"] for each in headers if each.get("request-id")],
        trail.booked_ref,
    )


def _bar(slip: proposal.Slip, case: CaseFacts | None, who: access.Viewer) -> rows.Bar:
    """One due time on the page: the case's, once there is one."""
    if case is not None:
        return rows.case_bar(case, slip.facts, who.clock)
    return rows.target_bar(slip.facts, who.clock)


def _mark(numbers: tuple[int, int, int] | None, cases: int) -> str:
    return ".".join(str(number) for number in (*(numbers or ()), cases))


def _words(trail: Trail, slip: proposal.Slip) -> Words:
    """What the sentence may name, from what the page has read already."""
    op, last = slip.op, trail.events[-1]
    sent = [each.at for each in trail.events if each.to_state == states.SUBMITTING]
    booked = [each.ref for each in slip.refunds if each.operation_id == op.pk]
    by_policy = any(each.event == "policy_cleared" for each in trail.events)
    return Words(
        asked_by=slip.facts.proposer_words,
        approved_by="policy" if by_policy else ", ".join(each.approver for each in slip.given),
        order_version=op.send_version,
        expires_at=op.expires_at,
        sent_at=sent[-1] if sent else None,
        entered_at=last.at,
        entered_by=actor_word(last.actor),
        event=last.event,
        because=str(last.detail.get("because") or last.detail.get("reason") or ""),
        stale_cause=op.stale_cause,
        needs_customer=op.pending_reason == "needs_customer",
        provider_refund_ref=booked[0] if booked else "",
        failed_checks=slip.failed_checks,
    )
