"""Second factors of the tests: an authenticator app that says its code, and the steps of a page."""

from __future__ import annotations

import time
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.core.cache import cache
from django.test import Client

from refunds.models import Person
from tests.cast import PASSWORD
from tests.flows.console import form_on, text, try_password

PERIOD_SECONDS = 30


def code(secret: str) -> str:
    """What the app shows now."""
    shown: str = format_hotp_value(hotp_value(secret, int(time.time()) // PERIOD_SECONDS))
    return shown


def with_app(person: Person) -> str:
    """Give this person an authenticator app; returns its secret."""
    secret: str = generate_totp_secret()
    TOTP.activate(person, secret)
    return secret


def with_codes(person: Person) -> list[str]:
    """Give this person recovery codes, as enrolment does; returns them."""
    codes: list[str] = RecoveryCodes.activate(person).generate_codes()
    return codes


def forget_used_codes() -> None:
    """A code counts once. A test that needs the app's next one need not wait for half a minute."""
    cache.clear()


def second_step(client: Client, **proof: str) -> Any:
    """Post the form of the second step as it stands on its page."""
    page = text(client.get("/sign-in/second"))
    return client.post("/sign-in/second", form_on(page, "/sign-in/second") | proof)


def signed_in_twice(person: Person, secret: str) -> Client:
    """A browser of this person after both steps."""
    client = Client(enforce_csrf_checks=True)
    assert try_password(client, person.username, PASSWORD)["Location"] == "/sign-in/second"
    answer = second_step(client, code=code(secret))
    assert answer.status_code == 302, text(answer)
    forget_used_codes()
    return client


def factors_of(person: Person) -> set[str]:
    return set(Authenticator.objects.filter(user=person).values_list("type", flat=True))


def only_factor(person: Person) -> Authenticator:
    return Authenticator.objects.get(user=person)
