"""One provider account: its facts, what automation may do because of them, and how it answers."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds import accepting
from refunds.ledger import accepted_now
from refunds.models import AcceptedFact
from refunds.providers import registry
from review import accepted_page, access, intent, polled, provider_reads, roles
from review.access import Viewer
from review.intent import Hidden, Pressed
from review.paging import signature, whole
from review.presenters import contract as words
from review.presenters.sentences import what_may_be_done
from review.views.sending import POLL_SECONDS


@require_GET
def account(request: HttpRequest, account: str) -> HttpResponse:
    """The account's page; 404 for one that is not configured. `done` is a press of the reader,
    `since` a poll."""
    who = access.require(request, roles.SEE)
    if "since" in request.GET and account in registry.accounts():
        return polled.answer(request, _marks(account, who))
    return _page(request, account, intent.pressed_before(request))


def _page(
    request: HttpRequest, account: str, pressed: Pressed | None, *, about: str = ""
) -> HttpResponse:
    who = access.viewer(request)
    found = registry.accounts().get(account)
    if found is None:
        raise Http404
    context: dict[str, Any] = {
        "clock": who.clock,
        "account": found,
        "host": urlsplit(found.base_url).netloc,
        "halt": next((each for each in who.halts if each.account == account), None),
        "facts": words.fact_rows(found.contract),
        "can": what_may_be_done(found.contract, accepted_now(account)),
        "patience": words.patience(found.contract),
        "health": provider_reads.health(account, who.clock.now),
        "accepted": accepted_page.rows(account, who),
        "acceptable": accepted_page.acceptable(found.contract),
        "propose_form": intent.drawn(version=0, shown_digest="accept"),
        "may_accept": who.may(roles.ACCEPT_FACT),
        "pressed": pressed,
        "about": about,
        "typed": request.POST,
        "poll_seconds": POLL_SECONDS,
        "signature": signature(_marks(account, who)),
    }
    status = pressed.status if pressed else 200
    return render(request, "review/provider.html", context, status=status)


def _marks(account: str, who: Viewer) -> list[tuple[object, int]]:
    """What makes the page another one: a pause, a figure, a send, a list that was read, a notice."""
    halts = [each for each in who.halts if each.account == account]
    accepted = accepted_page.rows(account, who)
    return [
        *((f"{each.kind} {each.at.isoformat()}", 0) for each in halts),
        *((f"fact {each.fact.pk} {each.standing}", 0) for each in accepted),
        *((each, 0) for each in provider_reads.newest(account, who.clock.now)),
    ]


@require_POST
def propose_fact(request: HttpRequest, account: str) -> HttpResponse:
    """Propose a figure that the provider does not state. Posts the hidden values, `fact`,
    `seconds`, `scope`, `days`, `reason`."""
    who = access.require(request, roles.ACCEPT_FACT, account)
    if account not in registry.accounts():
        raise Http404

    def act(hidden: Hidden) -> dict[str, Any]:
        row = accepting.propose(
            account,
            request.POST.get("fact", ""),
            whole(request.POST.get("seconds")) or 0,
            request.POST.get("scope", ""),
            reason=request.POST.get("reason", ""),
            days=whole(request.POST.get("days")) or 0,
            by=who.person,
        )
        return {"act": "fact_propose", "fact": row.pk}

    return _press(request, account, "fact_propose", account, act, about="propose")


@require_POST
def confirm_fact(request: HttpRequest, fact_id: int) -> HttpResponse:
    """Confirm a proposed figure, as the second of two people."""
    who = access.require(request, roles.ACCEPT_FACT, f"fact {fact_id}")
    row = _stored(fact_id)

    def act(hidden: Hidden) -> dict[str, Any]:
        hidden.require_same(
            version=int(row.confirmed_at is not None),
            shown_digest=accepted_page.digest(row),
            moved="Not recorded. The figure is not the one that was on your screen.",
        )
        accepting.confirm(fact_id, by=who.person)
        return {"act": "fact_confirm", "fact": fact_id}

    return _press(request, row.account, "fact_confirm", f"fact {fact_id}", act, about=str(fact_id))


@require_POST
def withdraw_fact(request: HttpRequest, fact_id: int) -> HttpResponse:
    """Withdraw a figure at once; one person is enough. Posts the hidden values and `reason`."""
    who = access.require(request, roles.ACCEPT_FACT, f"fact {fact_id}")
    row = _stored(fact_id)

    def act(hidden: Hidden) -> dict[str, Any]:
        accepting.withdraw(fact_id, by=who.person, because=request.POST.get("reason", ""))
        return {"act": "fact_withdraw", "fact": fact_id}

    return _press(request, row.account, "fact_withdraw", f"fact {fact_id}", act, about=str(fact_id))


def _stored(fact_id: int) -> AcceptedFact:
    row = AcceptedFact.objects.filter(pk=fact_id).first()
    if row is None or row.account not in registry.accounts():
        raise Http404
    return row


def _press(
    request: HttpRequest, account: str, form: str, ref: str, act: Any, *, about: str
) -> HttpResponse:
    pressed = intent.press(request, form=form, object_ref=ref, act=act)
    if pressed.row is not None and not pressed.repeated:
        done = reverse("sending_account", args=[account], query={"done": pressed.row.pk})
        return HttpResponseRedirect(done, status=303)
    return _page(request, account, pressed, about=about)
