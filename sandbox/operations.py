"""What can be asked of the provider, free of any dialect, and what comes back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self


class Declined(Exception):
    """The request was turned down before it was executed; never stored under a key."""

    def __init__(self, code: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


class Refused(Declined):
    """The provider looked at the payment and said no; may be stored under the key."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"

    @classmethod
    def of(cls, status: int, content: object, *headers: tuple[str, str]) -> Self:
        return cls(status=status, body=json.dumps(content).encode(), headers=headers)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One HTTP request as it arrived; `path` is relative to the account's base."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")


@dataclass(frozen=True, kw_only=True)
class Create:
    """A refund asked for. `amount_minor` None means all that is left of the payment."""

    on: ClassVar[str] = "create"
    payment_ref: str | None
    charge: str | None = None
    amount_minor: int | None
    currency: str | None
    reason: str | None
    marker: str | None
    metadata: Mapping[str, str] = field(default_factory=dict)
    key: str | None
    digest: str


@dataclass(frozen=True, kw_only=True)
class Retrieve:
    on: ClassVar[str] = "retrieve"
    refund_id: str


@dataclass(frozen=True, kw_only=True)
class ListRefunds:
    """`created_from` is inclusive, `created_until` exclusive, both microseconds."""

    on: ClassVar[str] = "list"
    payment_ref: str | None = None
    charge: str | None = None
    created_from: int | None = None
    created_until: int | None = None
    limit: int
    after: str | None = None
    before: str | None = None
    newest_first: bool = False


@dataclass(frozen=True, kw_only=True)
class ListDisputes:
    """Bounds as of ListRefunds."""

    on: ClassVar[str] = "list"
    payment_ref: str | None = None
    charge: str | None = None
    created_from: int | None = None
    created_until: int | None = None
    limit: int
    after: str | None = None
    newest_first: bool = False


@dataclass(frozen=True, kw_only=True)
class Cancel:
    on: ClassVar[str] = "cancel"
    refund_id: str
    key: str | None
    digest: str


@dataclass(frozen=True, kw_only=True)
class Update:
    """Change of metadata; an empty value removes its name, None removes all."""

    on: ClassVar[str] = "update"
    refund_id: str
    metadata: Mapping[str, str] | None
    key: str | None
    digest: str


@dataclass(frozen=True, kw_only=True)
class ReadPayment:
    on: ClassVar[str] = "payment"
    ref: str


Operation = Create | Retrieve | ListRefunds | ListDisputes | Cancel | Update | ReadPayment


@dataclass(frozen=True)
class Fired:
    """A fault that a rule lets loose on one request or notice."""

    fault: str
    options: Mapping[str, Any]


class Twists:
    """The faults of one request, by name; the first of a name counts."""

    def __init__(self, fired: tuple[Fired, ...] = ()) -> None:
        self.fired = fired

    @property
    def names(self) -> list[str]:
        return [one.fault for one in self.fired]

    def __contains__(self, fault: str) -> bool:
        return fault in self.names

    def options(self, fault: str) -> Mapping[str, Any] | None:
        """The rule's `with` for this fault, or None when it did not fire."""
        return next((one.options for one in self.fired if one.fault == fault), None)

    def seconds(self, fault: str, default: float) -> float:
        return float((self.options(fault) or {}).get("seconds", default))
