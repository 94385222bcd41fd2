"""Stripe's refunds, API v1, over plain HTTP.

Not through Stripe's SDK: its hidden retries would be attempts that the ledger never recorded.
Facts and their sources are in CONTRACT; currencies where Stripe departs from ISO 4217 are in
EXPONENTS.
"""

from __future__ import annotations

import base64
import math
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from refunds.domain.contract import Fact, ProviderContract, Source
from refunds.domain.effects import REFUND_CREATE
from refunds.domain.errors import Refusal
from refunds.domain.money import exponent
from refunds.domain.outcome import Answer, Expected, Outcome, RawAnswer, RefundRecord
from refunds.providers.account_list import (
    AccountPage,
    ListedDispute,
    ListedRefund,
    Standing,
    What,
)
from refunds.providers.base import (
    Account,
    HttpRequest,
    NotOneRecord,
    Page,
    Reading,
    StatusWords,
    Told,
    Wish,
    event_of,
    instant,
    not_on_the_wire,
    parse_bytes,
    parse_object,
    read_created,
    text,
    unanswered,
    whole,
)

LIVE_URL = "https://api.stripe.com"
CONTRACT = ProviderContract(
    name="stripe",
    keys="window",
    key_window=Fact(86_400, "documented", "docs.stripe.com/api/idempotent_requests", "2026-11-29"),
    terms=Source(
        "documented",
        "docs.stripe.com/api/idempotent_requests, /api/refunds/list, /webhooks",
        "2026-11-29",
    ),
    rejections_stored=True,
    lookup="now",
    # GET /v1/refunds and /v1/disputes take created[gte] (docs.stripe.com/api/refunds/list).
    account_list="by_creation",
    notice="hint",
    server_errors_replayed=True,
    watch_after_success_days=45,
    normal_window_seconds=60,
    escalation_grace_seconds=900,
)
WORDS = StatusWords(
    succeeded=frozenset({"succeeded"}),
    pending=frozenset({"pending", "requires_action"}),
    failed=frozenset({"failed", "canceled"}),
)
# invalid_request_error codes that say the request itself can never pay. The "already refunded"
# and "more than is left" family is not here: it is also what our own success looks like.
REFUSALS = frozenset(
    {
        "charge_disputed",
        "refund_disputed_payment",
        "charge_not_refundable",
        "payment_intent_unexpected_state",
        "parameter_invalid_integer",
        "parameter_missing",
        "parameter_unknown",
        "amount_too_small",
    }
)
# Currencies whose minor units at Stripe are not ISO 4217's (docs.stripe.com/currencies):
# written with two digits that must be 00 (ISK, UGX), or without digits where ISO has them.
TWO_DIGITS_ALWAYS_ZERO = frozenset({"ISK", "UGX"})
ZERO_DIGITS = frozenset({"MGA"})
_REASONS = {"duplicate_payment": "duplicate"}


def to_stripe_amount(amount_minor: int, currency: str) -> int:
    """ISO minor units to Stripe's integer; raises Refusal where Stripe cannot express it."""
    if currency in TWO_DIGITS_ALWAYS_ZERO:
        return amount_minor * 100
    if currency in ZERO_DIGITS:
        if amount_minor % 100:
            raise Refusal(
                "amount_fraction",
                f"Stripe takes {currency} without a fraction.",
                what_to_do="Round the refund with the customer and propose that amount.",
                field="amount",
            )
        return amount_minor // 100
    if exponent(currency) == 3 and amount_minor % 10:
        raise Refusal(
            "amount_fraction",
            f"Stripe takes {currency} amounts whose last digit is 0.",
            what_to_do="Propose an amount that ends in 0.",
            field="amount",
        )
    return amount_minor


def from_stripe_amount(amount: int | None, currency: str | None) -> int | None:
    """Stripe's integer to ISO minor units; None where it is not expressible."""
    if amount is None or currency is None:
        return None
    if currency in TWO_DIGITS_ALWAYS_ZERO:
        return amount // 100 if amount % 100 == 0 else None
    return amount * 100 if currency in ZERO_DIGITS else amount


