"""The `plain` dialect: the sandbox's own API, with every knob of a contract.

Source of its facts: the sandbox is in this repository, and its behaviour is tested.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from refunds.domain.effects import REFUND_CREATE
from refunds.domain.fingerprint import canonical
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

WORDS = StatusWords(
    succeeded=frozenset({"succeeded"}),
    pending=frozenset({"pending"}),
    failed=frozenset({"failed", "canceled"}),
)
# Given before execution, and final for this request whatever is tried again.
REFUSALS = frozenset(
    {
        "payment_not_refundable",
        "payment_disputed",
        "currency_mismatch",
        "amount_invalid",
        "reason_not_accepted",
    }
)
# (status, code) that the provider gives before it executes anything.
TURNED_AWAY = frozenset(
    {
        (401, "unauthorized"),
        (403, "forbidden"),
        (429, "rate_limited"),
    }
)
_REASONS = {
    "duplicate_payment": "duplicate",
}


class Plain:
    """Adapter of the plain dialect."""

    name = "plain"
    words = WORDS
    signature_header = "Sandbox-Signature"
    api_version = ""
    lists_newest_first = False

    def body(self, wish: Wish) -> bytes:
        return canonical(
            {
                "payment": wish.payment_ref,
                "amount_minor": wish.amount_minor,
                "currency": wish.currency,
                "reason_code": _REASONS.get(wish.reason_code, "customer_request"),
                "aftersend_operation": wish.marker,
            }
        )

    def create_refund(self, account: Account, body: bytes, key: str) -> HttpRequest:
        headers = _headers(account) | {"Content-Type": "application/json"}
        if account.contract.keys != "none":
            headers["Idempotency-Key"] = key
        return HttpRequest(
            method="POST",
            url=f"{account.base_url}/refunds",
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
            if raw.status == 201:
                return read_created(_record(table), expected, WORDS)
            code = _error_code(table)
        except NotOneRecord as error:
            return unanswered(f"HTTP {raw.status}, and {error}.")
        if (raw.status, code) in TURNED_AWAY:
            return Answer(
                outcome=Outcome.TURNED_AWAY,
                because=f"Turned away before execution: {code}.",
                code=code,
                credential_refused=raw.status in (401, 403),
            )
        if raw.status in (400, 409, 422) and code in REFUSALS:
            return Answer(outcome=Outcome.REFUSED, because=f"Refused: {code}.", code=code)
        return unanswered(f"HTTP {raw.status}, {code}: no proof either way.", code=code)

    def list_refunds(self, account: Account, payment_ref: str, cursor: str | None) -> HttpRequest:
        query = {"payment": payment_ref, "limit": "100"} | ({"after": cursor} if cursor else {})
        return HttpRequest(
            method="GET",
            url=f"{account.base_url}/refunds?{urlencode(query)}",
            headers=_headers(account),
        )

    def read_page(self, raw: RawAnswer, payment_ref: str) -> Page:
        try:
            items, cursor = _items(raw)
            records = tuple(_record(item) for item in items)
        except NotOneRecord as error:
            return Page(readable=False, because=str(error))
        return Page(readable=True, records=records, next_cursor=cursor)

    def retrieve(self, account: Account, ref: str) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=f"{account.base_url}/refunds/{quote(ref, safe='')}",
            headers=_headers(account),
        )

    def read_one(self, raw: RawAnswer, payment_ref: str) -> Reading:
        try:
            if raw.status == 404 and _error_code(parse_object(raw)) == "refund_not_found":
                return Reading(record=None, because="HTTP 404: it has none", not_there=True)
            if raw.status != 200:
                raise NotOneRecord(_no_answer(raw))
            return Reading(record=_record(parse_object(raw)))
        except NotOneRecord as error:
            return Reading(record=None, because=str(error))

    def list_account(
        self, account: Account, what: What, since: datetime, cursor: str | None
    ) -> HttpRequest:
        query = {"created_from": since.isoformat(), "limit": "100"}
        query |= {"after": cursor} if cursor else {}
        return HttpRequest(
            method="GET",
            url=f"{account.base_url}/{what}?{urlencode(query)}",
            headers=_headers(account),
        )

    def read_account_page(self, raw: RawAnswer, what: What) -> AccountPage:
        try:
            items, cursor = _items(raw)
            if what == "disputes":
                disputes = tuple(_dispute(item) for item in items)
                return AccountPage(readable=True, disputes=disputes, next_cursor=cursor)
            records = [_record(item) for item in items]
        except NotOneRecord as error:
            return AccountPage(readable=False, because=str(error))
        refunds = tuple(
            ListedRefund(record=each, payment_refs=(each.payment_ref,)) for each in records
        )
        return AccountPage(readable=True, refunds=refunds, next_cursor=cursor)

    def read_notice(self, body: bytes) -> Told:
        table = parse_bytes(body)
        event_id, kind = event_of(table)
        try:
            record = _record(table.get("refund"))
        except NotOneRecord as error:
            return Told(event_id=event_id, kind=kind, record=None, because=str(error))
        return Told(event_id=event_id, kind=kind, record=record, payment_refs=(record.payment_ref,))

    def speaks_for_another(self, raw: RawAnswer, account: Account) -> str:
        # The sandbox calls its own mode live, whatever we call the sandbox.
        ours = "live" if account.mode == "sandbox" else account.mode
        mode = raw.headers.get("sandbox-mode", ours)
        return "" if mode == ours else f"the answer is of mode {mode}, and we sent in mode {ours}"


def _headers(account: Account) -> dict[str, str]:
    return {"Authorization": f"Bearer {account.credential}", "Accept": "application/json"}


def _no_answer(raw: RawAnswer) -> str:
    return raw.failure or f"the provider answered HTTP {raw.status}"


def _items(raw: RawAnswer) -> tuple[list[Any], str | None]:
    """The items of a list and the cursor of its next page; raises NotOneRecord."""
    if raw.status != 200:
        raise NotOneRecord(_no_answer(raw))
    table = parse_object(raw)
    items, cursor = table.get("items"), table.get("next")
    if not isinstance(items, list) or not (cursor is None or text(cursor)):
        raise NotOneRecord("the list has no items or an odd cursor")
    return items, cursor


def _error_code(table: dict[str, Any]) -> str:
    error = table.get("error")
    code = text(error.get("code")) if isinstance(error, dict) else None
    if code is None:
        raise NotOneRecord("the body is not the provider's own error")
    return code


def _record(table: Any) -> RefundRecord:
    if not isinstance(table, dict):
        raise NotOneRecord("a refund is not an object")
    ref, status = text(table.get("id")), text(table.get("status"))
    payment = text(table.get("payment"))
    if not ref or not status or not payment:
        raise NotOneRecord("a refund has no id, status or payment")
    return RefundRecord(
        ref=ref,
        payment_ref=payment,
        amount_minor=whole(table.get("amount_minor")),
        currency=text(table.get("currency")),
        provider_status=status,
        marker=text(table.get("aftersend_operation")),
        created_at=instant(table.get("created_at")),
    )


_STANDINGS: dict[str, Standing] = {"won": "won", "lost": "lost"}


def _dispute(table: Any) -> ListedDispute:
    if not isinstance(table, dict):
        raise NotOneRecord("a dispute is not an object")
    ref, status = text(table.get("id")), text(table.get("status"))
    payment = text(table.get("payment"))
    if not ref or not status or not payment:
        raise NotOneRecord("a dispute has no id, status or payment")
    return ListedDispute(
        ref=ref,
        payment_refs=(payment,),
        amount_minor=whole(table.get("amount_minor")),
        currency=text(table.get("currency")),
        standing=_STANDINGS.get(status, "open"),
        provider_status=status,
        created_at=instant(table.get("created_at")),
    )
