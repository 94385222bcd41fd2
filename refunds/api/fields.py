"""The kinds of fields that come in from outside: how each is read, and how it is described."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.proposal import REASON_CODES
from refunds.text import parse_instant

CALL_ID = r"^[A-Za-z0-9_.:-]{1,128}$"
OPERATION_ID_SCHEMA: Final = {"type": "string", "format": "uuid"}
_UUID = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}", re.ASCII | re.IGNORECASE
)


def _instant(value: Any) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise PydanticCustomError("field_format", "is not text with an ISO 8601 instant")
    try:
        return parse_instant(value)
    except Refusal as refusal:
        # Its text may hold braces, which pydantic would take for places to fill.
        raise PydanticCustomError(
            "datetime_naive" if refusal.code == "datetime_naive" else "field_format",
            "{detail}",
            {"detail": refusal.detail},
        ) from None


def _operation_id(value: Any) -> UUID | None:
    if value is None:
        return None
    # One spelling or another of the same id: letters of either size, with hyphens or without.
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise PydanticCustomError("field_format", "is not an operation_id")
    return UUID(value)


Instant = Annotated[
    datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})
]
OperationId = Annotated[UUID, BeforeValidator(_operation_id), WithJsonSchema(OPERATION_ID_SCHEMA)]
Ref = Annotated[str, Field(min_length=1, max_length=128)]
AmountMinor = Annotated[int, Field(ge=0, le=money.AMOUNT_MINOR_MAX)]

# What intake checks with codes of its own, described for those who read only the schema.
RefundMinor = Annotated[
    int, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": money.AMOUNT_MINOR_MAX})
]
AmountText = Annotated[
    str,
    WithJsonSchema({"type": "string", "maxLength": 32, "pattern": r"^[0-9]+(\.[0-9]{1,4})?$"}),
]
Currency = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[A-Z]{3}$"})]
ReasonCode = Annotated[str, WithJsonSchema({"type": "string", "enum": list(REASON_CODES)})]
ReasonText = Annotated[str, WithJsonSchema({"type": "string", "maxLength": 500})]
WishRef = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 128})]
LooseRef = Annotated[str, WithJsonSchema({"type": "string", "maxLength": 128})]
