"""The auditor: recomputes from the provider's book and the database what nobody may be trusted on.

It imports nothing of ours: what is wrong in the product must not be wrong here in the same way.
The book is the sandbox's SQLite file, the witness; the database is what we believe.

    python -m tests.audit_book --book FILE --database postgresql://...
"""

import argparse
import json
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

Row = dict[str, Any]

# Of the provider's words, these say that the money stayed or came back.
VOID_STATUSES = ("failed", "canceled")
NO_MONEY_ENDS = ("failed", "denied", "rejected", "withdrawn", "expired", "returned")
ENDED = (*NO_MONEY_ENDS, "succeeded", "mismatched")
UNCERTAIN = ("submitting", "pending", "unknown")
# Counts that must be 0. `unresolved` is no fault by itself: it is what people still have to do. Nor
# is `called_failed` where a provider breaks its word; where it keeps it, that is a false end.
FAULTS = ("duplicates", "false_ends", "lost", "missing_events", "money", "notices_lost")

REFUNDS = """
SELECT id, account, payment_ref, marker, amount_minor, currency, "by", created_at,
       (SELECT status FROM statuses WHERE refund_id = refunds.id AND at <= :now
        ORDER BY at DESC, seq DESC LIMIT 1) AS status
FROM refunds WHERE created_at <= :now ORDER BY seq"""

STATUSES = "SELECT refund_id, at, status FROM statuses ORDER BY refund_id, at, seq"

# What the provider takes for heard: every delivery of it was answered with 2xx.
HEARD = "SELECT account, seq FROM notices WHERE state = 'sent' AND twist IS NULL ORDER BY seq"

OPERATIONS = """
SELECT o.id::text AS id, o.business_key, o.state, o.version, o.amount_minor, o.currency,
       o.stale_cause, r.frozen OR p.halted OR o.halted AS halted,
       coalesce(o.not_before > now(), false) AS too_early,
       coalesce(a.pause_kind, '') <> '' AS paused,
       coalesce(s.state, 'none') AS reservation,
       EXISTS (SELECT FROM review_case c WHERE c.operation_id = o.id AND c.closed_at IS NULL)
         AS in_case,
       EXISTS (SELECT FROM event e WHERE e.operation_id = o.id
               AND e.event IN ('approved', 'policy_cleared')) AS was_authorised,
       EXISTS (SELECT FROM event e WHERE e.operation_id = o.id AND e.event = 'adopted')
         AS was_adopted,
       (SELECT count(*) FROM event e WHERE e.operation_id = o.id) AS event_count,
       (SELECT e.seq || ' ' || e.to_state FROM event e WHERE e.operation_id = o.id
        ORDER BY e.seq DESC LIMIT 1) AS last_event
FROM operation o JOIN orders r ON r.id = o.order_id JOIN payment p ON p.id = o.payment_id
LEFT JOIN provider_account a ON a.name = o.provider_account
LEFT JOIN reservation s ON s.operation_id = o.id ORDER BY o.id"""

BROKEN_CHAINS = """
SELECT operation_id::text AS id, seq, event FROM (
  SELECT *, lag(to_state, 1, 'none') OVER w AS before, row_number() OVER w AS place
  FROM event WINDOW w AS (PARTITION BY operation_id ORDER BY seq)) e
WHERE from_state <> before OR seq <> place"""

ORDERS_WITHOUT_CAUSE = """
SELECT r.ref, r.version, count(m.*) AS causes FROM orders r
LEFT JOIN order_move m ON m.order_id = r.id GROUP BY r.id HAVING r.version <> count(m.*)"""

PAYMENTS = """
SELECT p.provider_account AS account, p.ref, p.captured_minor, p.held_minor, p.refunded_minor,
       (SELECT coalesce(sum(s.amount_minor), 0)::bigint FROM reservation s
        WHERE s.payment_id = p.id AND s.state = 'held') AS held_sum,
       (SELECT coalesce(sum(f.amount_minor), 0)::bigint FROM provider_refund f
        WHERE f.payment_id = p.id AND f.counts) AS refunded_sum
FROM payment p ORDER BY p.id"""

