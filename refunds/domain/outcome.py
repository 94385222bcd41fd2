"""What one attempt told us. The default branch of every reading is `unanswered`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """Outcome of one attempt, set once, by its own sender."""

    CONFIRMED = "confirmed"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TURNED_AWAY = "turned_away"
    NOT_SENT = "not_sent"
    UNANSWERED = "unanswered"


# Outcomes that prove this attempt executed nothing and leave the operation sendable (rule 29).
NOT_EXECUTED = frozenset({Outcome.TURNED_AWAY, Outcome.NOT_SENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """What the wire gave: instants (UTC), status and capped body, or the failure in a word.

    `first_byte_at` is None exactly when no byte of the request was started: the only proof of
    *not sent* (reliability 3.2). `unreadable` says why a body must not be parsed.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""
    unreadable: str = ""
    connected_at: datetime | None = None
    first_byte_at: datetime | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What our record says the provider's refund must be; amounts in minor units."""

    marker: str
    payment_ref: str
    amount_minor: int
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRecord:
    """One refund as the provider shows it. `provider_status` is their word, unchanged."""

    ref: str
    payment_ref: str
    amount_minor: int | None
    currency: str | None
    provider_status: str
    marker: str | None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The reading of one attempt's answer.

    `because` is a sentence for the timeline; `code` the provider's own code where it gave one;
    `credential_refused` is true for their 401/403: the account is paused at once.
    """

    outcome: Outcome
    because: str
    record: RefundRecord | None = None
    code: str | None = None
    credential_refused: bool = False

    def facts(self) -> dict[str, Any]:
        """The JSON form stored with the evidence."""
        record = self.record
        return {
            "outcome": str(self.outcome),
            "because": self.because,
            "code": self.code,
            "ref": record.ref if record else None,
            "provider_status": record.provider_status if record else None,
            "amount_minor": record.amount_minor if record else None,
            "currency": record.currency if record else None,
            "payment_ref": record.payment_ref if record else None,
            "marker": record.marker if record else None,
        }
