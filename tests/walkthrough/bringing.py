"""The afternoon, part six: a database that lost its tail, and what another system left behind."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import UTC, datetime, timedelta

from tests.walkthrough.moved_clock import let_it_be_longer_ago
from tests.walkthrough.programs import NotReady, wait_until
from tests.walkthrough.queues import approve_all, proposed
from tests.walkthrough.walk import Order, Step, Walk, require

ACCOUNTS = ("plain-nokeys", "plain-main")  # one without keys, one that forgets them in ten minutes
EACH_COUNT = 8
SENT_BEFORE, SENT_AFTER = 4, 8
BACKUP_AGE_SECONDS = 601
# Their lists cannot be read: a person compares them with the provider's own dashboard.
BY_HAND = ("plain-blind", "plain-hooks", "plain-stored500")
KNOWN_AGAIN_SECONDS_MAX = 150
DONE, ABSENT, OTHER_AMOUNT, TWO_CANDIDATES = 20, 9, 5, 3


def w_backup_restored_under_load(walk: Walk, step: Step) -> None:
    """A backup ten minutes old comes back while refunds go out: quarantine, and nothing twice.

    Four were paid ten minutes ago, four since, and more are on their way: the database that comes
    back knows of none. One account has no keys, the other has forgotten them by now.
    """
    amounts: dict[str, int] = {}
    with walk.here.money.asleep():
        for account in ACCOUNTS:
            amounts |= proposed(walk, step, account, EACH_COUNT)
        step.operation_id, *step.more = amounts
        approve_all(walk, amounts)
        walk.here.backup.take()
    for account in ACCOUNTS:
        walk.provider.fault("delay", account=account, times=None, seconds=0.6)
    _wait_for_paid(walk, amounts, SENT_BEFORE)
    walk.time_passes(BACKUP_AGE_SECONDS)
    _wait_for_paid(walk, amounts, SENT_AFTER)
    # The backup is of another time than the clocks are now.
    moved = let_it_be_longer_ago(walk.here.backup_database, BACKUP_AGE_SECONDS)
    require(moved, "somebody holds a row of the backup")
    with walk.here.lookups.asleep():  # so that nothing is known again before we ask
        walk.here.backup.restore()
        reason = wait_until(lambda: _quarantine(walk), seconds=30, what="a quarantine")
        require("does not know a send that it permitted" in reason, f"it says {reason}")
        require("Not lifted." in _lift(walk), "it was lifted before anything was known")
    sent = len(_creates(walk, amounts))
    step.look_at(walk.person_at_hand("ines").get("/sending"), "quarantine")
    wait_until(
        lambda: _known_again(walk), seconds=KNOWN_AGAIN_SECONDS_MAX, what="everything known again"
    )
    require(len(_creates(walk, amounts)) == sent, "something was sent in quarantine")
    walk.provider.clear_faults()
    said = _lift(walk)
    require(not said, f"not lifted: {said}")
    for operation_id, amount_minor in amounts.items():
        walk.trail.wait_for(operation_id, "succeeded", seconds=60)
        walk.require_one_refund(operation_id, amount_minor)
    walk.here.backup.forget()


def _wait_for_paid(walk: Walk, amounts: dict[str, int], count: int) -> None:
    wait_until(
        lambda: sum(len(walk.refunds(each)) for each in amounts) >= count,
        seconds=60,
        what=f"{count} of them in the book",
    )


def _known_again(walk: Walk) -> bool:
    """Whether the page shows the quarantine and says of nothing that it is still to come."""
    shown = walk.person("ines").get("/sending").part("quarantine")
    return bool(shown) and "Comes by itself" not in shown


def _quarantine(walk: Walk) -> str | None:
    found = walk.trail.rows("SELECT reason FROM quarantine WHERE lifted_at IS NULL")
    return str(found[0]["reason"]) if found else None


def _lift(walk: Walk) -> str:
    """An ops lead and an admin try to lift it; empty, or why not."""
    by_hand = [part for account in BY_HAND for part in ("--by-hand", account)]
    try:
        walk.here.run("manage.py", "lift_quarantine", "--by", "ines", "--with", "adam", *by_hand)
    except NotReady as refused:
        return str(refused)
    return ""


def _creates(walk: Walk, amounts: dict[str, int]) -> list[str]:
    return [
        call["marker"]
        for call in walk.provider.calls()
        if call["on"] == "create" and call["marker"] in amounts
    ]


def x_stuck_rows_imported(walk: Walk, step: Step) -> None:
    """37 refunds that another system left stuck: each one ends or is a case, none is sent.

    20 were done, 9 never were, 5 have another amount, 3 have two candidates each.
    """
    orders = [walk.order("plain-main", 12900) for _ in range(37)]
    done, rest = orders[:DONE], orders[DONE:]
    absent, rest = rest[:ABSENT], rest[ABSENT:]
    other, two = rest[:OTHER_AMOUNT], rest[OTHER_AMOUNT:]
    require(len(two) == TWO_CANDIDATES, "37 are 20 and 9 and 5 and 3")
    rows = [_row(each, walk.refunded_elsewhere(each, 5000)) for each in done]
    rows += [_row(each) for each in absent]
    rows += [_row(each, walk.refunded_elsewhere(each, 4000)) for each in other]
    for each in two:
        for _ in range(2):
            walk.refunded_elsewhere(each, 5000)
        rows.append(_row(each))
    _import(walk, rows)
    wanted = {each.ref: "succeeded" for each in done}
    wanted |= {each.ref: "unresolved" for each in (*absent, *two)}
    wanted |= {each.ref: "mismatch" for each in other}
    wait_until(lambda: _became(walk, orders) == wanted, seconds=40, what="37 ends or cases")
    counted = Counter(wanted.values())
    require(counted == {"succeeded": 20, "unresolved": 12, "mismatch": 5}, f"{counted}")
    refs = {each.payment_ref for each in orders}
    sent = walk.trail.rows(
        "SELECT a.no FROM attempt a JOIN operation o ON o.id = a.operation_id"
        " JOIN payment p ON p.id = o.payment_id WHERE p.ref = ANY(%s)",
        list(refs),
    )
    require(not sent, f"{len(sent)} were sent")
    in_book = [each for each in walk.provider.book("plain-main")["payments"] if each["ref"] in refs]
    made_here = [r for each in in_book for r in each["refunds"] if r["by"] == "api"]
    require(not made_here, f"{len(made_here)} refunds were made by us")


def _row(order: Order, refund_ref: str = "") -> list[str]:
    asked_at = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    about = [order.account, order.payment_ref, "5000", "USD"]
    return [f"old-{order.ref}", *about, asked_at, refund_ref]


def _import(walk: Walk, rows: list[list[str]]) -> None:
    file = walk.here.run_dir / "stuck.csv"
    with file.open("w", newline="") as written:
        names = ["source_ref", "provider_account", "payment_ref", "amount_minor", "currency"]
        csv.writer(written).writerows([[*names, "requested_at", "provider_refund_ref"], *rows])
    command = ("manage.py", "import_unknown", str(file), "--by", "ines")
    dry = walk.here.run(*command)
    require("37 would be taken over" in dry, f"the dry run says {dry}")
    said = walk.here.run(*command, "--for-real")
    require("37 taken over, 0 known already; 0 refused" in said, f"the import says {said}")


def _became(walk: Walk, orders: list[Order]) -> dict[str, str]:
    """By order: the state of what has ended, else the reasons of its case."""
    found = walk.trail.rows(
        "SELECT r.ref, o.state, array_to_string(c.reasons, ',') AS reasons FROM operation o"
        " JOIN orders r ON r.id = o.order_id LEFT JOIN review_case c"
        " ON c.operation_id = o.id AND c.closed_at IS NULL WHERE r.ref = ANY(%s)",
        [each.ref for each in orders],
    )
    return {row["ref"]: row["reasons"] or row["state"] for row in found}
