"""Agents and keys: who may ask, with which keys, and who gave and ended them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds import credentials, policies
from refunds.models import Agent, Credential
from refunds.queries import agents as queries
from review import access, agent_acts, agents_page, intent, roles
from review.intent import Hidden, Pressed


@require_GET
def agents(request: HttpRequest) -> HttpResponse:
    """Every agent for an admin, to others their own, to read."""
    return _list(request, None)


def _list(request: HttpRequest, pressed: Pressed | None) -> HttpResponse:
    who = access.viewer(request)
    admin = who.may(roles.ADMINISTER)
    rows = agents_page.rows(who, everybodys=admin)
    if not rows and not admin:
        access.require(request, roles.ADMINISTER)
    limits = policies.current()
    context = {
        "clock": who.clock,
        "rows": rows,
        "admin": admin,
        "form": intent.drawn(version=0, shown_digest=""),
        "limits": limits,
        "per_refund": agents_page.in_each(limits.agent_per_refund_minor, limits.currencies),
        "per_day": agents_page.in_each(limits.agent_per_day_minor, limits.currencies),
        "accounts": agents_page.accounts(request.POST.getlist("accounts")),
        "pressed": pressed,
        "typed": request.POST,
    }
    status = pressed.status if pressed else 200
    return render(request, "review/agents.html", context, status=status)


@require_GET
def agent(request: HttpRequest, agent_id: int) -> HttpResponse:
    """One agent with its keys; `done` is a press of this reader."""
    return _page(request, _visible(request, agent_id), intent.pressed_before(request))


def _page(
    request: HttpRequest,
    found: Agent,
    pressed: Pressed | None,
    *,
    shown_once: tuple[Credential, str] | None = None,
) -> HttpResponse:
    """`shown_once` is a new key with its text: on the answer to its first press, and never again."""
    who = access.viewer(request)
    context = {
        "clock": who.clock,
        "page": agents_page.page(found, who),
        "admin": who.may(roles.ADMINISTER),
        "accounts": agents_page.accounts(found.accounts),
        "scopes": credentials.SCOPES,
        "ticked_scopes": request.POST.getlist("scopes") if pressed and pressed.refusal else [],
        "life_days_max": credentials.LIFE_DAYS_MAX,
        "overlaps": agents_page.OVERLAPS,
        "shown_once": shown_once,
        "pressed": pressed,
        "typed": request.POST,
    }
    status = pressed.status if pressed else 200
    return render(request, "review/agent.html", context, status=status)


@require_POST
def create(request: HttpRequest) -> HttpResponse:
    """Posts name, owner (a sign-in name) and accounts (several)."""
    by = access.require(request, roles.ADMINISTER, "agents").person

    def act(hidden: Hidden) -> dict[str, Any]:
        made = agent_acts.create(
            by,
            name=request.POST.get("name", ""),
            owner=request.POST.get("owner", ""),
            accounts=request.POST.getlist("accounts"),
        )
        return {"agent": made.pk}

    pressed = intent.press(request, form="agent_create", object_ref="agents", act=act)
    if pressed.row is not None:
        return _to(pressed, pressed.row.outcome["agent"])
    return _list(request, pressed)


@require_POST
def change_accounts(request: HttpRequest, agent_id: int) -> HttpResponse:
    """Posts accounts (several): those the agent may propose for from its next call on."""

    def act(found: Agent) -> None:
        agent_acts.change_accounts(
            found, access.viewer(request).person, request.POST.getlist("accounts")
        )

    return _agent_press(request, agent_id, "agent_accounts", act)


@require_POST
def pause(request: HttpRequest, agent_id: int) -> HttpResponse:
    """All keys of the agent stop working on their next call."""

    def act(found: Agent) -> None:
        agent_acts.set_active(found, access.viewer(request).person, active=False)

    return _agent_press(request, agent_id, "agent_pause", act)


@require_POST
def resume(request: HttpRequest, agent_id: int) -> HttpResponse:
    """The keys of the agent that have not ended work again."""

    def act(found: Agent) -> None:
        agent_acts.set_active(found, access.viewer(request).person, active=True)

    return _agent_press(request, agent_id, "agent_resume", act)


@require_POST
def create_key(request: HttpRequest, agent_id: int) -> HttpResponse:
    """Posts scopes (several) and days. The answer to the first press shows the key's text."""
    shown: list[tuple[Credential, str]] = []

    def act(found: Agent) -> None:
        shown.append(
            agent_acts.mint(
                found,
                access.viewer(request).person,
                scopes=request.POST.getlist("scopes"),
                days=_whole(request.POST.get("days", "")),
            )
        )

    return _agent_press(request, agent_id, "key_create", act, shown)


