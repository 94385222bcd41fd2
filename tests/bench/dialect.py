"""The little protocol that every contender of a comparison speaks, as an adapter of the product.

    POST {base}/refund  {"op": marker, "amount": minor units}, headers Idempotency-Key and X-Pid
    200 {"ref": "re_<op>_<n>", "status": "succeeded", "amount": minor units}

It has no lookup and its keys may be ignored, and its contract says so: nothing is sent twice.
"""

from __future__ import annotations

import os
from datetime import datetime
from urllib.parse import quote

from refunds.domain.contract import ProviderContract
from refunds.domain.effects import REFUND_CREATE
from refunds.domain.fingerprint import canonical
from refunds.domain.outcome import Answer, Expected, RawAnswer, RefundRecord
from refunds.providers import registry
from refunds.providers.account_list import AccountPage, What
from refunds.providers.base import (
    Account,
    HttpRequest,
    NotOneRecord,
    Page,
    Reading,
    StatusWords,
    Told,
    Wish,
    not_on_the_wire,
    parse_object,
    read_created,
    text,
    unanswered,
    whole,
)

NAME = "bench"
WORDS = StatusWords(succeeded=frozenset({"succeeded"}))
CONTRACT = ProviderContract(name=NAME, keys="none")
_NO_LOOKUP = "this protocol has no lookup"


class Dialect:
    """Adapter of the little protocol."""

    name = NAME
    words = WORDS
    signature_header = ""
    api_version = ""
    lists_newest_first = False

    def body(self, wish: Wish) -> bytes:
        return canonical({"op": wish.marker, "amount": wish.amount_minor})

    def create_refund(self, account: Account, body: bytes, key: str) -> HttpRequest:
        return HttpRequest(
            method="POST",
            url=f"{account.base_url}/refund",
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": key,
                "X-Pid": str(os.getpid()),
            },
            body=body,
            effect=REFUND_CREATE,
        )

    def read_answer(self, raw: RawAnswer, expected: Expected) -> Answer:
        failed = not_on_the_wire(raw)
        if failed is not None:
            return failed
        try:
            table = parse_object(raw)
        except NotOneRecord as error:
            return unanswered(f"HTTP {raw.status}, and {error}.")
        ref, status = text(table.get("ref")), text(table.get("status"))
        if raw.status != 200 or not ref or not status:
            return unanswered(f"HTTP {raw.status}: no proof either way.")
        # The answer names neither payment nor currency; its reference repeats what we named.
        record = RefundRecord(
            ref=ref,
            payment_ref=expected.payment_ref,
            amount_minor=whole(table.get("amount")),
            currency=expected.currency,
            provider_status=status,
            marker=ref.removeprefix("re_").rpartition("_")[0],
        )
        return read_created(record, expected, WORDS)

    def list_refunds(self, account: Account, payment_ref: str, cursor: str | None) -> HttpRequest:
        return HttpRequest(method="GET", url=f"{account.base_url}/none", headers={})

    def read_page(self, raw: RawAnswer, payment_ref: str) -> Page:
        return Page(readable=False, because=_NO_LOOKUP)

    def retrieve(self, account: Account, ref: str) -> HttpRequest:
        return HttpRequest(method="GET", url=f"{account.base_url}/none/{quote(ref)}", headers={})

    def read_one(self, raw: RawAnswer, payment_ref: str) -> Reading:
        return Reading(record=None, because=_NO_LOOKUP)

    def list_account(
        self, account: Account, what: What, since: datetime, cursor: str | None
    ) -> HttpRequest:
        return HttpRequest(method="GET", url=f"{account.base_url}/none", headers={})

    def read_account_page(self, raw: RawAnswer, what: What) -> AccountPage:
        return AccountPage(readable=False, because=_NO_LOOKUP)

    def read_notice(self, body: bytes) -> Told:
        raise NotOneRecord("this protocol has no notices")

    def speaks_for_another(self, raw: RawAnswer, account: Account) -> str:
        return ""


def register() -> None:
    """Let this process know the protocol; call before the accounts are read."""
    registry.ADAPTERS[NAME] = Dialect()
    registry.CONTRACTS[NAME] = CONTRACT
