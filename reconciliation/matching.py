"""Comparing what a provider shows with what we asked for. Pure.

Ours is known by our marker or by a reference we hold; amount, payment, currency, status and time
never match by themselves: they are cross-checks that can only lead to a person (rule 20). Where a
provider gives no marker back, an equal refund of nobody else's is neither ours nor proof of absence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from refunds.domain.outcome import Expected, RefundRecord

# A provider's clock may be a little behind ours, and some cut to the second.
_CLOCK_TOLERANCE = timedelta(seconds=30)


class Verdict(StrEnum):
    """What one lookup says about one operation."""

    MATCH = "match"
    DIFFERS = "differs"
    DUPLICATE = "duplicate"
    ABSENT = "absent"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One refund the provider shows, with a verdict per field: match, differs or missing."""

    record: RefundRecord
    ours: bool
    fields: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """The JSON form stored with the finding."""
        record = self.record
        return {
            "ref": record.ref,
            "payment_ref": record.payment_ref,
            "amount_minor": record.amount_minor,
            "currency": record.currency,
            "provider_status": record.provider_status,
            "marker": record.marker,
            "created_at": record.created_at.isoformat() if record.created_at else None,
            "ours": self.ours,
            "fields": self.fields,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a lookup; `record` is ours where exactly one is.

    `complete`: everything the provider shows of the payment was read, to the end. `gone`: a reference
    we hold that a whole list lacks and the provider says it does not have; it proves no absence.
    """

    verdict: Verdict
    because: str
    record: RefundRecord | None = None
    candidates: tuple[Candidate, ...] = field(default=())
    complete: bool = False
    gone: str = ""


def match(
    records: Iterable[RefundRecord],
    expected: Expected,
    *,
    complete: bool,
    why_incomplete: str,
    known_refs: frozenset[str],
    first_recorded_at: datetime,
    others_refs: frozenset[str] | None = None,
) -> Finding:
    """Compare every record with the operation; see Verdict.

    `others_refs` is given where the provider gives no marker back: the references that are booked
    for other operations.
    """
    candidates = tuple(
        _compare(record, expected, known_refs, first_recorded_at) for record in records
    )
    ours = [each for each in candidates if each.ours]
    if len(ours) > 1:
        refs = ", ".join(each.record.ref for each in ours)
        return Finding(
            verdict=Verdict.DUPLICATE,
            because=f"The provider shows more than one refund of this operation: {refs}.",
            candidates=candidates,
            complete=complete,
        )
    if ours:
        return replace(_one(ours[0], candidates), complete=complete)
    if not complete:
        return Finding(
            verdict=Verdict.CANNOT_TELL,
            because=f"The provider did not answer the question: {why_incomplete}.",
            candidates=candidates,
        )
    unclear = [] if others_refs is None else _may_be_ours(candidates, others_refs)
    if unclear:
        return Finding(
            verdict=Verdict.CANNOT_TELL,
            because="This provider gives no marker back, and ours may be one of"
            f" {', '.join(each.record.ref for each in unclear)}.",
            candidates=candidates,
        )
    others = f"{len(candidates)} of other origin" if candidates else "none at all"
    return Finding(
        verdict=Verdict.ABSENT,
        because=f"Complete list of the payment's refunds: none of ours, {others}.",
        candidates=candidates,
        complete=True,
    )


def _may_be_ours(candidates: tuple[Candidate, ...], others_refs: frozenset[str]) -> list[Candidate]:
    """Refunds without a marker that are as we asked for, and that no other operation has."""
    return [
        each
        for each in candidates
        if each.record.ref not in others_refs
        and each.fields["marker"] == "missing"
        and all(each.fields[name] != "differs" for name in ("payment", "amount", "currency"))
    ]


def _one(ours: Candidate, candidates: tuple[Candidate, ...]) -> Finding:
    wrong = sorted(name for name, verdict in ours.fields.items() if verdict != "match")
    ref = ours.record.ref
    if wrong:
        return Finding(
            verdict=Verdict.DIFFERS,
            because=f"{ref} is ours, but its {', '.join(wrong)} is not what we asked for.",
            record=ours.record,
            candidates=candidates,
        )
    return Finding(
        verdict=Verdict.MATCH,
        because=f"{ref} matches on every required field, {ours.record.provider_status}.",
        record=ours.record,
        candidates=candidates,
    )


def _compare(
    record: RefundRecord,
    expected: Expected,
    known_refs: frozenset[str],
    first_recorded_at: datetime,
) -> Candidate:
    fields = {
        "marker": _field(record.marker, expected.marker),
        "payment": _field(record.payment_ref, expected.payment_ref),
        "amount": _field(record.amount_minor, expected.amount_minor),
        "currency": _field(record.currency, expected.currency),
    }
    ours = fields["marker"] == "match" or record.ref in known_refs
    if record.ref in known_refs and record.marker is None:
        fields["marker"] = "match"  # held by its reference; this provider does not echo the marker
    if ours and record.created_at is not None:
        early = record.created_at < first_recorded_at - _CLOCK_TOLERANCE
        fields["created"] = "differs" if early else "match"
    return Candidate(record=record, ours=ours, fields=fields)


def _field(theirs: object, ours: object) -> str:
    if theirs is None:
        return "missing"
    return "match" if theirs == ours else "differs"
