"""What came of a storm, from the provider's book and the database alone; imports nothing of ours."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import psycopg

UNKNOWN_SHARE_MIN, RESENT_SHARE_MIN, LATE_SHARE_MIN, IN_BOOK_SHARE_MIN = 0.15, 0.03, 0.01, 0.95
_OPERATIONS = """
SELECT o.id::text, o.state, o.provider_account,
       EXISTS (SELECT FROM event e WHERE e.operation_id = o.id AND e.to_state = 'unknown'),
       EXISTS (SELECT FROM review_case c WHERE c.operation_id = o.id AND c.closed_at IS NULL)
FROM operation o"""
_SENT = """
SELECT marker, received_at, key, body_sha256, faults FROM calls
WHERE "on" = 'create' AND marker IS NOT NULL ORDER BY seq"""
_REFUNDS = """
SELECT marker, created_at, id, payment_ref, amount_minor FROM refunds
WHERE "by" = 'api' AND marker IS NOT NULL"""
_ELSEWHERE = "SELECT ref FROM provider_refund WHERE operation_id IS NULL AND counts"


@dataclass(frozen=True)
class Figures:
    """Counts of operations, but `sent`, which counts requests; `rewritten`: sent with another key
    or body; `elsewhere`: made by us for operations that the database has forgotten, and counted as
    made elsewhere; `unexplained`: in the book and none of it; `paid_again`: refunds of one payment
    and amount, beyond the one that was wanted."""

    sent: int
    in_book: int
    succeeded: int
    held_by_cases: int
    elsewhere: int
    paid_again: int
    unexplained: int
    unknown_seen: int
    resent: int
    late_landings: int
    rewritten: int
    cases: int
    cases_not_allowed: int


def read(book: str, database: str, settled_by_proof: Collection[str]) -> Figures:
    """`settled_by_proof`: accounts whose contract leaves nothing to a person."""
    with sqlite3.connect(f"file:{book}?mode=ro", uri=True) as db:
        sent = db.execute(_SENT).fetchall()
        refunds = db.execute(_REFUNDS).fetchall()
    db.close()
    with psycopg.connect(database) as connection:
        operations = connection.execute(_OPERATIONS.encode()).fetchall()
        elsewhere = {row[0] for row in connection.execute(_ELSEWHERE.encode())}
    return count(sent, refunds, operations, elsewhere, settled_by_proof)


def count(
    sent: list[tuple[Any, ...]],
    refunds: list[tuple[Any, ...]],
    operations: list[tuple[Any, ...]],
    elsewhere: Collection[str],
    settled_by_proof: Collection[str],
) -> Figures:
    """Pure: rows as the queries above give them."""
    in_book = {marker for marker, *_ in refunds}
    known = {each[0] for each in operations}
    forgotten = {marker for marker, _, ref, *_ in refunds if ref in elsewhere} - known
    wanted = Counter((payment, amount_minor) for *_, payment, amount_minor in refunds)
    succeeded = {each[0] for each in operations if each[1] == "succeeded"}
    in_case = {each[0] for each in operations if each[4]}
    made_at = {marker: at for marker, at, *_ in refunds}
    times = Counter(marker for marker, *_ in sent)
    late = {
        marker
        for marker, received_at, _, _, faults in sent
        if "land_late" in faults and made_at.get(marker, 0) > received_at + 100_000
    }
    shapes = {(marker, key, body) for marker, _, key, body, _ in sent}
    return Figures(
        sent=len(sent),
        in_book=len(in_book),
        succeeded=len(succeeded & in_book),
        held_by_cases=len((in_case & in_book) - succeeded),
        elsewhere=len(forgotten),
        paid_again=sum(wanted.values()) - len(wanted),
        unexplained=len(in_book - succeeded - in_case - forgotten) + len(succeeded - in_book),
        unknown_seen=sum(bool(each[3]) for each in operations),
        resent=sum(times[each[0]] > 1 for each in operations),
        late_landings=len(late),
        rewritten=len(shapes) - len(times),
        cases=len(in_case),
        cases_not_allowed=sum(each[4] and each[2] in settled_by_proof for each in operations),
    )


def shortfalls(found: Figures, operations: int) -> list[str]:
    """What is not as a storm must leave it, in sentences; empty when all is well."""

    def share(count: int) -> str:
        return f"{count} of {operations}"

    must = {
        f"{found.unexplained} refunds are in the book or succeeded, and not both, nor in a case": (
            found.unexplained == 0
        ),
        f"in the book {found.in_book}, succeeded {found.succeeded}, held by cases"
        f" {found.held_by_cases}, counted as made elsewhere {found.elsewhere}": (
            found.in_book == found.succeeded + found.held_by_cases + found.elsewhere
        ),
        f"{found.paid_again} refunds were made of what had been refunded": found.paid_again == 0,
        f"in the book are {share(found.in_book)}": (
            found.in_book >= IN_BOOK_SHARE_MIN * operations
        ),
        f"{found.cases_not_allowed} cases are open where proof settles everything": (
            found.cases_not_allowed == 0
        ),
        f"{found.rewritten} were sent with another key or body": found.rewritten == 0,
        f"unknown were only {share(found.unknown_seen)}": (
            found.unknown_seen >= UNKNOWN_SHARE_MIN * operations
        ),
        f"sent again were only {share(found.resent)}": (
            found.resent >= RESENT_SHARE_MIN * operations
        ),
        f"landed late did only {share(found.late_landings)}": (
            found.late_landings >= LATE_SHARE_MIN * operations
        ),
    }
    return [said for said, holds in must.items() if not holds]
