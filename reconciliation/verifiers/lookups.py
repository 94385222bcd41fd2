"""Our states against the newest thing that a lookup showed about each operation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from reconciliation.monitors.reading import rows
from reconciliation.verifiers.finding import Finding
from reconciliation.verifiers.judging import Seen, contradiction
from refunds.providers import registry

# A finding is stored before its decision; so long it may be on its way.
DECIDED_SECONDS: Final = 120

# The newest finding that says something. What people know already (a case that is open, or was
# closed after it was asked) is theirs.
_NEWEST = """
SELECT DISTINCT ON (v.operation_id) o.id, o.business_key, o.provider_account, o.state, o.settled_at,
       v.started_at, v.facts ->> 'verdict', v.facts -> 'candidates',
       (SELECT min(f.ref) FROM provider_refund f WHERE f.operation_id = o.id AND f.counts)
FROM evidence v JOIN operation o ON o.id = v.operation_id
WHERE v.operation_id = ANY (%(ids)s) AND v.kind = 'lookup'
  AND (v.facts ->> 'complete' = 'true' OR v.facts ->> 'verdict' IN ('match', 'differs', 'duplicate'))
  AND v.stored_at < clock_timestamp() - %(decided)s * interval '1 second'
  AND NOT EXISTS (
    SELECT FROM review_case c WHERE (c.operation_id = o.id
        OR (c.operation_id IS NULL AND c.payment_id = o.payment_id))
      AND (c.closed_at IS NULL OR c.closed_at > v.started_at))
ORDER BY v.operation_id, v.id DESC"""
_CHANGED = """
SELECT DISTINCT operation_id FROM evidence
WHERE kind = 'lookup' AND operation_id IS NOT NULL
  AND stored_at >= %(since)s AND stored_at < %(until)s"""
_NEXT = "SELECT id FROM operation WHERE id > %(after)s ORDER BY id LIMIT %(batch)s"


def subject_of(operation_id: object) -> str:
    """How an alarm names an operation."""
    return f"operation {operation_id}"


def check(ids: Sequence[Any]) -> list[Finding]:
    """Every state that its newest finding contradicts; inside one snapshot."""
    found = []
    for row in rows(_NEWEST, ids=list(ids), decided=DECIDED_SECONDS):
        operation, key, account, state, settled_at, looked_at, verdict, candidates, booked = row
        if account not in registry.accounts():
            continue
        seen = Seen(
            state=state,
            booked_ref=booked or "",
            verdict=verdict,
            ours=[each for each in json.loads(candidates or "[]") if each["ours"]],
            looked_at=looked_at,
            quiet_at=_quiet_at(account, settled_at),
        )
        against = contradiction(seen, registry.adapter(registry.account(account)).words)
        if against:
            says = f"{key} is {state.replace('_', ' ')}, and {against}"
            found.append(Finding(subject_of(operation), account, says))
    return found


def _quiet_at(account: str, settled_at: Any) -> Any:
    """From when on a list that does not show a booked refund is proof; None: never."""
    contract = registry.account(account).contract
    flight, lag = contract.flight_max.seconds, contract.lookup_lag.seconds
    if settled_at is None or flight is None or lag is None:
        return None
    return settled_at + timedelta(seconds=flight + lag + 2 * settings.LIMITS.skew_seconds)


def changed(since: Any, until: Any) -> list[Any]:
    """Ids of operations that were looked up in [since, until), as far as it is decided."""
    shift = timedelta(seconds=DECIDED_SECONDS)
    return [row[0] for row in rows(_CHANGED, since=since - shift, until=until - shift)]


def after(cursor: str, batch: int) -> list[Any]:
    """The next ids after the cursor, in their order."""
    return [
        row[0] for row in rows(_NEXT, after=UUID(cursor) if cursor else UUID(int=0), batch=batch)
    ]


def under_alarm(subjects: Sequence[str]) -> list[Any]:
    """Ids of the operations that alarms name."""
    return [UUID(subject.removeprefix("operation ")) for subject in subjects]


def subjects(ids: Sequence[Any]) -> frozenset[str]:
    """The subjects of what was checked."""
    return frozenset(subject_of(each) for each in ids)
