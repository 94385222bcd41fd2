"""The standing checks: quiet over whatever the product does, and not over one row changed by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.utils import timezone

from reconciliation import reconciler, verifiers
from reconciliation.cases import open_case
from reconciliation.models import Alarm, VerifierRound
from reconciliation.verifiers import rounds
from reconciliation.verifiers.finding import one_snapshot
from refunds import dispatch
from refunds.ledger import lock, sending
from refunds.models import (
    Event,
    Evidence,
    Operation,
    Order,
    OrderMove,
    Payment,
    ProviderAccount,
    ProviderRefund,
    Reservation,
)
from tests import build
from tests.cast import Cast
from tests.monitors.stage import evidence, forced, guards_aside
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
Break = Callable[[Operation], Any]


def _sent(provider: SandboxProcess, cast: Cast, fault: str = "") -> Operation:
    provider.payment()
    build.order()
    operation = build.authorized(cast.fay, cast.ben)
    if fault:
        provider.fault(fault)
    dispatch.send(str(operation.pk))
    operation.refresh_from_db()
    return operation


def _alarms() -> list[tuple[str, str, str]]:
    return list(Alarm.objects.filter(ended_at=None).values_list("name", "subject", "says"))


def _paused() -> tuple[str, str]:
    account = ProviderAccount.objects.get(name="plain-main")
    return account.pause_kind, account.pause_reason


def test_the_checks_are_quiet_over_a_refund_that_was_lost_and_found(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = _sent(provider, cast, "drop_after_commit")
    assert verifiers.verify_everything(timezone.now()) == 0
    reconciler.look_up(operation.pk)
    later = timezone.now() + timedelta(days=1)
    assert verifiers.verify_everything(later) == 0
    assert verifiers.verify_changes(later) == 0
    assert _alarms() == []
    assert ProviderAccount.objects.get(name="plain-main").pause_kind == ""
    checked = dict(VerifierRound.objects.values_list("name", "last_checked_count"))
    assert checked == {"tables": 1, "lookups": 1, "settlement": 1}


# what is changed by hand in the rows of an unknown refund -> what the check says of it
_UNKNOWN: dict[str, tuple[Break, str]] = {
    "held": (
        lambda op: Payment.objects.update(held_minor=1),
        "pi_4821 holds 1; its reservations are 7900",
    ),
    "refunded": (
        lambda op: Payment.objects.update(refunded_minor=5),
        "pi_4821 has refunded 5; its refunds are 0",
    ),
    "reservation": (
        lambda op: Reservation.objects.update(state="released"),
        "refund:4821:request-1 is unknown and its reservation is released",
    ),
    "state": (
        lambda op: forced(op, state="failed"),
        "stands at 5 failed; its last event is 5 unknown of 5",
    ),
    "version": (lambda op: forced(op, version=6), "stands at 6 unknown; its last event is 5"),
    "gap": (
        lambda op: Event.objects.filter(operation=op, seq=3).delete(),
        "its last event is 5 unknown of 4",
    ),
    "chain": (
        lambda op: Event.objects.filter(operation=op, seq=3).update(
            event="rejected", to_state="rejected", actor_kind="approver"
        ),
        "stands at 5 unknown",
    ),
    "attempts": (lambda op: forced(op, attempt_count=2), "counts 2 attempts; there are 1"),
    "moves": (
        lambda op: OrderMove.objects.filter(version=2).delete(),
        "the order is at version 2 with 1 moves",
    ),
    "order version": (
        lambda op: Order.objects.update(version=F("version") + 1),
        "the order is at version 3 with 2 moves",
    ),
}


@pytest.mark.parametrize("what", _UNKNOWN)
def test_one_row_changed_by_hand_stops_the_account_and_is_an_alarm(
    provider: SandboxProcess, cast: Cast, what: str
) -> None:
    operation = _sent(provider, cast, "drop_after_commit")
    change, says = _UNKNOWN[what]
    with guards_aside():
        change(operation)
    before = _rows()
    assert verifiers.verify_changes(timezone.now() + timedelta(seconds=1)) > 0
    [(name, subject, said)] = _alarms()
    assert (name, subject) == ("tables_disagree", "order 4821")
    assert says in said
    assert _paused()[0] == "verifier"
    assert _paused()[1].startswith("Order 4821: ")
    assert _rows() == before, "a verifier repairs nothing"


def _rows() -> list[str]:
    found = []
    with connection.cursor() as cursor:
        for table in ("orders", "payment", "operation", "event", "reservation", "provider_refund"):
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t ORDER BY 1")
            found += [row[0] for row in cursor.fetchall()]
    return found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda: ProviderRefund.objects.update(counts=False), "and no refund of it counts"),
        (lambda: ProviderRefund.objects.update(amount_minor=1), "its refunds are 1"),
        (lambda: Reservation.objects.update(state="held"), "and its reservation is held"),
    ],
    ids=["uncounted", "amount", "held again"],
)
def test_a_success_whose_books_are_changed_by_hand_is_found_by_night(
    provider: SandboxProcess, cast: Cast, change: Callable[[], Any], says: str
) -> None:
    _sent(provider, cast)
    with guards_aside():
        change()
    assert verifiers.verify_everything(timezone.now()) > 0
    [(_, _, said)] = _alarms()
    assert says in said


def test_a_failure_of_which_a_refund_counts_is_found(provider: SandboxProcess, cast: Cast) -> None:
    operation = _sent(provider, cast)
    forced(operation, state="failed")
    assert verifiers.verify_everything(timezone.now()) > 0
    assert any("is failed, and a refund of it counts" in says for _, _, says in _alarms())


def test_what_a_person_has_seen_and_resumed_stops_nothing_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    _sent(provider, cast)
    Payment.objects.update(held_minor=1)
    now = timezone.now()
    verifiers.verify_changes(now)
    sending.resume("plain-main", by="ines")
    verifiers.verify_changes(now + timedelta(minutes=5))
    assert _paused()[0] == ""
    assert len(_alarms()) == 1
    Payment.objects.update(held_minor=0)
    verifiers.verify_changes(now + timedelta(minutes=10))
    assert _alarms() == []  # looked at again because an alarm named it


def test_a_stop_takes_the_place_of_a_pause_that_ends_by_itself_and_of_no_other(cast: Cast) -> None:
    sending.pause("plain-main", kind="outage", reason="gone", by="dispatcher")
    stop = partial(sending.stop_for_cause, kind="verifier", reason="x", by="verifier of the tables")
    assert stop("plain-main")
    assert not sending.end_pause("plain-main", kind="outage")
    assert _paused() == ("verifier", "x")
    sending.pause("plain-weak", kind="person", reason="maintenance", by="ines")
    assert not stop("plain-weak")


def test_a_verifier_cannot_write(cast: Cast) -> None:
    build.order()
    with pytest.raises(DatabaseError, match="read-only transaction"), one_snapshot():
        Payment.objects.update(held_minor=1)


def test_a_night_is_many_batches_and_goes_on_where_it_was(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        build.order(f"90{number}")
    monkeypatch.setattr(rounds, "BATCH", 2)
    monkeypatch.setattr(rounds, "BUDGET_SECONDS", 0.0)
    night = timezone.now().replace(hour=2, minute=0, second=0)
    assert verifiers.verify_everything(night) == 0
    row = VerifierRound.objects.get(name="tables")
    assert (row.checked_count, row.last_ended_at) == (0, None)
    monkeypatch.setattr(rounds, "BUDGET_SECONDS", 20.0)
    Payment.objects.filter(order__ref="904").update(held_minor=1)
    assert verifiers.verify_everything(night) == 1
    row.refresh_from_db()
    assert (row.last_checked_count, row.last_found_count) == (5, 1)
    Payment.objects.update(held_minor=0)
    assert verifiers.verify_everything(night + timedelta(hours=23)) == 0
    row.refresh_from_db()
    assert row.last_found_count == 1, "one round a night"
    verifiers.verify_everything(night + timedelta(hours=24))
    row.refresh_from_db()
    assert row.last_found_count == 0


SHOWN: dict[str, Any] = {"ref": "rf_77", "provider_status": "succeeded", "ours": True}


def _found(operation: Operation, status: str = "succeeded", **facts: Any) -> Evidence:
    candidate = SHOWN | {"provider_status": status}
    return evidence(
        operation,
        "lookup",
        seconds_ago=300,
        **({"verdict": "match", "candidates": [candidate]} | facts),
    )


def _disagreement() -> str:
    verifiers.verify_everything(timezone.now() + timedelta(days=2))
    return next((says for name, _, says in _alarms() if name == "lookups_disagree"), "")


def test_a_rejected_refund_that_the_provider_shows_stops_the_account(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    _found(operation)
    assert "is awaiting approval, and the provider shows rf_77 as succeeded" in _disagreement()
    assert _paused()[0] == "verifier"


@pytest.mark.parametrize(
    ("status", "facts", "says"),
    [
        ("succeeded", {}, "it is booked as rf_"),
        ("failed", {}, "the provider shows rf_77 as failed"),
        (
            "succeeded",
            {"verdict": "duplicate", "candidates": [SHOWN, SHOWN | {"ref": "rf_78"}]},
            "more than one refund of it: rf_77, rf_78",
        ),
        ("succeeded", {"verdict": "absent", "candidates": []}, ""),  # asked before it was settled
        ("succeeded", {"verdict": "cannot_tell", "complete": False}, ""),
    ],
    ids=["another", "failed", "twice", "absent too early", "cannot tell"],
)
def test_a_success_stands_or_falls_with_the_newest_finding(
    provider: SandboxProcess, cast: Cast, status: str, facts: dict[str, Any], says: str
) -> None:
    operation = _sent(provider, cast)
    _found(operation, status, **facts)
    said = _disagreement()
    assert says in said if says else said == ""


def test_a_success_that_a_late_complete_list_does_not_show_is_found(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = _sent(provider, cast)
    forced(operation, settled_at=timezone.now() - timedelta(hours=1))
    _found(operation, verdict="absent", candidates=[])
    assert "a complete list, asked late enough, does not show it" in _disagreement()


def test_what_has_a_case_or_is_a_moment_old_is_left_to_whoever_has_it(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    with transaction.atomic():
        open_case(lock(operation.pk), "contradiction", "Seen.")
    _found(operation)
    assert _disagreement() == ""
    build.order("4822")
    other = build.proposed(cast.echo, "4822")
    evidence(
        other,
        "lookup",
        verdict="match",
        candidates=[{"ref": "rf_1", "provider_status": "succeeded", "ours": True}],
    )
    VerifierRound.objects.all().delete()
    assert _disagreement() == ""
