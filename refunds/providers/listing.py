"""Reading a provider: one refund by reference, every page of a payment's refunds, or one page of
what an account lists of all its payments.

Only a list that was read to its end is complete; anything odd on the way makes it *cannot tell*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from refunds.domain.outcome import RawAnswer, RefundRecord
from refunds.providers import http, registry
from refunds.providers.account_list import AccountPage, What
from refunds.providers.base import Account, HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What was read: the records, whether the list is complete, and the last raw body.

    `gone`: the reference we hold, where a whole list lacks it and the provider says it has none.
    """

    records: tuple[RefundRecord, ...]
    complete: bool
    pages: int
    because: str
    body: bytes
    credential_refused: bool = False
    gone: str = ""


def read_payment(
    account: Account,
    payment_ref: str,
    *,
    known_ref: str | None,
    pages_max: int,
    total_seconds: float,
    body_bytes_max: int,
) -> Listing:
    """List the payment's refunds to the end, then retrieve `known_ref` if the list lacks it."""

    def ask(request: HttpRequest) -> RawAnswer:
        return http.call(request, total_seconds=total_seconds, body_bytes_max=body_bytes_max)

    adapter = registry.adapter(account)
    records: dict[str, RefundRecord] = {}
    cursor: str | None = None
    seen: set[str] = set()
    body = b""
    for pages in range(1, pages_max + 1):
        raw = ask(adapter.list_refunds(account, payment_ref, cursor))
        body = raw.body
        page = adapter.read_page(raw, payment_ref)
        because = adapter.speaks_for_another(raw, account) or page.because
        if because or not page.readable:
            refused = raw.status in (401, 403)
            return replace(_stopped(records, pages, because, body), credential_refused=refused)
        foreign = [each for each in page.records if each.payment_ref != payment_ref]
        if foreign:
            return _stopped(records, pages, "the list shows refunds of other payments", body)
        records |= {each.ref: each for each in page.records}
        if page.next_cursor is None:
            break
        if page.next_cursor in seen:
            return _stopped(records, pages, "the list's cursor goes round in a circle", body)
        seen.add(page.next_cursor)
        cursor = page.next_cursor
    else:
        return _stopped(records, pages_max, f"the list has more than {pages_max} pages", body)
    if known_ref and known_ref not in records:
        reading = adapter.read_one(ask(adapter.retrieve(account, known_ref)), payment_ref)
        if reading.record is None:
            because = f"{known_ref} is known but not listed, and {reading.because}"
            stopped = _stopped(records, pages, because, body)
            return replace(stopped, gone=known_ref if reading.not_there else "")
        records[known_ref] = reading.record
    return Listing(
        records=tuple(records.values()), complete=True, pages=pages, because="", body=body
    )


def read_account(
    account: Account,
    what: What,
    since: datetime,
    cursor: str,
    *,
    total_seconds: float,
    body_bytes_max: int,
) -> AccountPage:
    """One page of the account's refunds or disputes created at `since` or later; "" is the first."""
    adapter = registry.adapter(account)
    raw = http.call(
        adapter.list_account(account, what, since, cursor or None),
        total_seconds=total_seconds,
        body_bytes_max=body_bytes_max,
    )
    another = adapter.speaks_for_another(raw, account)
    if another:
        return AccountPage(readable=False, because=another)
    return adapter.read_account_page(raw, what)


def _stopped(records: dict[str, RefundRecord], pages: int, because: str, body: bytes) -> Listing:
    return Listing(
        records=tuple(records.values()), complete=False, pages=pages, because=because, body=body
    )
