"""Stripe's objects as we read them: refunds, what a list shows of them, and disputes.

Every function raises NotOneRecord for what is not such an object.
"""

from __future__ import annotations

from typing import Any

from refunds.domain.outcome import RefundRecord
from refunds.providers.account_list import ListedDispute, ListedRefund, Standing
from refunds.providers.base import NotOneRecord, instant, text, whole
from refunds.providers.stripe_amounts import from_stripe_amount


def listed(table: Any) -> ListedRefund:
    """A refund of an account's list, with every name of its payment."""
    if not isinstance(table, dict):
        raise NotOneRecord("an object is not a refund")
    # A refund of a customer's cash balance has neither intent nor charge.
    names = _names_of_payment(table)
    record = refund({**table, "payment_intent": names[0] if names else "none"}, "pi_")
    return ListedRefund(record=record, payment_refs=names)


# docs.stripe.com/api/disputes/object: an inquiry (warning_...) leaves the charge refundable.
_STANDINGS: dict[str, Standing] = {
    "won": "won",
    "warning_closed": "won",
    "prevented": "won",
    "lost": "lost",
}


def dispute(table: Any) -> ListedDispute:
    """A dispute of an account's list; amounts in ISO minor units."""
    if not isinstance(table, dict) or table.get("object") != "dispute":
        raise NotOneRecord("an object is not a dispute")
    ref, status = text(table.get("id")), text(table.get("status"))
    if not ref or not status:
        raise NotOneRecord("a dispute has no id or status")
    inquiry = status.startswith("warning_") and table.get("is_charge_refundable") is True
    currency = (text(table.get("currency")) or "").upper() or None
    return ListedDispute(
        ref=ref,
        payment_refs=_names_of_payment(table),
        amount_minor=from_stripe_amount(whole(table.get("amount")), currency),
        currency=currency,
        standing=_STANDINGS.get(status, "inquiry" if inquiry else "open"),
        provider_status=status,
        created_at=instant(table.get("created")),
    )


def refund(table: Any, payment_ref: str) -> RefundRecord:
    """A refund of the payment that was asked for by `payment_ref`, an intent or a charge."""
    if not isinstance(table, dict) or table.get("object") != "refund":
        raise NotOneRecord("an object is not a refund")
    ref, status = text(table.get("id")), text(table.get("status"))
    # A refund names both the intent and its charge: compare with the kind that we asked by.
    payment = text(table.get(parent(payment_ref)))
    if not ref or not status or not payment:
        raise NotOneRecord("a refund has no id, status or payment")
    currency = (text(table.get("currency")) or "").upper() or None
    metadata = table.get("metadata")
    return RefundRecord(
        ref=ref,
        payment_ref=payment,
        amount_minor=from_stripe_amount(whole(table.get("amount")), currency),
        currency=currency,
        provider_status=status,
        marker=text(metadata.get("aftersend_operation")) if isinstance(metadata, dict) else None,
        created_at=instant(table.get("created")),
    )


def payment_refs(shown: Any) -> tuple[str, ...]:
    """The intent and the charge that a refund or a charge belongs to, as far as it names them."""
    if not isinstance(shown, dict):
        return ()
    of_charge = text(shown.get("id")) if shown.get("object") == "charge" else None
    named = (text(shown.get("payment_intent")), text(shown.get("charge")), of_charge)
    return tuple(each for each in named if each)


def parent(payment_ref: str) -> str:
    """The field of a refund that names a payment of this kind."""
    return "charge" if payment_ref.startswith(("ch_", "py_")) else "payment_intent"


def _names_of_payment(table: dict[str, Any]) -> tuple[str, ...]:
    return tuple(filter(None, (text(table.get("payment_intent")), text(table.get("charge")))))
