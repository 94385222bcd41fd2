"""One's own account: who one is here, the password, and the way to the second factors."""

from __future__ import annotations

from typing import cast

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from refunds.models import Person
from review import access, attempts, proof, step_up
from review.sessions import end_sessions


@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """Name, roles, second factors, and the form for another password."""
    return _page(request, PasswordChangeForm(cast(Person, request.user)), status=200)


@sensitive_post_parameters()
@require_POST
def password(request: HttpRequest) -> HttpResponse:
    """Change one's own password; every other session of this person ends.

    Posts old_password, new_password1, new_password2.
    """
    step_up.require_for_own_account(request, "change your password")
    person = cast(Person, request.user)
    attempt = attempts.begin_proof(request, person)
    form = PasswordChangeForm(person, request.POST)
    if attempt.wait_seconds:
        return _page(request, form, status=429, minutes_to_wait=attempt.minutes_to_wait)
    if not form.is_valid():
        return _page(request, form, status=422)
    attempt.succeeded()
    form.save()
    update_session_auth_hash(request, person)
    ended = end_sessions(person, but=request.session.session_key)
    return _page(request, PasswordChangeForm(person), status=200, ended=ended, changed=True)


def _page(
    request: HttpRequest,
    form: PasswordChangeForm,
    *,
    status: int,
    ended: int = 0,
    changed: bool = False,
    minutes_to_wait: int = 0,
) -> HttpResponse:
    who = access.viewer(request)
    context = {
        "clock": who.clock,
        "who": who,
        "form": form,
        "changed": changed,
        "ended": ended,
        "minutes_to_wait": minutes_to_wait,
        "enrolled": proof.enrolled(who.person),
        "has_password": who.person.has_usable_password(),
    }
    return render(request, "review/account.html", context, status=status)
