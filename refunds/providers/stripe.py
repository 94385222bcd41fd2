"""Stripe's refunds, API v1, over plain HTTP.

Not through Stripe's SDK: its hidden retries would be attempts that the ledger never recorded.
Facts and their sources are in CONTRACT; its objects are read by `stripe_records`, and currencies
where it departs from ISO 4217 by `stripe_amounts`.
"""

from __future__ import annotations

import base64
import math
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from refunds.domain.contract import Fact, ProviderContract, Source
from refunds.domain.effects import REFUND_CREATE
from refunds.domain.outcome import Answer, Expected, Outcome, RawAnswer
from refunds.providers import stripe_records
from refunds.providers.account_list import (
    AccountPage,
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
    not_on_the_wire,
    parse_bytes,
    parse_object,
    read_created,
    text,
    unanswered,
)
from refunds.providers.stripe_amounts import to_stripe_amount

LIVE_URL = "https://api.stripe.com"
# What every request asks for (docs.stripe.com/api/versioning) and everything below is written for:
# without it the account's own default would decide, which anybody can change in the dashboard.
API_VERSION = "2026-10-28.endive"
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
_REASONS = {"duplicate_payment": "duplicate"}


class Stripe:
    """Adapter of Stripe's API v1."""

    name = "stripe"
    words = WORDS
    signature_header = "Stripe-Signature"
    api_version = API_VERSION
    lists_newest_first = True  # docs.stripe.com/api/refunds/list

    def body(self, wish: Wish) -> bytes:
        return urlencode(
            [
                (stripe_records.parent(wish.payment_ref), wish.payment_ref),
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
                return read_created(
                    stripe_records.refund(table, expected.payment_ref), expected, WORDS
                )
            kind, code = _error(table)
        except NotOneRecord as error:
            return unanswered(f"HTTP {raw.status}, and {error}.")
        return _read_error(raw, kind, code)

    def list_refunds(self, account: Account, payment_ref: str, cursor: str | None) -> HttpRequest:
        query = {stripe_records.parent(payment_ref): payment_ref, "limit": "100"}
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
            records = tuple(stripe_records.refund(item, payment_ref) for item in items)
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
            return Reading(record=stripe_records.refund(parse_object(raw), payment_ref))
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
                disputes = tuple(stripe_records.dispute(item) for item in items)
                last = disputes[-1].ref if more else None
                return AccountPage(readable=True, disputes=disputes, next_cursor=last)
            refunds = tuple(stripe_records.listed(item) for item in items)
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
        refs = stripe_records.payment_refs(shown)
        record, because = None, ""
        try:
            # charge.refunded shows a charge with a running total: no refund, so only a hint.
            record = stripe_records.refund(shown, refs[0] if refs else "")
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
        version = raw.headers.get("stripe-version", account.api_version)
        if version == account.api_version:
            return ""
        return f"the answer is of API version {version}, and we asked for {account.api_version}"


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


def _headers(account: Account) -> dict[str, str]:
    token = base64.b64encode(f"{account.credential}:".encode()).decode()
    return {
        "Authorization": f"Basic {token}",
        "Accept": "application/json",
        "Stripe-Version": account.api_version,
    }


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
