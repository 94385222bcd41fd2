"""Identities that are computed and never chosen: provider keys and digests."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import UUID

_KEY_PREFIX = "aftersend/provider-key/1:"
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> bytes:
    """One byte form for equal values: sorted keys, no spaces, UTF-8; floats are a bug."""
    _refuse_floats(value)
    return _WRITER.encode(value).encode()


def _refuse_floats(value: Any) -> None:
    assert not isinstance(value, float), "no float enters a digest"
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        if type(item) is not str:  # most are
            _refuse_floats(item)


def digest(value: Any) -> bytes:
    """SHA-256 of the canonical bytes."""
    return hashlib.sha256(canonical(value)).digest()


def provider_key(operation_id: UUID) -> str:
    """The idempotency key of an operation for life: lower-case UUID text of 36 characters.

    Derived from the id alone, so that losing a row cannot produce a second key (rules 3 and 6).
    """
    raw = bytearray(hashlib.sha256(f"{_KEY_PREFIX}{operation_id}".encode()).digest()[:16])
    raw[6] = (raw[6] & 0x0F) | 0x40
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(UUID(bytes=bytes(raw)))


def material_digest(
    *,
    operation_id: UUID,
    business_key: str,
    provider_account: str,
    payment_ref: str,
    amount_minor: int,
    currency: str,
    reason_code: str,
    body: bytes,
) -> bytes:
    """The fingerprint an approval is bound to: 32 bytes over everything that would be sent."""
    return digest(
        {
            "operation": str(operation_id),
            "business_key": business_key,
            "account": provider_account,
            "payment": payment_ref,
            "amount_minor": amount_minor,
            "currency": currency,
            "reason_code": reason_code,
            "body": hashlib.sha256(body).hexdigest(),
        }
    )


def arguments_digest(
    *, order_ref: str, payment_ref: str, amount_minor: int, currency: str, reason_code: str
) -> bytes:
    """The digest of `sameness.CANONICAL_ARGUMENTS`: what makes two calls the same call."""
    return digest(
        {
            "order": order_ref,
            "payment": payment_ref,
            "amount_minor": amount_minor,
            "currency": currency,
            "reason_code": reason_code,
        }
    )
