"""The refunds of Stripe's API v1, as far as a client of refunds meets them.

The behaviour follows docs.stripe.com (idempotent requests, low-level errors, refunds) and the
official Python SDK, which works against this dialect unchanged.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox.book import Payment, Refund
from sandbox.dialects import Dialect, DisputePage, Page, Stamp
from sandbox.dialects.stripe_requests import read_request
from sandbox.disputes import Dispute
from sandbox.instants import MICROSECONDS
from sandbox.operations import Answer, Call, Declined, Operation

# What the accounts here speak by themselves, as an older account does, and what they can be asked for:
# refunds, payments and disputes are alike in all of them.
_API_VERSION = "2025-03-31.basil"
_API_VERSIONS = frozenset({_API_VERSION, "2026-10-28.endive"})

# Our code: HTTP status, Stripe's error type, Stripe's code.
_ERRORS: Mapping[str, tuple[int, str, str | None]] = {
    "already_refunded": (400, "invalid_request_error", "charge_already_refunded"),
    "amount_exceeds_remaining": (400, "invalid_request_error", None),
    "amount_invalid": (400, "invalid_request_error", "parameter_invalid_integer"),
    "payment_disputed": (400, "invalid_request_error", "charge_disputed"),
    "payment_not_refundable": (400, "invalid_request_error", "charge_not_refundable"),
    "currency_mismatch": (400, "invalid_request_error", None),
    "reason_not_accepted": (400, "invalid_request_error", None),
    "payment_not_found": (404, "invalid_request_error", "resource_missing"),
    "refund_not_found": (404, "invalid_request_error", "resource_missing"),
    "cursor_not_found": (404, "invalid_request_error", "resource_missing"),
    "wrong_mode": (404, "invalid_request_error", "resource_missing"),
    "version_unknown": (400, "invalid_request_error", None),
    "path_not_found": (404, "invalid_request_error", None),
    "account_not_found": (404, "invalid_request_error", "resource_missing"),
    "lookup_not_offered": (404, "invalid_request_error", None),
    "key_reused": (400, "idempotency_error", None),
    "key_in_use": (409, "invalid_request_error", "idempotency_key_in_use"),
    "rate_limited": (429, "invalid_request_error", "rate_limit"),
    "duplicate_request": (429, "invalid_request_error", "lock_timeout"),
    "unauthorized": (401, "invalid_request_error", None),
    "forbidden": (403, "invalid_request_error", None),
    "server_error": (500, "api_error", None),
    "unavailable": (503, "api_error", None),
}


class Stripe(Dialect):
    refund_prefix = "re"
    statuses = ("succeeded", "pending", "failed", "canceled", "requires_action")
    amount_field = "amount"
    declines_other_mode = True

    def credential(self, headers: Mapping[str, str]) -> str | None:
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return secret or None
        if scheme.lower() != "basic":
            return None
        try:
            user = base64.b64decode(secret, validate=True).decode().partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user or None

    def read(self, call: Call) -> Operation:
        version = call.headers.get("stripe-version")
        if version is not None and version not in _API_VERSIONS:
            raise Declined("version_unknown", f"Invalid Stripe API version: {version}")
        return read_request(call)

    def shown(self, refund: Refund) -> dict[str, Any]:
        failed = refund.status == "failed"
        return {
            "id": refund.id,
            "object": "refund",
            "amount": refund.amount_minor,
            "balance_transaction": f"txn_{refund.id}",
            "charge": refund.charge,
            "created": refund.created_at // MICROSECONDS,
            "currency": refund.currency.lower(),
            "metadata": dict(refund.metadata),
            "payment_intent": refund.payment_ref,
            "reason": refund.reason,
            "receipt_number": None,
            "source_transfer_reversal": None,
            "status": refund.status,
            "transfer_reversal": None,
            **({"failure_reason": "unknown"} if failed else {}),
            **({"pending_reason": "processing"} if refund.status == "pending" else {}),
        }

    def created(self, refund: Refund) -> Answer:
        return Answer.of(200, self.shown(refund))

    def current(self, refund: Refund) -> Answer:
        return Answer.of(200, self.shown(refund))

    def page(self, page: Page) -> Answer:
        return Answer.of(
            200,
            {
                "object": "list",
                "data": [self.shown(refund) for refund in page.refunds],
                "has_more": page.more,
                "url": "/v1/refunds",
            },
        )

    def dispute_page(self, page: DisputePage) -> Answer:
        return Answer.of(
            200,
            {
                "object": "list",
                "data": [_dispute(dispute) for dispute in page.disputes],
                "has_more": page.more,
                "url": "/v1/disputes",
            },
        )

    def payment(self, payment: Payment, mode: str) -> Answer:
        captured = payment.state != "uncaptured"
        return Answer.of(
            200,
            {
                "id": payment.ref,
                "object": "payment_intent",
                "amount": payment.captured_minor,
                "amount_received": payment.captured_minor if captured else 0,
                "created": payment.created_at // MICROSECONDS,
                "currency": payment.currency.lower(),
                "customer": payment.customer,
                "latest_charge": payment.charge,
                "livemode": mode == "live",
                "metadata": {},
                "status": "succeeded" if captured else "requires_capture",
            },
        )

    def declined(self, declined: Declined) -> Answer:
        status, kind, code = _ERRORS.get(
            declined.code, (400, "invalid_request_error", declined.code)
        )
        if declined.code == "payment_not_found" and declined.param is not None:
            status = 400  # a parameter that names nothing; 404 is for the path itself
        error = {"type": kind, "message": declined.message}
        if code is not None:
            error["code"] = code
        if declined.param is not None:
            error["param"] = declined.param
        return Answer.of(status, {"error": error})

    def replayed(self, answer: Answer) -> Answer:
        return replace(answer, headers=(*answer.headers, ("Idempotent-Replayed", "true")))

    def stamp(self, answer: Answer, stamp: Stamp) -> Answer:
        own = [
            ("Request-Id", f"req_{stamp.call_number:06d}"),
            ("Stripe-Version", stamp.api_version or _API_VERSION),
        ]
        if stamp.key is not None:
            own.append(("Idempotency-Key", stamp.key))
        return replace(answer, headers=(*answer.headers, *own))

    def notice(self, number: int, at: int, shown: Mapping[str, Any]) -> bytes:
        event = {
            "id": f"evt_{number:04d}",
            "object": "event",
            "api_version": _API_VERSION,
            "created": at // MICROSECONDS,
            "type": "refund.updated",
            "livemode": True,
            "pending_webhooks": 1,
            "request": None,
            "data": {"object": dict(shown)},
        }
        return json.dumps(event).encode()

    def signature(self, secret: str, timestamp: int, body: bytes) -> tuple[str, str]:
        digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
        return "Stripe-Signature", f"t={timestamp},v1={digest}"


def _dispute(dispute: Dispute) -> dict[str, Any]:
    return {
        "id": dispute.id,
        "object": "dispute",
        "amount": dispute.amount_minor,
        "balance_transactions": [],
        "charge": dispute.charge,
        "created": dispute.created_at // MICROSECONDS,
        "currency": dispute.currency.lower(),
        "evidence": {},
        "evidence_details": {"has_evidence": False, "submission_count": 0},
        "is_charge_refundable": False,
        "livemode": True,
        "metadata": {},
        "payment_intent": dispute.payment_ref,
        "reason": "general",
        "status": "needs_response" if dispute.status == "opened" else dispute.status,
    }
