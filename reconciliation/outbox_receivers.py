"""Who can be told: the receivers of this installation, from its settings and never from a row.

AFTERSEND_CALLBACKS names them: `ticket` (the help desk), `merchant` (what a customer should hear),
`staff` and `on_call` (chat or pager), `agent:<name>` (an agent's own). People get e-mail where
AFTERSEND_EMAIL_URL is set and they have an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from reconciliation.outbox_signing import NotASecret, read_secret, secret_of
from refunds.models import Person

TICKET = "ticket"
MERCHANT = "merchant"
STAFF = "staff"
ON_CALL = "on_call"
AGENT = "agent:"
PERSON = "person:"
FIXED = (TICKET, MERCHANT, STAFF, ON_CALL)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is wrong with the settings, and what to do about it."""

    id: str
    says: str
    hint: str


class Unreachable(Exception):
    """The receiver has no usable address now; the message says why."""


def is_configured(receiver: str) -> bool:
    """Whether anything is sent to this receiver of AFTERSEND_CALLBACKS."""
    return receiver in settings.CALLBACKS


def writes_mail() -> bool:
    """Whether people who have an address get e-mail."""
    writes: bool = settings.WRITES_MAIL
    return writes


def anybody() -> bool:
    """Whether this installation tells anybody anything."""
    return bool(settings.CALLBACKS) or writes_mail()


def url_of(receiver: str) -> str:
    """The address for this very try; raises Unreachable unless it may be used today."""
    url = settings.CALLBACKS.get(receiver)
    if url is None:
        raise Unreachable(f"no address is set for {receiver}")
    wrong = next(_wrong_address(receiver, url), None)
    if wrong:
        raise Unreachable(wrong.says)
    return url


def secrets_of(receiver: str) -> list[str]:
    """The receiver's secrets, the newest first; raises Unreachable where none is set."""
    try:
        derived = [secret_of(receiver, read_secret(each)) for each in settings.CALLBACK_SECRETS]
    except NotASecret as error:
        raise Unreachable(f"AFTERSEND_CALLBACK_SECRETS: {error}") from error
    if not derived:
        raise Unreachable("AFTERSEND_CALLBACK_SECRETS holds no secret to sign with")
    return derived


def mail_of(receiver: str) -> str:
    """The e-mail address of a person; raises Unreachable."""
    name = receiver.removeprefix(PERSON)
    person = Person.objects.filter(username=name, is_active=True).first()
    if person is None or not person.email:
        raise Unreachable(f"{name} has no e-mail address here any more")
    return person.email


def wrong_settings() -> Iterator[Wrong]:
    """Everything that keeps a message from leaving, one by one."""
    for receiver, url in settings.CALLBACKS.items():
        if receiver not in FIXED and not receiver.startswith(AGENT):
            yield Wrong(
                "E030",
                f"AFTERSEND_CALLBACKS names {receiver!r}, which is no receiver.",
                f"The receivers are {', '.join(FIXED)} and {AGENT}<name of the agent>.",
            )
        yield from _wrong_address(receiver, url)
    if settings.CALLBACKS and not settings.CALLBACK_SECRETS:
        yield Wrong(
            "E033",
            "AFTERSEND_CALLBACKS is set and AFTERSEND_CALLBACK_SECRETS is empty.",
            "Make one with `manage.py callback_secret --new` and set it.",
        )
    for position, secret in enumerate(settings.CALLBACK_SECRETS, start=1):
        try:
            read_secret(secret)
        except NotASecret as error:
            yield Wrong(
                "E034",
                f"Secret {position} of AFTERSEND_CALLBACK_SECRETS is not usable: {error}.",
                "Make one with `manage.py callback_secret --new`.",
            )


def _wrong_address(receiver: str, url: str) -> Iterator[Wrong]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    loopback = host in _LOOPBACK and settings.ALLOW_LOOPBACK_PROVIDERS
    if not host or (parts.scheme != "https" and not loopback):
        yield Wrong(
            "E031",
            f"The address of {receiver} in AFTERSEND_CALLBACKS is not https.",
            "Write the whole address, beginning with https://.",
        )
    elif not loopback and host not in settings.CALLBACK_HOSTS:
        yield Wrong(
            "E032",
            f"AFTERSEND_CALLBACK_HOSTS does not allow {host}, the host of {receiver}.",
            "Add the host to AFTERSEND_CALLBACK_HOSTS if it is yours.",
        )
