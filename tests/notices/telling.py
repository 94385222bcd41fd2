"""Notices as a provider writes and signs them, and a way to hand them in."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.test import Client

HEADERS = {"plain": "Sandbox-Signature", "stripe": "Stripe-Signature"}


def secret_of(account: str) -> str:
    """What the sandbox signs the notices of an account with."""
    return f"sandbox-webhook-secret-{account}"


def signature(body: bytes, *secrets: str, at: float | None = None) -> str:
    """A signature header for now, or for another time; one v1 for each secret."""
    stamp = str(int(time.time() if at is None else at))
    signed = [
        hmac.new(each.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        for each in secrets
    ]
    return ",".join([f"t={stamp}", *(f"v1={each}" for each in signed)])


def plain_body(event_id: str, refund: dict[str, Any], **more: Any) -> bytes:
    """A notice of the plain dialect about one refund."""
    event = {
        "id": event_id,
        "type": "refund.updated",
        "created_at": "2026-11-29T14:02:11Z",
        "refund": refund,
    }
    return json.dumps(event | more).encode()


def plain_refund(**fields: Any) -> dict[str, Any]:
    """A refund as the plain dialect shows it; a field given as None is left out."""
    refund = {
        "id": "rf_0010",
        "payment": "pi_4821",
        "amount_minor": 7900,
        "currency": "USD",
        "aftersend_operation": "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a",
        "status": "succeeded",
        "created_at": datetime.now(UTC).isoformat(),
    }
    return {name: value for name, value in (refund | fields).items() if value is not None}


def stripe_body(event_id: str, shown: dict[str, Any], **more: Any) -> bytes:
    """A Stripe event whose object is `shown`."""
    event = {
        "id": event_id,
        "object": "event",
        "api_version": "2026-01-28",
        "created": 1_796_000_000,
        "type": "refund.updated",
        "livemode": True,
        "pending_webhooks": 1,
        "request": None,
        "data": {"object": shown},
    }
    return json.dumps(event | more).encode()


def as_shown(refund: dict[str, Any], payment_ref: str, currency: str) -> dict[str, Any]:
    """A refund of the sandbox's book, as the plain dialect shows it in answers and notices."""
    return {
        "id": refund["id"],
        "payment": payment_ref,
        "amount_minor": refund["amount_minor"],
        "currency": currency,
        "aftersend_operation": refund["aftersend_operation"],
        "status": refund["status"],
        "created_at": refund["created_at"],
    }


@dataclass(frozen=True, slots=True)
class Said:
    """What the door answered."""

    status: int
    body: dict[str, Any]


def tell(
    body: bytes,
    *,
    account: str = "plain-main",
    header: str | None = None,
    signed_at: float | None = None,
) -> Said:
    """Hand a notice in, signed for now unless something else is said."""
    given = signature(body, secret_of(account), at=signed_at) if header is None else header
    dialect = "stripe" if account.startswith("stripe") else "plain"
    answer = Client(enforce_csrf_checks=True).post(
        f"/webhooks/{account}",
        body,
        content_type="application/json",
        headers={HEADERS[dialect]: given},
    )
    return Said(answer.status_code, answer.json())