BOOKED = """
SELECT provider_account AS account, ref, operation_id::text AS operation, amount_minor
FROM provider_refund WHERE counts AND operation_id IS NOT NULL"""

# When somebody was told that no money moved, in the book's own microseconds.
SAID_FAILED = """
SELECT operation_id::text AS operation, (extract(epoch FROM at) * 1000000)::bigint AS at
FROM event WHERE to_state = 'failed' ORDER BY at"""

STORED = "SELECT provider_account AS account, event_id FROM notice"

EVERYTHING_STOPPED = """
SELECT EXISTS (SELECT FROM sending_stop WHERE ended_at IS NULL)
    OR EXISTS (SELECT FROM quarantine WHERE lifted_at IS NULL) AS stopped"""


AUTHORISED = """
SELECT DISTINCT operation_id::text AS id FROM event
WHERE event IN ('approved', 'policy_cleared')"""


@dataclass(frozen=True)
class Remembered:
    """What a database knew before its newest rows were lost: operations that were authorised, and
    (account, event) of the notices that it had."""

    authorised: frozenset[str]
    stored: frozenset[tuple[str, str]]


def remember(database: str) -> Remembered:
    """Read a database that is about to lose its newest rows, or the lost one itself."""
    with psycopg.connect(database) as connection:
        authorised = connection.execute(AUTHORISED.encode()).fetchall()
        stored = connection.execute(STORED.encode()).fetchall()
    return Remembered(frozenset(row[0] for row in authorised), frozenset(stored))


@dataclass(frozen=True)
class Seen:
    """Both sides as they stood at one instant."""

    refunds: list[Row]
    statuses: list[Row]
    operations: list[Row]
    said_failed: list[Row]
    broken_chains: list[Row]
    orders_without_cause: list[Row]
    payments: list[Row]
    booked: list[Row]
    heard: list[Row]
    stored: list[Row]
    stopped: bool
    earlier: tuple[Remembered, ...] = ()

    def ours(self) -> dict[str, list[Row]]:
        """Refunds that came over the provider's API with a marker, by that marker."""
        found: dict[str, list[Row]] = defaultdict(list)
        for refund in self.refunds:
            if refund["by"] == "api" and refund["marker"]:
                found[refund["marker"]].append(refund)
        return found

    def counting(self) -> dict[str, list[Row]]:
        """Refunds of each operation that took money from the payment and kept it.

        What another system sent has no marker of ours: there it is what we booked for it, if the
        book has that.
        """
        found = self.ours()
        adopted = {each["id"] for each in self.operations if each["was_adopted"]}
        in_book = {(each["account"], each["id"]): each for each in self.refunds}
        for each in self.booked:
            refund = in_book.get((each["account"], each["ref"]))
            if each["operation"] in adopted and refund is not None:
                found[each["operation"]].append(refund)
        return {
            operation_id: [each for each in refunds if each["status"] not in VOID_STATUSES]
            for operation_id, refunds in found.items()
        }


def look(book: str, database: str, *earlier: Remembered) -> Seen:
    """Read both; the database in one snapshot, the book without being able to change it."""
    with sqlite3.connect(f"file:{book}?mode=ro", uri=True) as db:
        db.row_factory = sqlite3.Row
        moved_on = db.execute("SELECT value FROM facts WHERE name = 'clock_ahead'").fetchone()
        now = time.time_ns() // 1000 + int(moved_on["value"] if moved_on else 0)
        refunds = [dict(row) for row in db.execute(REFUNDS, {"now": now})]
        statuses = [dict(row) for row in db.execute(STATUSES)]
        heard = [dict(row) for row in db.execute(HEARD)]
    db.close()
    with psycopg.connect(database, row_factory=dict_row) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

        def rows(query: str) -> list[Row]:
            return connection.execute(query.encode()).fetchall()

        return Seen(
            refunds=refunds,
            statuses=statuses,
            operations=rows(OPERATIONS),
            said_failed=rows(SAID_FAILED),
            broken_chains=rows(BROKEN_CHAINS),
            orders_without_cause=rows(ORDERS_WITHOUT_CAUSE),
            payments=rows(PAYMENTS),
            booked=rows(BOOKED),
            heard=heard,
            stored=rows(STORED),
            stopped=rows(EVERYTHING_STOPPED)[0]["stopped"],
            earlier=earlier,
        )


