"""Reads requests of Stripe's API v1: paths, forms, list parameters."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sandbox.dialects.forms import nested, read_form
from sandbox.instants import MICROSECONDS
from sandbox.operations import (
    Call,
    Cancel,
    Create,
    Declined,
    ListDisputes,
    ListRefunds,
    Operation,
    ReadPayment,
    Retrieve,
    Update,
)

MARKER_FIELD = "aftersend_operation"

_CREATE_FIELDS = {
    "amount",
    "charge",
    "currency",
    "customer",
    "expand",
    "instructions_email",
    "metadata",
    "origin",
    "payment_intent",
    "reason",
    "refund_application_fee",
    "reverse_transfer",
}
_LIST_FIELDS = {
    "charge",
    "created",
    "ending_before",
    "expand",
    "limit",
    "payment_intent",
    "starting_after",
}
_REASONS = ("duplicate", "fraudulent", "requested_by_customer")
_KEY_LENGTH_MAX = 255
_METADATA_COUNT_MAX = 50
_METADATA_NAME_MAX = 40
_METADATA_VALUE_MAX = 500


def read_request(call: Call) -> Operation:
    """The operation asked for; Declined for an unknown path or unusable parameters."""
    parts = call.path.strip("/").split("/")
    match call.method, parts:
        case "POST", ["v1", "refunds"]:
            return _create(call)
        case "GET", ["v1", "refunds"]:
            return _list(nested(call.query))
        case "GET", ["v1", "disputes"]:
            return _list_disputes(nested(call.query))
        case "GET", ["v1", "refunds", refund_id]:
            return Retrieve(refund_id=refund_id)
        case "POST", ["v1", "refunds", refund_id]:
            fields = _known(nested(read_form(call.body)), {"metadata", "expand"})
            return Update(
                refund_id=refund_id,
                metadata=_metadata(fields),
                key=_key(call),
                digest=_digest(call.path, fields),
            )
        case "POST", ["v1", "refunds", refund_id, "cancel"]:
            fields = _known(nested(read_form(call.body)), {"expand"})
            return Cancel(refund_id=refund_id, key=_key(call), digest=_digest(call.path, fields))
        case "GET", ["v1", "payment_intents", ref]:
            return ReadPayment(ref=ref)
    raise Declined("path_not_found", f"Unrecognized request URL ({call.method}: {call.path}).")


def _create(call: Call) -> Create:
    fields = _known(nested(read_form(call.body)), _CREATE_FIELDS)
    payment_ref, charge = _text(fields, "payment_intent"), _text(fields, "charge")
    if (payment_ref is None) == (charge is None):
        raise Declined(
            "parameter_missing",
            "give one of payment_intent and charge",
            param="payment_intent",
        )
    reason = _text(fields, "reason")
    if reason is not None and reason not in _REASONS:
        raise Declined("parameter_unknown", f"reason must be one of {_REASONS}", param="reason")
    metadata = _metadata(fields) or {}
    return Create(
        payment_ref=payment_ref,
        charge=charge,
        amount_minor=_amount(fields),
        currency=_text(fields, "currency"),
        reason=reason,
        marker=metadata.get(MARKER_FIELD),
        metadata={name: value for name, value in metadata.items() if value},
        key=_key(call),
        digest=_digest(call.path, fields),
    )


def _limit(fields: Mapping[str, Any]) -> int:
    limit = _text(fields, "limit") or "10"
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= 100):
        raise Declined("parameter_invalid_integer", "limit must be 1 to 100", param="limit")
    return int(limit)


def _list_disputes(given: Mapping[str, Any]) -> ListDisputes:
    fields = _known(given, _LIST_FIELDS - {"ending_before"})
    created_from, created_until = _created(fields.get("created"))
    return ListDisputes(
        payment_ref=_text(fields, "payment_intent"),
        charge=_text(fields, "charge"),
        created_from=created_from,
        created_until=created_until,
        limit=_limit(fields),
        after=_text(fields, "starting_after"),
        newest_first=True,
    )


def _list(given: Mapping[str, Any]) -> ListRefunds:
    fields = _known(given, _LIST_FIELDS)
    limit = _limit(fields)
    after, before = _text(fields, "starting_after"), _text(fields, "ending_before")
    if after is not None and before is not None:
        raise Declined(
            "parameter_invalid",
            "give one of starting_after and ending_before",
            param="ending_before",
        )
    created_from, created_until = _created(fields.get("created"))
    return ListRefunds(
        payment_ref=_text(fields, "payment_intent"),
        charge=_text(fields, "charge"),
        created_from=created_from,
        created_until=created_until,
        limit=limit,
        after=after,
        before=before,
        newest_first=True,
    )


def _created(given: object) -> tuple[int | None, int | None]:
    """`created`, a second or bounds of seconds, as [from, until) in microseconds."""
    if given is None:
        return None, None
    bounds: Mapping[str, Any] = given if isinstance(given, dict) else {"gte": given, "lte": given}
    starts: list[int] = []
    ends: list[int] = []
    for name, value in bounds.items():
        if name not in ("gt", "gte", "lt", "lte") or not str(value).isdigit():
            raise Declined("parameter_invalid_integer", "created must be seconds", param="created")
        second = int(value) + (1 if name in ("gt", "lte") else 0)
        (starts if name.startswith("g") else ends).append(second * MICROSECONDS)
    return max(starts, default=None), min(ends, default=None)


def _known(fields: Mapping[str, Any], allowed: set[str]) -> Mapping[str, Any]:
    for name in fields:
        if name not in allowed:
            raise Declined("parameter_unknown", f"Received unknown parameter: {name}", param=name)
    return fields


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if isinstance(value, dict):
        raise Declined("parameter_invalid", f"{name} must be a string", param=name)
    return value or None


def _amount(fields: Mapping[str, Any]) -> int | None:
    text = _text(fields, "amount")
    if text is None:
        return None
    if not text.lstrip("-").isascii() or not text.removeprefix("-").isdigit():
        raise Declined("parameter_invalid_integer", f"Invalid integer: {text}", param="amount")
    return int(text)


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The metadata given; None when it was sent empty, which removes all."""
    metadata = fields.get("metadata", {})
    if metadata == "":
        return None
    if not isinstance(metadata, dict):
        raise Declined("parameter_invalid", "metadata must be a set of names", param="metadata")
    too_long = any(
        len(name) > _METADATA_NAME_MAX or len(value) > _METADATA_VALUE_MAX
        for name, value in metadata.items()
    )
    if too_long or len(metadata) > _METADATA_COUNT_MAX:
        raise Declined("parameter_invalid", "metadata is too large", param="metadata")
    return metadata


def _key(call: Call) -> str | None:
    if call.key is not None and len(call.key) > _KEY_LENGTH_MAX:
        raise Declined(
            "parameter_invalid",
            f"Idempotency-Key may have {_KEY_LENGTH_MAX} characters",
        )
    return call.key


def _digest(path: str, fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([path, fields], sort_keys=True).encode()).hexdigest()
