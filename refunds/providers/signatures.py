"""Signatures of notices in the form `t=<Unix seconds>,v1=<hex>[,v1=<hex>...]`. Pure.

HMAC-SHA256 over the text of t, a dot and the raw body, keyed with the whole secret. Stripe's form
(stripe-python, `_webhook.py`), which the sandbox's plain dialect shares. Other schemes than v1 are
passed over; of several v1 one must be ours, so that both secrets hold while one is changed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from datetime import UTC, datetime

_PARTS_MAX = 20
_DIGITS_MAX = 12


class NotGenuine(ValueError):
    """A notice that this provider did not sign for now; `kind` is `forged` or `stale`."""

    def __init__(self, kind: str, because: str) -> None:
        super().__init__(because)
        self.kind = kind


def verify(
    header: str,
    body: bytes,
    secrets: Iterable[str],
    *,
    arrived_at: datetime,
    tolerance_seconds: int,
) -> datetime:
    """The instant that was signed. Raises NotGenuine.

    Stale is a genuine signature over a time that is more than the tolerance away from the arrival,
    on either side.
    """
    stamp, given = _parts(header)
    genuine = False
    for secret in secrets:
        wanted = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256)
        for one in given:
            # Every pair is compared: how long it takes tells nothing.
            genuine |= hmac.compare_digest(wanted.hexdigest(), one)
    if not genuine:
        raise NotGenuine("forged", "No signature is of a secret that is set for this account.")
    try:
        signed_at = datetime.fromtimestamp(int(stamp), UTC)
    except (ValueError, OverflowError, OSError):
        raise NotGenuine("stale", "The signed time is not a time.") from None
    away = abs((arrived_at - signed_at).total_seconds())
    if away > tolerance_seconds:
        raise NotGenuine("stale", f"Signed {away:.0f} s away from its arrival.")
    return signed_at


def _parts(header: str) -> tuple[str, list[str]]:
    pairs = [each.strip().partition("=") for each in header.split(",")]
    stamps = [value for name, _, value in pairs if name == "t"]
    given = [value for name, _, value in pairs if name == "v1" and value.isascii()]
    if len(pairs) > _PARTS_MAX or len(stamps) != 1 or not given:
        raise NotGenuine("forged", "There is no signature of the form t=...,v1=....")
    stamp = stamps[0]
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= _DIGITS_MAX):
        raise NotGenuine("forged", "The signature's t is not a count of seconds.")
    return stamp, given
