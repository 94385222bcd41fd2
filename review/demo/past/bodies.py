"""What the provider's answers looked like on the wire, one refund in each dialect."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from refunds.domain.outcome import RawAnswer
from refunds.models import Operation

_JSON = {"content-type": "application/json"}


def refund(operation: Operation, ref: str, status: str, at: datetime) -> dict[str, Any]:
    """The provider's record of the operation's refund, in the dialect of its account."""
    payment_ref, amount_minor = operation.payment.ref, operation.amount_minor
    if operation.provider_account.startswith("stripe"):
        return {
            "id": ref,
            "object": "refund",
            "amount": amount_minor,
            "currency": operation.currency.lower(),
            "payment_intent": payment_ref,
            "metadata": {"aftersend_operation": operation.marker},
            "status": status,
            "created": int(at.timestamp()),
        }
    return {
        "id": ref,
        "payment": payment_ref,
        "amount_minor": amount_minor,
        "currency": operation.currency,
        "aftersend_operation": operation.marker,
        "status": status,
        "created_at": at.isoformat(timespec="milliseconds"),
    }


def shown(operation: Operation, ref: str, status: str, sent_at: datetime) -> RawAnswer:
    """A 2xx that shows the refund, made when the request came in."""
    is_stripe = operation.provider_account.startswith("stripe")
    body = json.dumps(refund(operation, ref, status, sent_at)).encode()
    return _answered(200 if is_stripe else 201, body, sent_at, 0.4)


def error(operation: Operation, status: int, code: str, sent_at: datetime) -> RawAnswer:
    """The provider's own error envelope."""
    told = {"code": code, "message": "see the documentation of this code"}
    if operation.provider_account.startswith("stripe"):
        told["type"] = "invalid_request_error" if status < 500 else "api_error"
    return _answered(status, json.dumps({"error": told}).encode(), sent_at, 0.6)


def lost(sent_at: datetime) -> RawAnswer:
    """The request went out whole, and the connection closed before an answer came."""
    return RawAnswer(
        failure="the connection closed without a whole answer",
        connected_at=sent_at + timedelta(seconds=0.02),
        first_byte_at=sent_at + timedelta(seconds=0.03),
        closed_at=sent_at + timedelta(seconds=7.4),
    )


def _answered(status: int, body: bytes, sent_at: datetime, seconds: float) -> RawAnswer:
    return RawAnswer(
        status=status,
        headers=dict(_JSON),
        body=body,
        connected_at=sent_at + timedelta(seconds=0.02),
        first_byte_at=sent_at + timedelta(seconds=0.03),
        closed_at=sent_at + timedelta(seconds=seconds),
    )
