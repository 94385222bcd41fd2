"""What verified notices prove where a provider can be told of, but not be asked. Pure.

Only for a contract whose notices are `proof`. A notice proves that a refund exists, never that
none does. A status on the way and its end are one story; two ends, or two amounts, of one refund
are two stories, and a person must look.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from reconciliation.matching import Finding, Verdict, match
from refunds.domain.outcome import Expected, RefundRecord
from refunds.providers.base import StatusWords

_NO_ABSENCE = "a notice tells what exists, and nothing about what does not"


def weigh(
    records: Iterable[RefundRecord],
    expected: Expected,
    *,
    words: StatusWords,
    known_refs: frozenset[str],
    first_recorded_at: datetime,
) -> Finding:
    """The finding that all the refunds told of one operation add up to; see the module."""
    told: dict[str, RefundRecord] = {}
    lacking: list[str] = []
    for record in records:
        missing = _missing(record)
        if missing:
            lacking.append(f"{record.ref} without {missing}")
            continue
        before = told.get(record.ref)
        merged = record if before is None else _one_story(before, record, words)
        if merged is None:
            return Finding(
                verdict=Verdict.DIFFERS,
                because=f"Two verified notices about {record.ref} do not agree.",
                record=before,
            )
        told[record.ref] = merged
    return match(
        told.values(),
        expected,
        complete=False,
        why_incomplete=f"told of {', '.join(lacking)}" if lacking else _NO_ABSENCE,
        known_refs=known_refs,
        first_recorded_at=first_recorded_at,
    )


def of_payment(record: RefundRecord, payment_ref: str, payment_refs: Iterable[str]) -> RefundRecord:
    """The record under the name that we have for its payment, where the notice gives several."""
    return replace(record, payment_ref=payment_ref) if payment_ref in payment_refs else record


def _missing(record: RefundRecord) -> str:
    """What a record lacks to be a proof; a payment's id in place of the refund's is no id."""
    lacks = {
        "an amount": record.amount_minor is None,
        "a currency": record.currency is None,
        "an id of its own": record.ref == record.payment_ref,
    }
    return " and ".join(name for name, is_missing in lacks.items() if is_missing)


def _one_story(one: RefundRecord, other: RefundRecord, words: StatusWords) -> RefundRecord | None:
    """The later of two notices of one refund, whichever came first; None if they disagree."""
    same = replace(other, provider_status=one.provider_status, created_at=one.created_at)
    if same != one:
        return None
    if one.provider_status == other.provider_status:
        return one
    if one.provider_status in words.pending:
        return other
    return one if other.provider_status in words.pending else None
