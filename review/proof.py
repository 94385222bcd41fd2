"""Asking a person to prove who they are, and reading the proof: a code, a passkey, a password."""

from __future__ import annotations

import json
from dataclasses import dataclass

from allauth.account.internal.flows.reauthentication import reauthenticate_by_password
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.mfa.webauthn.forms import AuthenticateWebAuthnForm, ReauthenticateWebAuthnForm
from allauth.mfa.webauthn.internal.auth import begin_authentication
from django.http import HttpRequest

from refunds.models import Person
from review import attempts

FACTORS = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the form asks for; `passkey` holds the browser's options as JSON, "" without one."""

    password: bool = False
    code: bool = False
    passkey: str = ""
    problem: str = ""
    minutes_to_wait: int = 0

    @property
    def status(self) -> int:
        return 429 if self.minutes_to_wait else 422 if self.problem else 200


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a proof was not taken: a sentence, or a wait in minutes."""

    problem: str = ""
    minutes_to_wait: int = 0


def enrolled(person: Person) -> bool:
    """Whether they have an authenticator app or a passkey."""
    return bool(is_mfa_enabled(person, types=FACTORS))


def asked(person: Person, refused: Refused | None = None) -> Asked:
    """The form for this person. A passkey's challenge is kept in the session of the request."""
    refused = refused or Refused()
    said = {"problem": refused.problem, "minutes_to_wait": refused.minutes_to_wait}
    if not enrolled(person):
        return Asked(password=True, **said)  # type: ignore[arg-type]  # said has exactly two names
    kinds = set(Authenticator.objects.filter(user=person).values_list("type", flat=True))
    passkey = ""
    if Authenticator.Type.WEBAUTHN in kinds:
        passkey = json.dumps(begin_authentication(person))
    # A recovery code goes where an app's code goes, so the field is there with a passkey alone.
    return Asked(code=True, passkey=passkey, **said)  # type: ignore[arg-type]


def read(request: HttpRequest, person: Person, *, again: bool) -> Refused | None:
    """Check the posted `code`, `credential` or `password`; None when it holds and is recorded.

    `again` says that the person is signed in already. Every try is counted (review/attempts.py).
    """
    attempt = attempts.begin_proof(request, person)
    if attempt.wait_seconds:
        return Refused(minutes_to_wait=attempt.minutes_to_wait)
    if enrolled(person):
        problem = _read_factor(request, person, again=again)
    elif person.check_password(request.POST.get("password", "")):
        reauthenticate_by_password(request)
        problem = ""
    else:
        problem = "That is not your password. Nothing was confirmed."
    if problem:
        return Refused(problem)
    attempt.succeeded()
    return None


def _read_factor(request: HttpRequest, person: Person, *, again: bool) -> str:
    if request.POST.get("credential"):
        passkey_form = ReauthenticateWebAuthnForm if again else AuthenticateWebAuthnForm
        form = passkey_form(user=person, data=request.POST)
        problem = "That passkey was not accepted. Try again, or use a code."
    else:
        code_form = ReauthenticateForm if again else AuthenticateForm
        form = code_form(user=person, data=request.POST)
        problem = (
            "That code does not fit. A code of the app counts once and for about a minute;"
            " a recovery code counts once."
        )
    if not form.is_valid():
        return problem
    form.save()
    return ""