@require_POST
def rotate(request: HttpRequest, agent_id: int, prefix: str) -> HttpResponse:
    """Posts overlap (seconds). The answer to the first press shows the new key's text."""
    shown: list[tuple[Credential, str]] = []

    def act(key: Credential) -> None:
        overlap = timedelta(seconds=_whole(request.POST.get("overlap", "")))
        shown.append(agent_acts.rotate(key, access.viewer(request).person, overlap=overlap))

    return _key_press(request, agent_id, prefix, "key_rotate", act, shown)


@require_POST
def revoke(request: HttpRequest, agent_id: int, prefix: str) -> HttpResponse:
    """Posts agent_name, typed by the admin. The key's next call is refused."""

    def act(key: Credential) -> None:
        agent_acts.revoke(
            key,
            access.viewer(request).person,
            typed_name=request.POST.get("agent_name", ""),
        )

    return _key_press(request, agent_id, prefix, "key_revoke", act)


@require_POST
def stored(request: HttpRequest, agent_id: int, prefix: str) -> HttpResponse:
    """Posts the tick `stored`: the admin has put the key's text where the agent reads it."""

    def act(key: Credential) -> None:
        agent_acts.say_stored(
            key, access.viewer(request).person, ticked=request.POST.get("stored") == "on"
        )

    return _key_press(request, agent_id, prefix, "key_stored", act)


def _agent_press(
    request: HttpRequest,
    agent_id: int,
    form: str,
    act: Callable[[Agent], None],
    shown: list[tuple[Credential, str]] | None = None,
) -> HttpResponse:
    access.require(request, roles.ADMINISTER, f"agent:{agent_id}")
    found = _visible(request, agent_id)

    def locked(hidden: Hidden) -> dict[str, Any]:
        now = Agent.objects.select_for_update().get(pk=agent_id)
        hidden.require_same(
            version=0,
            shown_digest=agents_page.agent_digest(now),
            moved=f"Somebody else changed {now.name} in the meantime.",
        )
        act(now)
        return {"prefix": shown[-1][0].prefix} if shown else {}

    pressed = intent.press(request, form=form, object_ref=f"agent:{agent_id}", act=locked)
    return _answer(request, found, pressed, shown)


def _key_press(
    request: HttpRequest,
    agent_id: int,
    prefix: str,
    form: str,
    act: Callable[[Credential], None],
    shown: list[tuple[Credential, str]] | None = None,
) -> HttpResponse:
    access.require(request, roles.ADMINISTER, f"key:{prefix}")
    found = _visible(request, agent_id)
    if not found.credentials.filter(prefix=prefix).exists():
        raise Http404

    def locked(hidden: Hidden) -> dict[str, Any]:
        keys = Credential.objects.select_for_update(of=("self",)).select_related("agent")
        key = keys.get(prefix=prefix)
        hidden.require_same(
            version=0,
            shown_digest=agents_page.key_digest(key),
            moved=f"Somebody else changed the key {prefix} in the meantime.",
        )
        act(key)
        return {"prefix": shown[-1][0].prefix if shown else prefix}

    pressed = intent.press(request, form=form, object_ref=f"key:{prefix}", act=locked)
    return _answer(request, found, pressed, shown)


def _answer(
    request: HttpRequest,
    found: Agent,
    pressed: Pressed,
    shown: list[tuple[Credential, str]] | None,
) -> HttpResponse:
    if pressed.row is not None and not pressed.repeated:
        if not shown:
            return _to(pressed, found.pk)
        return _page(request, _visible(request, found.pk), pressed, shown_once=shown[-1])
    return _page(request, _visible(request, found.pk), pressed)


def _to(pressed: Pressed, agent_id: int) -> HttpResponse:
    assert pressed.row is not None
    url = reverse("agent", args=[agent_id], query={"done": pressed.row.pk})
    return HttpResponseRedirect(url, status=303)


def _visible(request: HttpRequest, agent_id: int) -> Agent:
    """Raises Http404 for an agent that is neither the reader's own nor an admin's to see."""
    who = access.viewer(request)
    owner = None if who.may(roles.ADMINISTER) else who.person
    found = queries.agents(owned_by=owner).filter(pk=agent_id).first()
    if found is None:
        raise Http404
    return found


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
