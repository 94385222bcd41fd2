"""The inbox of notices: one row per event of an account, for ever; and counts of what was refused."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Sum
from psycopg.types.json import Jsonb

from reconciliation.models import Notice, NoticeRefused
from refunds.domain.contract import ProviderContract
from refunds.domain.outcome import RefundRecord
from refunds.models import Operation
from refunds.providers import registry
from refunds.providers.base import Account, Told, instant

# The bell rings at once; the sweep takes what no bell was heard for.
_SWEEP_AFTER = timedelta(seconds=2)
_COLUMNS = """provider_account, event_id, kind, verdict, because, body, digest, facts, signed_at,
  arrived_at, due_at, deliveries, tries, failures, outcome"""
_VALUES = """%(account)s, %(event_id)s, %(kind)s, %(verdict)s, %(because)s, %(body)s, %(digest)s,
  %(facts)s, %(signed_at)s, %(arrived_at)s, %(due_at)s, 1, 0, 0, ''"""
# A repeated one is counted. One with other content under the same id finds no row to count in.
_STORE = f"""
INSERT INTO notice ({_COLUMNS}) VALUES ({_VALUES})
ON CONFLICT (provider_account, event_id) WHERE verdict IN ('genuine', 'foreign')
DO UPDATE SET deliveries = notice.deliveries + 1 WHERE notice.digest = EXCLUDED.digest
RETURNING id, deliveries"""  # noqa: S608 - columns from constants
_STORE_ODD = f"""
INSERT INTO notice ({_COLUMNS}) VALUES ({_VALUES})
ON CONFLICT (provider_account, event_id, digest) WHERE verdict = 'odd'
DO UPDATE SET deliveries = notice.deliveries + 1
RETURNING id, deliveries"""  # noqa: S608 - columns from constants
_COUNT = """
INSERT INTO notice_refused (provider_account, reason, minute, count)
VALUES (%s, %s, date_trunc('minute', %s), 1)
ON CONFLICT (provider_account, reason, minute) DO UPDATE SET count = notice_refused.count + 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A notice that is committed; `is_new` is false for one that came before."""

    id: int
    verdict: str
    is_new: bool


def store(
    account: Account, told: Told, body: bytes, *, signed_at: datetime, arrived_at: datetime
) -> Stored:
    """Commit one verified notice; call with no transaction open. Raises DatabaseError."""
    because = _foreign(account, told)
    values: dict[str, Any] = {
        "account": account.name,
        "event_id": told.event_id,
        "kind": told.kind,
        "verdict": "foreign" if because else "genuine",
        "because": because,
        "body": body,
        "digest": hashlib.sha256(body).digest(),
        "facts": Jsonb(facts_of(told)),
        "signed_at": signed_at,
        "arrived_at": arrived_at,
        "due_at": arrived_at + _SWEEP_AFTER,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STORE, values)
        row = cursor.fetchone()
        if row is None:
            values["verdict"] = "odd"
            values["because"] = "Another notice came under this id before."
            cursor.execute(_STORE_ODD, values)
            row = cursor.fetchone()
    assert row is not None
    return Stored(id=row[0], verdict=values["verdict"], is_new=row[1] == 1)


def facts_of(told: Told) -> dict[str, Any]:
    """What a notice says, as stored: the refund's fields, or why it shows none."""
    record = told.record
    shown: dict[str, Any] = {"payment_refs": list(told.payment_refs), "unreadable": told.because}
    if record is not None:
        shown |= {
            "ref": record.ref,
            "payment_ref": record.payment_ref,
            "amount_minor": record.amount_minor,
            "currency": record.currency,
            "provider_status": record.provider_status,
            "marker": record.marker,
            "created_at": record.created_at.isoformat() if record.created_at else None,
        }
    return shown


def record_of(notice: Notice) -> RefundRecord | None:
    """The refund that a notice shows, or None where it shows none."""
    facts = notice.facts
    if not facts.get("ref"):
        return None
    return RefundRecord(
        ref=facts["ref"],
        payment_ref=facts["payment_ref"],
        amount_minor=facts["amount_minor"],
        currency=facts["currency"],
        provider_status=facts["provider_status"],
        marker=facts["marker"],
        created_at=instant(facts["created_at"]),
    )


def told_of_money(operation: Operation) -> str:
    """The refund that a verified notice of this operation tells of as paid or on its way, or ""."""
    words = registry.adapter(registry.account(operation.provider_account)).words
    told = Notice.objects.filter(
        operation=operation,
        verdict="genuine",
        facts__provider_status__in=sorted(words.succeeded | words.pending),
    )
    refs = told.order_by("pk").values_list("facts__ref", flat=True)
    return str(refs[0]) if refs else ""


def is_proof(contract: ProviderContract) -> bool:
    """Whether a verified notice may decide: only where nobody can be asked instead."""
    return contract.notice == "proof" and contract.lookup == "none"


def _foreign(account: Account, told: Told) -> str:
    # The sandbox calls its own mode live, whatever we call the sandbox.
    ours = "live" if account.mode == "sandbox" else account.mode
    if told.mode is not None and told.mode != ours:
        return f"It is of mode {told.mode}, and {account.name} is of mode {ours}."
    if told.of_account is not None:
        return f"It is about another account, {told.of_account}."[:300]
    return ""


def count_refused(account: str, reason: str, at: datetime) -> None:
    """One more notice of this account was turned away in this minute."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, (account, reason, at))


def refused_since(at: datetime) -> dict[tuple[str, str], int]:
    """How many notices were turned away since then, by (account, reason); for monitors."""
    rows = (
        NoticeRefused.objects.filter(minute__gte=at)
        .values_list("provider_account", "reason")
        .annotate(Sum("count"))
    )
    return {(account, reason): total for account, reason, total in rows}
