"""Somebody who is told: what they heard, checked as they would check it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reconciliation import outbox, outbox_sending
from reconciliation.models import Delivery
from reconciliation.outbox_signing import read_secret, secret_of
from tests.providers.listener import Listener, Play, answer, http, listening

SECRET = "whsec_" + base64.b64encode(b"of this installation, 32 bytes!!").decode()
OK = answer(http(b"", status="204 No Content", headers=()))


@dataclass(frozen=True)
class Heard:
    """One request as it came; `body` is what it said."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def body(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.raw)
        return said

    def is_signed_for(self, receiver: str, installation: str = SECRET) -> bool:
        """Checked by hand, as the standard says it: nothing of ours but the secret."""
        secret = secret_of(receiver, read_secret(installation)).removeprefix("whsec_")
        at = self.headers["webhook-timestamp"]
        signed = f"{self.id}.{at}.".encode() + self.raw
        mark = hmac.new(base64.b64decode(secret), signed, hashlib.sha256).digest()
        wanted = "v1," + base64.b64encode(mark).decode()
        fresh = abs(time.time() - int(at)) < 300
        return fresh and wanted in self.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    """`heard` grows with every request."""

    listener: Listener

    @property
    def heard(self) -> list[Heard]:
        return [_heard(each) for each in self.listener.requests]

    def of(self, receiver: str) -> list[Heard]:
        return [each for each in self.heard if each.path == f"/{receiver}"]

    def callbacks(self, *receivers: str) -> dict[str, str]:
        return {name: f"{self.listener.url}/{name.replace(':', '-')}" for name in receivers}

    def environ(self, *receivers: str) -> dict[str, str]:
        return {
            "AFTERSEND_CALLBACKS": json.dumps(self.callbacks(*receivers)),
            "AFTERSEND_CALLBACK_SECRETS": SECRET,
        }


@contextmanager
def receiving(settings: Any, *receivers: str, play: Play = OK) -> Iterator[Receiver]:
    """Name these receivers in the settings, all at one address of this machine."""
    with listening(play) as listener:
        receiver = Receiver(listener)
        settings.CALLBACKS = receiver.callbacks(*receivers)
        settings.CALLBACK_SECRETS = (SECRET,)
        yield receiver


def tell() -> int:
    """What the beat does every five seconds."""
    outbox.expand()
    return outbox_sending.deliver_due("teller:test")


def make_due() -> None:
    """Let the back-off, the bundling and the leases of whoever died be over."""
    from django.utils import timezone

    now = timezone.now()
    Delivery.objects.filter(state="waiting").update(due_at=now)
    Delivery.objects.filter(state="sending").update(lease_until=now)


def _heard(request: bytes) -> Heard:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return Heard(path=first.split(" ")[1], headers=headers, raw=body)
