"""What an adapter is: how to ask, and how to read; both pure. I/O is in `http` and `listing`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Protocol

from refunds.domain.contract import ProviderContract
from refunds.domain.effects import Effect
from refunds.domain.elsewhere import Elsewhere
from refunds.domain.outcome import Answer, Expected, Outcome, RawAnswer, RefundRecord
from refunds.providers.account_list import AccountPage, What

JSON_DEPTH_MAX = 20
EVENT_WORDS_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One provider account of this installation; `credential` is None where none is set.

    `external_refunds` is None where the policy's own word holds.
    `webhook_secrets`: what its notices may be signed with; several while one is being changed.
    `credential_ends`: the last day of the key, where it has one. `api_version`: what its adapter
    asks the provider to speak; "" where its dialect has none.
    """

    name: str
    adapter: str
    base_url: str
    contract: ProviderContract
    credential: str | None = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(default=(), repr=False)
    mode: str = "live"
    region: str = ""
    external_refunds: Elsewhere | None = None
    api_version: str = ""
    credential_ends: date | None = None

    def identity(self) -> dict[str, Any]:
        """What a lookup must share with the attempt it speaks about; stored with the attempt."""
        return {
            "account": self.name,
            "adapter": self.adapter,
            "base_url": self.base_url,
            "mode": self.mode,
            "region": self.region,
            "api_version": self.api_version,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request as it goes over the wire; `body` is sent as these very bytes.

    `effect` is what it can move at the provider; None for a reading.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes = b""
    effect: Effect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a refund request says; amounts in minor units."""

    marker: str
    payment_ref: str
    amount_minor: int
    currency: str
    reason_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list answer. `readable` False means: this answer cannot tell."""

    readable: bool
    because: str = ""
    records: tuple[RefundRecord, ...] = ()
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One refund retrieved by its reference; None where the answer cannot tell, or where the provider
    itself says that it has none of that reference (`not_there`)."""

    record: RefundRecord | None
    because: str = ""
    not_there: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a notice says. `record` is None where it shows no refund of its own; `because` says why.

    `payment_refs`: every reference under which it names the payment. `mode` and `of_account` are
    None where the provider's notices do not carry them.
    """

    event_id: str
    kind: str
    record: RefundRecord | None
    because: str = ""
    payment_refs: tuple[str, ...] = ()
    mode: str | None = None
    of_account: str | None = None


@dataclass(frozen=True, slots=True)
class StatusWords:
    """A provider's refund statuses by what they mean for us. Anything else is unknown to us."""

    succeeded: frozenset[str] = field(default_factory=frozenset)
    pending: frozenset[str] = field(default_factory=frozenset)
    failed: frozenset[str] = field(default_factory=frozenset)


class Adapter(Protocol):
    """One provider's dialect. Every method is a function of its arguments."""

    name: str
    words: StatusWords
    signature_header: str
    api_version: str
    lists_newest_first: bool

    def body(self, wish: Wish) -> bytes:
        """The canonical request bytes; built once and stored with the operation."""
        ...

    def create_refund(self, account: Account, body: bytes, key: str) -> HttpRequest: ...

    def read_answer(self, raw: RawAnswer, expected: Expected) -> Answer: ...

    def list_refunds(
        self, account: Account, payment_ref: str, cursor: str | None
    ) -> HttpRequest: ...

    def read_page(self, raw: RawAnswer, payment_ref: str) -> Page: ...

    def retrieve(self, account: Account, ref: str) -> HttpRequest: ...

    def read_one(self, raw: RawAnswer, payment_ref: str) -> Reading: ...

    def list_account(
        self, account: Account, what: What, since: datetime, cursor: str | None
    ) -> HttpRequest:
        """Refunds or disputes of all payments, created at `since` or later."""
        ...

    def read_account_page(self, raw: RawAnswer, what: What) -> AccountPage: ...

    def read_notice(self, body: bytes) -> Told:
        """Raises NotOneRecord for a body that is not this provider's notice."""
        ...

    def speaks_for_another(self, raw: RawAnswer, account: Account) -> str:
        """Why an answer is not about this account and mode; "" where nothing says so."""
        ...


class NotOneRecord(ValueError):
    """A body that is not the JSON object it should be; the message says why."""


def parse_object(raw: RawAnswer) -> dict[str, Any]:
    """The JSON object of an answer; raises NotOneRecord for anything else.

    Duplicate names, NaN, zero and half characters and deep nesting are not readable: what two
    parsers could read differently proves nothing.
    """
    if raw.unreadable:
        raise NotOneRecord(raw.unreadable)
    content_type = raw.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise NotOneRecord(f"the body is {content_type or 'of no type'}, not JSON")
    return parse_bytes(raw.body)


def parse_bytes(body: bytes) -> dict[str, Any]:
    """The JSON object of these bytes, UTF-8; raises NotOneRecord as `parse_object` does."""
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
        _refuse_unstorable(value)
    except (ValueError, RecursionError) as error:
        raise NotOneRecord(f"the body is not readable JSON ({error})") from error
    if not isinstance(value, dict) or _depth(value) > JSON_DEPTH_MAX:
        raise NotOneRecord("the body is not one JSON object of sane depth")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name occurs twice")
    return table


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _refuse_unstorable(value: Any) -> None:
    # A zero or half a character is legal JSON that no column takes: the evidence would be lost.
    written = json.dumps(value, ensure_ascii=False)
    written.encode()
    if "\\u0000" in written:
        raise ValueError("it holds a zero character")


def _depth(value: Any) -> int:
    deepest, layer = 0, [value]
    while layer:
        deepest += 1
        if deepest > JSON_DEPTH_MAX:
            return deepest
        layer = [
            inner
            for each in layer
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return deepest


def whole(value: Any) -> int | None:
    """An integer amount, or None: 79.0, "79" and true are not integers."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any) -> str | None:
    """A non-empty string, or None."""
    return value if isinstance(value, str) and value else None


def instant(value: Any) -> datetime | None:
    """UTC instant of an ISO 8601 text or a Unix second count, or None."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at.astimezone(UTC) if at.tzinfo else None
        if whole(value) is not None:
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def event_of(table: dict[str, Any]) -> tuple[str, str]:
    """(id, type) of a notice; raises NotOneRecord where it has none that can be stored."""
    event_id, kind = text(table.get("id")), text(table.get("type"))
    if not event_id or not kind or max(len(event_id), len(kind)) > EVENT_WORDS_MAX:
        raise NotOneRecord("the notice has no id and type of at most 128 characters")
    return event_id, kind


def unanswered(
    because: str, *, code: str | None = None, record: RefundRecord | None = None
) -> Answer:
    """The default branch."""
    return Answer(outcome=Outcome.UNANSWERED, because=because, code=code, record=record)


def not_on_the_wire(raw: RawAnswer) -> Answer | None:
    """The reading of a failed call: *not sent* only when no byte was started; None if answered."""
    if raw.status is not None:
        return None
    if raw.first_byte_at is None:
        return Answer(outcome=Outcome.NOT_SENT, because=f"Not sent: {raw.failure}.")
    return unanswered(f"No answer: {raw.failure}.")


def differences(record: RefundRecord, expected: Expected) -> list[str]:
    """The names of the fields in which a record is not what we asked for."""
    wanted = {
        "payment": (record.payment_ref, expected.payment_ref),
        "amount": (record.amount_minor, expected.amount_minor),
        "currency": (record.currency, expected.currency),
        "marker": (record.marker, expected.marker),
    }
    return [name for name, (theirs, ours) in wanted.items() if theirs != ours]


def read_created(record: RefundRecord, expected: Expected, words: StatusWords) -> Answer:
    """The reading of a 2xx that shows one refund: proof only if every field is ours."""
    wrong = differences(record, expected)
    if wrong:
        return unanswered(
            f"The answer shows a refund whose {', '.join(wrong)} is not what we asked for.",
            record=record,
        )
    if record.provider_status in words.succeeded:
        return Answer(
            outcome=Outcome.CONFIRMED, because=f"Confirmed as {record.ref}.", record=record
        )
    if record.provider_status in words.pending:
        return Answer(
            outcome=Outcome.ACCEPTED,
            because=f"Accepted as {record.ref}; the provider is working on it.",
            record=record,
        )
    return unanswered(
        f"The answer shows {record.ref} with status {record.provider_status!r}.", record=record
    )
