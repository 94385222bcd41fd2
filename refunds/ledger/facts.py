"""What an operation may be judged by: recorded contracts, and figures that are accepted now."""

from __future__ import annotations

from django.db import connection

from refunds.domain.contract import (
    Accepted,
    ProviderContract,
    from_facts,
    stricter,
    unrecorded,
)
from refunds.models import Attempt, Event, KnownContract, Operation


def held_to(operation: Operation, today: ProviderContract) -> ProviderContract:
    """The stricter of today's contract and every one that an attempt was made under."""
    hashes = {
        bytes(each)
        for each in Attempt.objects.filter(operation=operation).values_list(
            "contract_hash", flat=True
        )
    } - {today.hash()}
    if not hashes:
        return today
    kept = {
        bytes(row.hash): from_facts(row.facts)
        for row in KnownContract.objects.filter(hash__in=hashes)
    }
    return stricter(today, [kept.get(each) or unrecorded(today) for each in sorted(hashes)])


_LIVE = """
SELECT id, fact, seconds, scope FROM accepted_fact
WHERE account = %s AND confirmed_at IS NOT NULL AND withdrawn_at IS NULL
  AND valid_until > clock_timestamp()
ORDER BY id
"""


def accepted_now(account: str, *, to_withdraw: bool = False) -> tuple[Accepted, ...]:
    """What is accepted for an account at this moment.

    Inside a transaction the rows stay locked against withdrawal until it ends, so that a decision
    rests on what is accepted when it takes effect (rule 42); `to_withdraw` locks them for that.
    They come before every other lock.
    """
    lock = ("FOR UPDATE" if to_withdraw else "FOR SHARE") if connection.in_atomic_block else ""
    with connection.cursor() as cursor:
        cursor.execute(_LIVE + lock, [account])
        return tuple(Accepted(*row) for row in cursor.fetchall())


def decided_under(fact_id: int) -> list[Event]:
    """Every event that rests on an accepted fact, the newest first: what it let us do."""
    rows = Event.objects.filter(detail__accepted__contains=[fact_id])
    return list(rows.select_related("operation").order_by("-at"))