class Stripe:
    """Adapter of Stripe's API v1."""

    name = "stripe"
    words = WORDS
    signature_header = "Stripe-Signature"
    lists_newest_first = True  # docs.stripe.com/api/refunds/list

    def body(self, wish: Wish) -> bytes:
        return urlencode(
            [
                (_parent(wish.payment_ref), wish.payment_ref),
                ("amount", str(to_stripe_amount(wish.amount_minor, wish.currency))),
                ("reason", _REASONS.get(wish.reason_code, "requested_by_customer")),
                ("metadata[aftersend_operation]", wish.marker),
            ]
        ).encode()

    def create_refund(self, account: Account, body: bytes, key: str) -> HttpRequest:
        headers = _headers(account) | {
            "Content-Type": "application/x-www-form-urlencoded",
            "Idempotency-Key": key,
        }
        return HttpRequest(
            method="POST",
            url=f"{account.base_url}/v1/refunds",
            headers=headers,
            body=body,
            effect=REFUND_CREATE,
        )

    def read_answer(self, raw: RawAnswer, expected: Expected) -> Answer:
        failed = not_on_the_wire(raw)
        if failed is not None:
            return failed
        try:
            table = parse_object(raw)
            if raw.status == 200:
                return read_created(_record(table, expected.payment_ref), expected, WORDS)
            kind, code = _error(table)
        except NotOneRecord as error:
            return unanswered(f"HTTP {raw.status}, and {error}.")
        return _read_error(raw, kind, code)

    def list_refunds(self, account: Account, payment_ref: str, cursor: str | None) -> HttpRequest:
        query = {_parent(payment_ref): payment_ref, "limit": "100"}
        if cursor:
            query["starting_after"] = cursor
        return HttpRequest(
            method="GET",
            url=f"{account.base_url}/v1/refunds?{urlencode(query)}",
            headers=_headers(account),
        )

    def read_page(self, raw: RawAnswer, payment_ref: str) -> Page:
        try:
            items, more = _items(raw)
            records = tuple(_record(item, payment_ref) for item in items)
        except NotOneRecord as error:
            return Page(readable=False, because=str(error))
        return Page(readable=True, records=records, next_cursor=records[-1].ref if more else None)

    def retrieve(self, account: Account, ref: str) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=f"{account.base_url}/v1/refunds/{quote(ref, safe='')}",
            headers=_headers(account),
        )

    def read_one(self, raw: RawAnswer, payment_ref: str) -> Reading:
        try:
            if raw.status == 404 and _error(parse_object(raw))[1] == "resource_missing":
                return Reading(record=None, because="HTTP 404: it has none", not_there=True)
            if raw.status != 200:
                raise NotOneRecord(raw.failure or f"the provider answered HTTP {raw.status}")
            return Reading(record=_record(parse_object(raw), payment_ref))
        except NotOneRecord as error:
            return Reading(record=None, because=str(error))

    def list_account(
        self, account: Account, what: What, since: datetime, cursor: str | None
    ) -> HttpRequest:
        query = {"created[gte]": str(math.floor(since.timestamp())), "limit": "100"}
        query |= {"starting_after": cursor} if cursor else {}
        return HttpRequest(
            method="GET",
            url=f"{account.base_url}/v1/{what}?{urlencode(query)}",
            headers=_headers(account),
        )

    def read_account_page(self, raw: RawAnswer, what: What) -> AccountPage:
        try:
            items, more = _items(raw)
            if what == "disputes":
                disputes = tuple(_dispute(item) for item in items)
                last = disputes[-1].ref if more else None
                return AccountPage(readable=True, disputes=disputes, next_cursor=last)
            refunds = tuple(_listed(item) for item in items)
        except NotOneRecord as error:
            return AccountPage(readable=False, because=str(error))
        last = refunds[-1].record.ref if more else None
        return AccountPage(readable=True, refunds=refunds, next_cursor=last)

    def read_notice(self, body: bytes) -> Told:
        table = parse_bytes(body)
        if table.get("object") != "event" or not isinstance(table.get("livemode"), bool):
            raise NotOneRecord("the body is not a Stripe event with its mode")
        event_id, kind = event_of(table)
        content = table.get("data")
        shown = content.get("object") if isinstance(content, dict) else None
        refs = _payment_refs(shown)
        record, because = None, ""
        try:
            # charge.refunded shows a charge with a running total: no refund, so only a hint.
            record = _record(shown, refs[0] if refs else "")
        except NotOneRecord as error:
            because = str(error)
        return Told(
            event_id=event_id,
            kind=kind,
            record=record,
            because=because,
            payment_refs=refs,
            mode="live" if table["livemode"] else "test",
            of_account=text(table.get("account")),
        )

    def speaks_for_another(self, raw: RawAnswer, account: Account) -> str:
        # The key decides the mode, and a payment of the other mode is an error, not an empty list.
        return ""


