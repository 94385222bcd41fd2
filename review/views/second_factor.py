"""Setting up, and taking away, an authenticator app, passkeys and recovery codes."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.internal.flows import delete_and_cleanup, post_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.flows import generate_recovery_codes
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.flows import activate_totp
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from allauth.mfa.webauthn.internal.auth import begin_registration
from allauth.mfa.webauthn.internal.flows import add_authenticator
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from refunds.models import Person
from review import access, attempts, proof, step_up
from review.roles import DECIDERS
from review.sessions import end_sessions


@require_GET
def set_up(request: HttpRequest) -> HttpResponse:
    """The factors of the reader, and the forms for another one."""
    step_up.require_for_own_account(request, "look at your second factors")
    return _page(request)


@require_POST
def add_app(request: HttpRequest) -> HttpResponse:
    """Add an authenticator app. Posts `code`, of the secret that the page showed."""
    step_up.require_for_own_account(request, "add an authenticator app")
    person = cast(Person, request.user)
    attempt = attempts.begin_proof(request, person)
    if attempt.wait_seconds:
        return _page(
            request, problem=f"Too many attempts. Try again in {attempt.minutes_to_wait} min."
        )
    if Authenticator.objects.filter(user=person, type=Authenticator.Type.TOTP).exists():
        return _page(request, problem="You have an authenticator app already; remove it first.")
    form = ActivateTOTPForm(user=person, data=request.POST)
    if not form.is_valid():
        return _page(
            request,
            secret=form.secret,
            problem="That code does not fit the secret below. Check the clock of your device.",
        )
    attempt.succeeded()
    added, codes = activate_totp(request, form)
    return _added(request, added, codes)


@require_POST
def add_passkey(request: HttpRequest) -> HttpResponse:
    """Add a passkey. Posts `credential`, as the browser made it, and `name`."""
    step_up.require_for_own_account(request, "add a passkey")
    form = AddWebAuthnForm(user=request.user, data=request.POST)
    if not form.is_valid():
        return _page(request, problem="The browser's answer was not accepted. Try once more.")
    name = form.cleaned_data["name"][:60]
    added, codes = add_authenticator(request, name=name, credential=form.cleaned_data["credential"])
    return _added(request, added, codes)


@require_POST
def new_codes(request: HttpRequest) -> HttpResponse:
    """New recovery codes, shown in this answer only; the old ones end."""
    step_up.require_for_own_account(request, "make new recovery codes")
    if not proof.enrolled(cast(Person, request.user)):
        return _page(request, problem="Set up an app or a passkey first.")
    return _page(request, codes=generate_recovery_codes(request).wrap().get_unused_codes())


@require_POST
def remove(request: HttpRequest, factor: int) -> HttpResponse:
    """Remove an app or a passkey; who decides keeps one."""
    step_up.require_for_own_account(request, "remove a second factor")
    person = cast(Person, request.user)
    theirs = Authenticator.objects.filter(user=person, type__in=proof.FACTORS)
    found = theirs.filter(pk=factor).first()
    if found is None:
        raise Http404
    decides = not access.viewer(request).roles.isdisjoint(DECIDERS)
    if settings.SECOND_FACTOR and decides and theirs.count() == 1:
        return _page(request, problem="Not removed. Who decides needs one: add another one first.")
    delete_and_cleanup(request, found)
    end_sessions(person, but=request.session.session_key)
    return _page(request, done="Removed. Your other sessions ended.")


def _added(request: HttpRequest, added: Authenticator, codes: Authenticator | None) -> HttpResponse:
    """It has just been used, which counts as a proof; sessions that began without it end."""
    post_authentication(request, added)
    request.session.cycle_key()
    end_sessions(added.user, but=request.session.session_key)
    shown = codes.wrap().get_unused_codes() if codes else None
    return _page(request, codes=shown, done="Your second factor is set up.")


def _page(
    request: HttpRequest,
    *,
    problem: str = "",
    done: str = "",
    secret: str = "",
    codes: list[str] | None = None,
) -> HttpResponse:
    person = cast(Person, request.user)
    factors = list(Authenticator.objects.filter(user=person).order_by("pk"))
    has_app = any(each.type == Authenticator.Type.TOTP for each in factors)
    left = [each for each in factors if each.type == Authenticator.Type.RECOVERY_CODES]
    context: dict[str, Any] = {
        "clock": access.viewer(request).clock,
        "factors": [each for each in factors if each.type in proof.FACTORS],
        "codes_left": len(left[0].wrap().get_unused_codes()) if left else 0,
        "codes": codes,
        "problem": problem,
        "done": done,
        "required": settings.SECOND_FACTOR
        and not access.viewer(request).roles.isdisjoint(DECIDERS),
        "passkey": json.dumps(begin_registration(person, passwordless=False)),
    }
    if not has_app:
        context |= _app(person, secret or ActivateTOTPForm(user=person).secret)
    status = 422 if problem else 200
    return render(request, "review/second_factor.html", context, status=status)


def _app(person: Person, secret: str) -> dict[str, str]:
    """The secret as text and as a picture for the app's camera."""
    adapter = get_adapter()
    svg = adapter.build_totp_svg(adapter.build_totp_url(person, secret))
    picture = base64.b64encode(svg.encode()).decode()
    return {"secret": secret, "picture": f"data:image/svg+xml;base64,{picture}"}