def duplicates(seen: Seen) -> Iterator[str]:
    """One marker paid more than once, or money sent that nobody authorised."""
    authorised = {each["id"] for each in seen.operations if each["was_authorised"]}
    authorised.update(*(each.authorised for each in seen.earlier))
    for marker, refunds in seen.ours().items():
        if len(refunds) > 1:
            yield f"{marker} has {len(refunds)} refunds: {', '.join(r['id'] for r in refunds)}"
        if marker not in authorised:
            for refund in refunds:
                yield f"{refund['id']} was made for {marker}, which nobody authorised"


def false_ends(seen: Seen) -> Iterator[str]:
    """Ended states that the book contradicts."""
    counting = seen.counting()
    for each in seen.operations:
        refunds = counting.get(each["id"], [])
        if each["state"] in NO_MONEY_ENDS and refunds:
            yield f"{_name(each)} is {each['state']}, and the book has {refunds[0]['id']}"
        if each["state"] == "succeeded" and not _is_exactly(refunds, each):
            shown = [f"{r['amount_minor']} {r['currency']}" for r in refunds]
            yield (
                f"{_name(each)} is succeeded with {each['amount_minor']} {each['currency']},"
                f" and the book has {shown or 'nothing'}"
            )


def called_failed(seen: Seen) -> Iterator[str]:
    """Told to have failed while the book had the refund, whatever was found out later."""
    ours = seen.ours()
    names = {each["id"]: _name(each) for each in seen.operations if each["state"] != "failed"}
    for said in seen.said_failed:
        for refund in ours.get(said["operation"], []):
            paid = refund["created_at"] < said["at"] and _stood(seen, refund, said["at"])
            if said["operation"] in names and paid:
                yield f"{names[said['operation']]} was called failed when {refund['id']} was made"


def _stood(seen: Seen, refund: Row, at: int) -> bool:
    until = [each for each in seen.statuses if each["refund_id"] == refund["id"]]
    last = [each["status"] for each in until if each["at"] <= at][-1:]
    return not last or last[0] not in VOID_STATUSES


def _is_exactly(refunds: list[Row], operation: Row) -> bool:
    wanted = (operation["amount_minor"], operation["currency"])
    return [(each["amount_minor"], each["currency"]) for each in refunds] == [wanted]


def lost(seen: Seen) -> Iterator[str]:
    """Authorised, with neither a refund nor a state that says why."""
    counting = seen.counting()
    for each in seen.operations:
        if not each["was_authorised"] or counting.get(each["id"]):
            continue
        waits = ("halted", "too_early", "paused", "in_case")
        says_why = seen.stopped or any(each[name] for name in waits)
        if each["state"] == "authorized" and not says_why:
            yield f"{_name(each)} is authorized, nothing holds it back, and nothing was sent"
        if each["state"] == "awaiting_approval" and not each["stale_cause"]:
            yield f"{_name(each)} lost its approval, and no cause is given"


def unresolved(seen: Seen) -> Iterator[str]:
    """Neither ended nor waiting in a case."""
    for each in seen.operations:
        if each["state"] not in ENDED and not each["in_case"]:
            yield f"{_name(each)} is {each['state']}"


def missing_events(seen: Seen) -> Iterator[str]:
    """Moves without their event, events without their predecessor, versions without a cause."""
    for each in seen.operations:
        if each["last_event"] != f"{each['version']} {each['state']}":
            head = f"{each['version']} {each['state']}"
            yield f"{_name(each)} stands at {head}; its last event is {each['last_event']}"
        elif each["event_count"] != each["version"]:
            yield f"{_name(each)} is at {each['version']} with {each['event_count']} events"
    for each in seen.broken_chains:
        yield f"event {each['seq']} ({each['event']}) of {each['id']} follows nothing"
    for each in seen.orders_without_cause:
        yield f"order {each['ref']} is at version {each['version']} with {each['causes']} causes"


