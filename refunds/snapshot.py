"""One order as the merchant tells it: what a snapshot may hold, and what is refused of it.

Nothing is stored here; `refunds.feed` does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.domain.fingerprint import digest
from refunds.providers import registry
from refunds.text import check_links, check_ref

PAYMENT_STATES = ("uncaptured", "captured", "disputed", "reversed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentSnapshot:
    """A payment as fed; `captured_minor` in minor units of the order's currency."""

    ref: str
    provider_account: str
    state: str
    captured_minor: int
    captured_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalRefund:
    """A refund that was made elsewhere, as the merchant knows it."""

    payment_ref: str
    provider_refund_ref: str
    amount_minor: int
    provider_status: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSnapshot:
    """One order as fed. None means: not named, leave what is there."""

    ref: str
    currency: str
    feed_seq: int | None = None
    facts_as_of: datetime | None = None
    customer_ref: str | None = None
    return_state: str | None = None
    fulfilment_state: str | None = None
    placed_at: datetime | None = None
    lines: list[dict[str, Any]] | None = None
    facts: list[dict[str, Any]] | None = None
    links: dict[str, str] | None = None
    payments: tuple[PaymentSnapshot, ...] = ()
    external_refunds: tuple[ExternalRefund, ...] = ()

    def content_digest(self) -> bytes:
        """What makes two snapshots of one sequence number the same snapshot."""
        return digest(_plain({name: getattr(self, name) for name in self.__slots__}))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, PaymentSnapshot | ExternalRefund):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    return value


def check(snapshot: OrderSnapshot) -> None:
    """Raises Refusal: account_unknown, currency_unknown, payment_state_unknown, and the refusals of
    amounts and texts."""
    money.exponent(snapshot.currency)
    _check_named(snapshot.ref, "order_ref")
    for name in ("customer_ref", "return_state", "fulfilment_state"):
        # The column of both states holds 64 characters.
        check_ref(
            getattr(snapshot, name) or "", field=name, length_max=128 if "ref" in name else 64
        )
    check_links(snapshot.links or {}, settings.LINK_HOSTS)
    for refund in snapshot.external_refunds:
        _check_named(refund.provider_refund_ref, "provider_refund_ref")
        check_ref(refund.provider_status, field="provider_status", length_max=32)
    for place, payment in enumerate(snapshot.payments):
        _check_named(payment.ref, "payment_ref")
        if payment.provider_account not in registry.accounts():
            raise Refusal(
                "account_unknown",
                f"{payment.provider_account!r} is not a provider account of this installation.",
                what_to_do=f"Use one of: {', '.join(sorted(registry.accounts()))}.",
                field=f"payments.{place}.provider_account",
            )
        if payment.state not in PAYMENT_STATES:
            raise Refusal(
                "payment_state_unknown",
                f"{payment.state!r} is not a payment state.",
                what_to_do=f"Use one of: {', '.join(PAYMENT_STATES)}.",
                field=f"payments.{place}.state",
            )
        if payment.captured_minor < 0 or payment.captured_minor > money.AMOUNT_MINOR_MAX:
            raise Refusal(
                "amount_too_large" if payment.captured_minor > 0 else "amount_negative",
                f"captured_minor of {payment.ref} is {payment.captured_minor}.",
                what_to_do="Send minor units from 0 to 999999999999.",
                field=f"payments.{place}.captured_minor",
            )


def _check_named(ref: str, field: str) -> None:
    """A reference that other things are found by: not empty, and no longer than its column."""
    if not ref.strip():
        raise Refusal(
            "field_missing",
            f"{field} is empty.",
            what_to_do="Send the reference under which you know it.",
            field=field,
        )
    check_ref(ref, field=field)
