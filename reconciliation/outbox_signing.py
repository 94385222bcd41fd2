"""The signature of what we send, after Standard Webhooks 1.0.0 (standardwebhooks.com). Pure.

`webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, once for every
secret in use, separated by spaces: while secrets rotate, a receiver needs only one of them.
Every receiver has secrets of its own, derived from those of the installation: what one of them
knows forges nothing for another.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final
from uuid import UUID

PREFIX: Final = "whsec_"
# The specification's bounds of a secret, in bytes.
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
_DERIVED: Final = "aftersend/callback-secret/1:"
_ID: Final = "aftersend/delivery/1:"


class NotASecret(ValueError):
    """A text that is not a secret of Standard Webhooks; the message says what is wrong."""


def read_secret(text: str) -> bytes:
    """The bytes of a `whsec_...` text; raises NotASecret."""
    if not text.startswith(PREFIX):
        raise NotASecret(f"it must begin with {PREFIX}")
    try:
        secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise NotASecret(f"what follows {PREFIX} is not base64") from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise NotASecret(f"it must have {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    return secret


def secret_of(receiver: str, installation_secret: bytes) -> str:
    """The receiver's own secret, as the receiver must configure it."""
    derived = hmac.digest(installation_secret, f"{_DERIVED}{receiver}".encode(), hashlib.sha256)
    return PREFIX + base64.b64encode(derived).decode()


def headers(
    delivery_id: UUID | str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """The three headers; `timestamp` is the Unix second of this try, `secrets` the receiver's."""
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    marks = [
        base64.b64encode(hmac.digest(read_secret(each), signed, hashlib.sha256)).decode()
        for each in secrets
    ]
    return {
        "webhook-id": str(delivery_id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{mark}" for mark in marks),
    }


def delivery_id(consequence: str, kind: str, receiver: str) -> UUID:
    """The id of the message that tells this first, the same whoever computes it and whenever.

    After a database was restored, what is told once more is told under the same id.
    """
    named = f"{_ID}{consequence}|{kind}|{receiver}"
    raw = bytearray(hashlib.sha256(named.encode()).digest()[:16])
    raw[6] = (raw[6] & 0x0F) | 0x80  # version 8: made by a rule of our own
    raw[8] = (raw[8] & 0x3F) | 0x80
    return UUID(bytes=bytes(raw))
