"""Our books against what was settled: each refund beside the newest report that has it.

What was settled in which currency, and its fee, is recorded and never a contradiction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from reconciliation.monitors.reading import rows
from reconciliation.verifiers.finding import Finding
from reconciliation.verifiers.judging import Reported, against_report
from reconciliation.verifiers.lookups import DECIDED_SECONDS
from refunds.ledger.external import NOT_PAID

# A refund is named by its account and reference, whichever side has it; both have an index by them.
# People know already what a case is about that is open, or was closed after both had been said.
_BESIDE = """
SELECT k.account, k.ref, o.business_key, o.state, f.amount_minor, p.currency, f.counts,
       l.report_ref, l.provider_status, l.amount_minor, l.currency, c.until,
       EXISTS (SELECT FROM unplaced_refund u
               WHERE u.provider_account = k.account AND u.ref = k.ref AND u.placed_at IS NULL),
       coalesce(CASE WHEN o.state = 'returned' THEN o.entered_at
                     WHEN f.operation_id IS NULL THEN f.shown_at END > l.imported_at, false)
FROM unnest(%(accounts)s::text[], %(refs)s::text[]) AS k (account, ref)
LEFT JOIN provider_refund f ON f.provider_account = k.account AND f.ref = k.ref
  AND f.provider_status <> 'lost dispute'
LEFT JOIN payment p ON p.id = f.payment_id
LEFT JOIN LATERAL (
  SELECT * FROM settlement_line s
  WHERE s.provider_account = k.account AND s.provider_refund_ref = k.ref AND s.verdict <> 'missing'
  ORDER BY coalesce(s.settled_at, s.imported_at) DESC, s.id DESC LIMIT 1) l ON true
LEFT JOIN operation o ON o.provider_account = k.account
  AND o.id = coalesce(f.operation_id,
    CASE WHEN l.marker ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN l.marker::uuid END)
LEFT JOIN LATERAL (
  SELECT max(v.covered_until) AS until, max(v.said_at) AS said_at FROM settlement_cover v
  WHERE v.provider_account = k.account
    AND f.provider_created_at BETWEEN v.covered_from AND v.covered_until) c ON true
WHERE coalesce(greatest(l.imported_at, f.first_seen_at), c.said_at)
        < clock_timestamp() - %(decided)s * interval '1 second'
  AND NOT EXISTS (
    SELECT FROM review_case r WHERE (r.operation_id = o.id
        OR (r.operation_id IS NULL AND r.payment_id = coalesce(f.payment_id, o.payment_id)))
      AND (r.closed_at IS NULL
           OR r.closed_at > greatest(l.imported_at, f.first_seen_at, c.said_at)))"""
_CHANGED = """
SELECT provider_account, ref FROM provider_refund
WHERE first_seen_at >= %(since)s AND first_seen_at < %(until)s
UNION SELECT provider_account, provider_refund_ref FROM settlement_line
WHERE imported_at >= %(since)s AND imported_at < %(until)s
UNION SELECT f.provider_account, f.ref FROM event e
JOIN provider_refund f ON f.operation_id = e.operation_id
WHERE e.at >= %(since)s AND e.at < %(until)s"""
_NEXT = """
SELECT account, ref FROM (
  (SELECT provider_account AS account, ref FROM provider_refund
   WHERE (provider_account, ref) > (%(account)s, %(ref)s)
   ORDER BY provider_account, ref LIMIT %(batch)s)
  UNION
  (SELECT DISTINCT provider_account, provider_refund_ref FROM settlement_line
   WHERE (provider_account, provider_refund_ref) > (%(account)s, %(ref)s)
   ORDER BY provider_account, provider_refund_ref LIMIT %(batch)s)
) each ORDER BY account, ref LIMIT %(batch)s"""


class Name(tuple[str, str]):
    """(account, reference) of a refund; as text it is what the cursor of a round keeps."""

    __slots__ = ()

    def __str__(self) -> str:
        return " ".join(self)


def subject_of(name: Sequence[str]) -> str:
    """How an alarm names a refund."""
    return f"refund {name[1]} at {name[0]}"


def check(names: Sequence[Any]) -> list[Finding]:
    """Every refund about which our books and the newest report contradict each other; inside one
    snapshot."""
    accounts, refs = ([each[part] for each in names] for part in (0, 1))
    found = []
    for row in rows(_BESIDE, accounts=accounts, refs=refs, decided=DECIDED_SECONDS):
        account, ref, key, state, booked_minor, currency, counts, report, status = row[:9]
        seen = Reported(
            ref=ref,
            key=key or "",
            state=state or "",
            booked_minor=booked_minor,
            booked_currency=currency or "",
            counts=bool(counts),
            report=report,
            paid=status is not None and status.strip().lower() not in NOT_PAID,
            amount_minor=row[9],
            currency=row[10] or "",
            covered_until=row[11],
            waits_for_order=row[12],
            came_back_since=row[13],
        )
        says = against_report(seen)
        if says:
            found.append(Finding(subject_of((account, ref)), account, says))
    return found


def changed(since: Any, until: Any) -> list[Any]:
    """Refunds that were booked, settled or decided in [since, until), as far as it is decided."""
    shift = timedelta(seconds=DECIDED_SECONDS)
    return [Name(row) for row in rows(_CHANGED, since=since - shift, until=until - shift)]


def after(cursor: str, batch: int) -> list[Any]:
    """The next refunds after the cursor, in their order."""
    account, _, ref = cursor.partition(" ")
    return [Name(row) for row in rows(_NEXT, account=account, ref=ref, batch=batch)]


def under_alarm(subjects: Sequence[str]) -> list[Any]:
    """The refunds that alarms name."""
    found = []
    for subject in subjects:
        ref, _, account = subject.removeprefix("refund ").rpartition(" at ")
        found.append(Name((account, ref)))
    return found


def subjects(names: Sequence[Any]) -> frozenset[str]:
    """The subjects of what was checked."""
    return frozenset(subject_of(each) for each in names)
