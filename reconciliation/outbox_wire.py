"""One try of one message over the wire: a signed POST, or a plain e-mail.

Through the same client as everything else that leaves: https, a public address, a new connection,
no redirects, no proxies, a total deadline, and no more of the answer than is looked at.
"""

from __future__ import annotations

import smtplib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage

from reconciliation import outbox_signing
from refunds.domain.effects import MESSAGE_POST
from refunds.domain.outcome import RawAnswer
from refunds.providers.base import HttpRequest

TOTAL_SECONDS = 10
ANSWER_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a try. `because` is a sentence; `wait_seconds` what the receiver asked for."""

    delivered: bool
    because: str
    wait_seconds: int = 0


def signed_post(
    url: str, delivery_id: UUID, timestamp: int, body: bytes, secrets: Sequence[str]
) -> HttpRequest:
    """The request of one try; `timestamp` is its Unix second."""
    return HttpRequest(
        method="POST",
        url=url,
        headers={
            "Content-Type": "application/json",
            "User-Agent": "Aftersend",
            **outbox_signing.headers(delivery_id, timestamp, body, secrets),
        },
        body=body,
        effect=MESSAGE_POST,
    )


def read_answer(raw: RawAnswer) -> Told:
    """Delivered only by a 2xx; a redirect is not followed and delivers nothing."""
    if raw.status is None:
        return Told(False, f"no answer: {raw.failure}")
    if 200 <= raw.status < 300:
        return Told(True, f"answered {raw.status}")
    asked = raw.headers.get("retry-after", "")
    wait = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
    return Told(False, f"answered {raw.status}", wait)


def write_mail(delivery_id: UUID, to: str, subject: str, text: str) -> Told:
    """One plain e-mail; its Message-ID is the delivery's id, the same at every try."""
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip(">")
    message = EmailMessage(
        subject=subject,
        body=text,
        to=[to],
        headers={"Message-ID": f"<{delivery_id}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        return Told(False, f"the mail server did not take it: {type(error).__name__}")
    return Told(True, "the mail server took it")