def money(seen: Seen) -> Iterator[str]:
    """Sums that do not add up, and money that moved without being booked or held."""
    for each in seen.payments:
        if each["held_minor"] != each["held_sum"]:
            yield f"{each['ref']} holds {each['held_minor']}; its reservations {each['held_sum']}"
        if each["refunded_minor"] != each["refunded_sum"]:
            yield (
                f"{each['ref']} says {each['refunded_minor']} refunded;"
                f" its refunds sum to {each['refunded_sum']}"
            )
    yield from _over_refunded(seen)
    yield from _not_set_aside(seen)
    in_book = {(each["account"], each["id"]): each["amount_minor"] for each in seen.refunds}
    for each in seen.booked:
        if in_book.get((each["account"], each["ref"])) != each["amount_minor"]:
            yield f"{each['ref']} is booked with {each['amount_minor']}; the book disagrees"


def _over_refunded(seen: Seen) -> Iterator[str]:
    captured = {(each["account"], each["ref"]): each["captured_minor"] for each in seen.payments}
    gone: Counter[tuple[str, str]] = Counter()
    for refund in seen.refunds:
        if refund["status"] not in VOID_STATUSES:
            gone[refund["account"], refund["payment_ref"]] += refund["amount_minor"]
    for payment, amount_minor in gone.items():
        if amount_minor > captured.get(payment, amount_minor):
            yield f"{payment[1]} captured {captured[payment]} and gave back {amount_minor}"


def _not_set_aside(seen: Seen) -> Iterator[str]:
    counting = seen.counting()
    booked = {each["operation"] for each in seen.booked}
    for each in seen.operations:
        held = each["reservation"] == "held"
        if each["state"] in UNCERTAIN and not held:
            yield f"{_name(each)} is {each['state']} and its money is not held"
        elif each["state"] in ENDED and held:
            yield f"{_name(each)} is {each['state']} and still holds its money"
        elif counting.get(each["id"]) and not held and each["id"] not in booked:
            yield f"{_name(each)} moved money that is neither booked nor held"


def notices_lost(seen: Seen) -> Iterator[str]:
    """Notices that the provider was told are kept, and that are nowhere."""
    stored = {(each["account"], each["event_id"]) for each in seen.stored}
    stored.update(*(each.stored for each in seen.earlier))
    for each in seen.heard:
        event_id = f"evt_{each['seq']:04d}"
        if (each["account"], event_id) not in stored:
            yield f"{event_id} of {each['account']} was acknowledged and is not stored"


def _name(operation: Row) -> str:
    return f"{operation['business_key']} ({operation['id']})"


CHECKS: dict[str, Callable[[Seen], Iterator[str]]] = {
    "duplicates": duplicates,
    "false_ends": false_ends,
    "called_failed": called_failed,
    "lost": lost,
    "unresolved": unresolved,
    "missing_events": missing_events,
    "money": money,
    "notices_lost": notices_lost,
}


def audit(book: str, database: str, *earlier: Remembered) -> dict[str, Any]:
    """The counts by name, how much was looked at, and every finding as a sentence in `found`.

    `book` is the sandbox's SQLite file, `database` a libpq DSN or URL. Call it at rest: what is
    on its way counts as unresolved. `earlier`: of each time that its newest rows were lost.
    """
    seen = look(book, database, *earlier)
    found = {name: list(check(seen)) for name, check in CHECKS.items()}
    return {
        "operations": len(seen.operations),
        "in_book": len(seen.refunds),
        **{name: len(sentences) for name, sentences in found.items()},
        "found": {name: sentences for name, sentences in found.items() if sentences},
    }


def is_clean(counts: dict[str, Any]) -> bool:
    """Whether every count that must be 0 is 0."""
    return not any(counts[name] for name in FAULTS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit_book", description=__doc__)
    parser.add_argument("--book", required=True, help="the sandbox's book, a SQLite file")
    parser.add_argument("--database", required=True, help="postgresql:// URL or DSN of the ledger")
    asked = parser.parse_args()
    counts = audit(asked.book, asked.database)
    print(json.dumps(counts, indent=1))
    return 0 if is_clean(counts) else 1


if __name__ == "__main__":
    sys.exit(main())