def _read_error(raw: RawAnswer, kind: str, code: str | None) -> Answer:
    named = code or kind
    if raw.status in (401, 403) and kind in ("invalid_request_error", "authentication_error"):
        # Documented: authentication runs before execution, errors/handling page.
        return Answer(
            outcome=Outcome.TURNED_AWAY,
            because=f"Turned away before execution: HTTP {raw.status}, {named}.",
            code=named,
            credential_refused=True,
        )
    if raw.status == 429 and code == "rate_limit":
        # Documented: the limiter sits before the idempotency layer (error-low-level).
        return Answer(
            outcome=Outcome.TURNED_AWAY,
            because="Turned away before execution: rate_limit.",
            code=named,
        )
    if raw.status == 400 and kind == "invalid_request_error" and code in REFUSALS:
        return Answer(outcome=Outcome.REFUSED, because=f"Refused: {code}.", code=code)
    return unanswered(f"HTTP {raw.status}, {named}: no proof either way.", code=named)


def _payment_refs(shown: Any) -> tuple[str, ...]:
    """The intent and the charge that a refund or a charge belongs to, as far as it names them."""
    if not isinstance(shown, dict):
        return ()
    of_charge = text(shown.get("id")) if shown.get("object") == "charge" else None
    named = (text(shown.get("payment_intent")), text(shown.get("charge")), of_charge)
    return tuple(each for each in named if each)


def _parent(payment_ref: str) -> str:
    return "charge" if payment_ref.startswith(("ch_", "py_")) else "payment_intent"


def _headers(account: Account) -> dict[str, str]:
    token = base64.b64encode(f"{account.credential}:".encode()).decode()
    return {"Authorization": f"Basic {token}", "Accept": "application/json"}


def _error(table: dict[str, Any]) -> tuple[str, str | None]:
    error = table.get("error")
    kind = text(error.get("type")) if isinstance(error, dict) else None
    if kind is None or not isinstance(error, dict):
        raise NotOneRecord("the body is not Stripe's own error")
    return kind, text(error.get("code"))


def _items(raw: RawAnswer) -> tuple[list[Any], bool]:
    """The items of a list and whether it goes on; raises NotOneRecord."""
    if raw.status != 200:
        raise NotOneRecord(raw.failure or f"the provider answered HTTP {raw.status}")
    table = parse_object(raw)
    items, more = table.get("data"), table.get("has_more")
    if table.get("object") != "list" or not isinstance(items, list):
        raise NotOneRecord("the body is not a list")
    if not isinstance(more, bool) or (more and not items):
        raise NotOneRecord("the list does not say whether it is complete")
    return items, more


def _names_of_payment(table: dict[str, Any]) -> tuple[str, ...]:
    return tuple(filter(None, (text(table.get("payment_intent")), text(table.get("charge")))))


def _listed(table: Any) -> ListedRefund:
    if not isinstance(table, dict):
        raise NotOneRecord("an object is not a refund")
    # A refund of a customer's cash balance has neither intent nor charge.
    names = _names_of_payment(table)
    record = _record({**table, "payment_intent": names[0] if names else "none"}, "pi_")
    return ListedRefund(record=record, payment_refs=names)


# docs.stripe.com/api/disputes/object: an inquiry (warning_...) leaves the charge refundable.
_STANDINGS: dict[str, Standing] = {
    "won": "won",
    "warning_closed": "won",
    "prevented": "won",
    "lost": "lost",
}


def _dispute(table: Any) -> ListedDispute:
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


def _record(table: Any, payment_ref: str) -> RefundRecord:
    if not isinstance(table, dict) or table.get("object") != "refund":
        raise NotOneRecord("an object is not a refund")
    ref, status = text(table.get("id")), text(table.get("status"))
    # A refund names both the intent and its charge: compare with the kind that we asked by.
    payment = text(table.get(_parent(payment_ref)))
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
