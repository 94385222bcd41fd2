"""How a provider speaks: one engine, several dialects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.book import Payment, Refund
from sandbox.disputes import Dispute
from sandbox.operations import Answer, Call, Declined, Operation


@dataclass(frozen=True, kw_only=True)
class Page:
    """Part of a list; `cursor` continues it where the dialect names cursors itself."""

    refunds: list[Refund]
    more: bool
    cursor: str | None


@dataclass(frozen=True, kw_only=True)
class DisputePage:
    """As Page, of disputes."""

    disputes: list[Dispute]
    more: bool
    cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Stamp:
    account: str
    mode: str
    call_number: int
    key: str | None
    api_version: str | None = None


class Dialect(Protocol):
    """The wire format of one family of accounts. Reading raises Declined, writing never."""

    refund_prefix: str
    statuses: tuple[str, ...]
    amount_field: str
    declines_other_mode: bool

    def credential(self, headers: Mapping[str, str]) -> str | None:
        """The secret that the caller presents, or None."""

    def read(self, call: Call) -> Operation:
        """What the request asks for; Declined when it cannot be read."""

    def shown(self, refund: Refund) -> dict[str, Any]: ...

    def created(self, refund: Refund) -> Answer: ...

    def current(self, refund: Refund) -> Answer: ...

    def page(self, page: Page) -> Answer: ...

    def dispute_page(self, page: DisputePage) -> Answer: ...

    def payment(self, payment: Payment, mode: str) -> Answer: ...

    def declined(self, declined: Declined) -> Answer: ...

    def replayed(self, answer: Answer) -> Answer:
        """A stored answer given again, marked as such where the dialect does."""

    def stamp(self, answer: Answer, stamp: Stamp) -> Answer:
        """The answer with the headers that every answer of this dialect carries."""

    def notice(self, number: int, at: int, shown: Mapping[str, Any]) -> bytes: ...

    def signature(self, secret: str, timestamp: int, body: bytes) -> tuple[str, str]:
        """Name and value of the header that signs a notice."""
