"""The plain dialect: JSON, one knob of the contract visible per account.

`POST /refunds`, `GET /refunds/{id}`, `GET /refunds?payment=&created_from=&after=&limit=` and
`GET /disputes?payment=&created_from=&after=&limit=` (oldest first).
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sandbox.book import Payment, Refund
from sandbox.dialects import Dialect, DisputePage, Page, Stamp
from sandbox.disputes import Dispute
from sandbox.instants import MICROSECONDS, iso
from sandbox.operations import (
    Answer,
    Call,
    Create,
    Declined,
    ListDisputes,
    ListRefunds,
    Operation,
    Refused,
    Retrieve,
)

_LIMIT_DEFAULT = 20
_LIMIT_MAX = 100
_KEY_LENGTH_MAX = 255

_STATUS_OF_CODE = {
    "already_refunded": 409,
    "amount_exceeds_remaining": 409,
    "key_in_use": 409,
    "key_reused": 409,
    "rate_limited": 429,
    "duplicate_request": 429,
    "unauthorized": 401,
    "forbidden": 403,
    "payment_not_found": 404,
    "refund_not_found": 404,
    "cursor_not_found": 404,
    "path_not_found": 404,
    "account_not_found": 404,
    "lookup_not_offered": 404,
    "body_too_large": 413,
    "server_error": 500,
    "unavailable": 503,
}

_FIELDS: Mapping[str, type] = {
    "payment": str,
    "amount_minor": int,
    "currency": str,
    "reason_code": str,
    "aftersend_operation": str,
}


class Plain(Dialect):
    refund_prefix = "rf"
    statuses = ("succeeded", "pending", "failed", "canceled")
    amount_field = "amount_minor"
    declines_other_mode = False

    def credential(self, headers: Mapping[str, str]) -> str | None:
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        return secret if scheme.lower() == "bearer" and secret else None

    def read(self, call: Call) -> Operation:
        parts = call.path.strip("/").split("/")
        match call.method, parts:
            case "POST", ["refunds"]:
                return _create(call)
            case "GET", ["refunds"]:
                return ListRefunds(**_list(call))
            case "GET", ["disputes"]:
                return ListDisputes(**_list(call))
            case "GET", ["refunds", refund_id]:
                return Retrieve(refund_id=refund_id)
        raise Declined("path_not_found", f"no {call.method} {call.path} here")

    def shown(self, refund: Refund) -> dict[str, Any]:
        return {
            "id": refund.id,
            "payment": refund.payment_ref,
            "amount_minor": refund.amount_minor,
            "currency": refund.currency,
            "aftersend_operation": refund.marker,
            "status": refund.status,
            "created_at": iso(refund.created_at),
        }

    def created(self, refund: Refund) -> Answer:
        return Answer.of(201, self.shown(refund))

    def current(self, refund: Refund) -> Answer:
        return Answer.of(200, self.shown(refund))

    def page(self, page: Page) -> Answer:
        items = [self.shown(refund) for refund in page.refunds]
        return Answer.of(200, {"items": items, "next": page.cursor if page.more else None})

    def dispute_page(self, page: DisputePage) -> Answer:
        items = [_dispute(dispute) for dispute in page.disputes]
        return Answer.of(200, {"items": items, "next": page.cursor if page.more else None})

    def payment(self, payment: Payment, mode: str) -> Answer:
        raise NotImplementedError("no path of the plain dialect reads a payment")

    def declined(self, declined: Declined) -> Answer:
        default = 422 if isinstance(declined, Refused) else 400
        return Answer.of(
            _STATUS_OF_CODE.get(declined.code, default),
            {"error": {"code": declined.code, "message": declined.message}},
        )

    def replayed(self, answer: Answer) -> Answer:
        return answer

    def stamp(self, answer: Answer, stamp: Stamp) -> Answer:
        own = (("Sandbox-Account", stamp.account), ("Sandbox-Mode", stamp.mode))
        return replace(answer, headers=answer.headers + own)

    def notice(self, number: int, at: int, shown: Mapping[str, Any]) -> bytes:
        return json.dumps(
            {
                "id": f"evt_{number:04d}",
                "type": "refund.updated",
                "created_at": iso(at),
                "refund": dict(shown),
            }
        ).encode()

    def signature(self, secret: str, timestamp: int, body: bytes) -> tuple[str, str]:
        digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
        return "Sandbox-Signature", f"t={timestamp},v1={digest}"


def _create(call: Call) -> Create:
    fields = _body(call.body)
    if call.key is not None and not 0 < len(call.key) <= _KEY_LENGTH_MAX:
        raise Declined(
            "key_invalid",
            f"Idempotency-Key must have 1 to {_KEY_LENGTH_MAX} characters",
        )
    return Create(
        payment_ref=fields["payment"],
        amount_minor=fields["amount_minor"],
        currency=fields["currency"],
        reason=fields["reason_code"],
        marker=fields["aftersend_operation"],
        key=call.key,
        digest=hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest(),
    )


def _body(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError as broken:
        raise Declined("body_invalid", "the body must be a JSON object") from broken
    if not isinstance(fields, dict):
        raise Declined("body_invalid", "the body must be a JSON object")
    for name, kind in _FIELDS.items():
        value = fields.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise Declined("body_invalid", f"{name} is required, as {kind.__name__}", param=name)
    unknown = sorted(set(fields) - set(_FIELDS))
    if unknown:
        raise Declined("body_invalid", f"unknown field {unknown[0]!r}", param=unknown[0])
    return fields


def _dispute(dispute: Dispute) -> dict[str, Any]:
    return {
        "id": dispute.id,
        "payment": dispute.payment_ref,
        "amount_minor": dispute.amount_minor,
        "currency": dispute.currency,
        "status": dispute.status,
        "created_at": iso(dispute.created_at),
    }


def _list(call: Call) -> dict[str, Any]:
    """What both lists of this dialect are asked by."""
    query = dict(call.query)
    unknown = sorted(set(query) - {"payment", "created_from", "after", "limit"})
    if unknown:
        raise Declined("query_invalid", f"unknown parameter {unknown[0]!r}", param=unknown[0])
    limit = query.get("limit", str(_LIMIT_DEFAULT))
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= _LIMIT_MAX:
        raise Declined("query_invalid", f"limit must be 1 to {_LIMIT_MAX}", param="limit")
    return {
        "payment_ref": query.get("payment"),
        "created_from": _created_from(query.get("created_from")),
        "limit": int(limit),
        "after": query.get("after"),
    }


def _created_from(given: str | None) -> int | None:
    """Microseconds of an ISO 8601 instant with a zone."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise Declined(
            "query_invalid",
            "created_from must be an ISO 8601 instant with a zone",
            param="created_from",
        )
    return round(at.timestamp() * MICROSECONDS)
