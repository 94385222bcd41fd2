"""Each monitor: quiet before its cause, a warning and a page at the figures of its table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from reconciliation.cases import open_case
from reconciliation.models import Case, Notice, NoticeRefused
from reconciliation.monitors import machinery, waiting
from reconciliation.monitors.table import MONITORS
from refunds.ledger import external, lock, sending
from refunds.models import Operation, Order, Payment, ProviderAccount, ProviderRefund
from review.models import RefusedAct
from tests import build
from tests.cast import Cast
from tests.monitors.stage import (
    attempt,
    evidence,
    fires,
    forced,
    guards_aside,
    in_state,
    read,
)

pytestmark = pytest.mark.django_db
HOUR, DAY = 3600, 86_400
A_MONTH = 30 * DAY


def _case(cast: Cast, reason: str) -> Case:
    build.order()
    operation = build.proposed(cast.echo)
    with transaction.atomic():
        return open_case(lock(operation.pk), reason, "Two of them.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("duplicates", "duplicate"),
        ("paid_after_no", "contradiction"),
        ("refund_differs", "mismatch"),
    ],
)
def test_a_case_about_money_pages_until_it_is_closed(cast: Cast, name: str, reason: str) -> None:
    assert fires(name) == {}
    case = _case(cast, reason)
    assert fires(name) == {"plain-main pi_4821": "page"}
    assert read(name)[0].says == "Order 4821: Two of them."
    Case.objects.filter(pk=case.pk).update(closed_at=timezone.now())
    assert fires(name) == {}


def test_a_case_about_an_account_alone_is_read_too(cast: Cast) -> None:
    Case.objects.create(
        provider_account="plain-main",
        reasons=["duplicate"],
        because="Strange.",
        due_at=timezone.now(),
    )
    [reading] = read("duplicates")
    assert (reading.subject, reading.says) == ("plain-main", "Strange.")


def _outside(payment: Payment, ref: str, amount_minor: int, created_at: Any) -> None:
    external.learn_external(
        payment,
        ref=ref,
        amount_minor=amount_minor,
        provider_status="succeeded",
        created_at=created_at,
    )


def test_two_equal_refunds_within_a_minute_warn_and_others_do_not(cast: Cast) -> None:
    build.order()
    payment, now = Payment.objects.get(), timezone.now()
    _outside(payment, "rf_1", 500, now)
    _outside(payment, "rf_2", 501, now)
    _outside(payment, "rf_3", 500, now - timedelta(seconds=61))
    assert fires("equal_refunds") == {}
    _outside(payment, "rf_4", 500, now + timedelta(seconds=59))
    assert fires("equal_refunds") == {"plain-main pi_4821": "warn"}


def test_two_operations_that_were_approved_are_no_pair(cast: Cast) -> None:
    build.order()
    payment, now = Payment.objects.get(), timezone.now()
    for number in (1, 2):
        operation = build.proposed(cast.echo, "4821", 500 + number)
        ProviderRefund.objects.create(
            provider_account="plain-main",
            ref=f"rf_{number}",
            payment=payment,
            operation=operation,
            amount_minor=500,
            provider_status="succeeded",
            counts=True,
            provider_created_at=now,
        )
    assert fires("equal_refunds") == {}


# name -> (state, age that is quiet, age that warns or None, age that pages or None)
_AGES: dict[str, tuple[str, float, float | None, float | None]] = {
    "unknown_past_target": ("unknown", 890, None, 910),
    # flight 2, lag 1, idle 1, send deadline 2, two skews of 5 s
    "unknown_past_quiet": ("unknown", 1800 + 10, 1800 + 26, 4 * HOUR + 26),
    "key_window": ("unknown", 295, 320, 460),  # of 600 s
    "submitting_late": ("submitting", 60 + 50, 60 + 70, 60 + 370),
    "authorized_waiting": ("authorized", 50, 70, 700),
}


@pytest.mark.parametrize("name", _AGES)
def test_what_waits_too_long_fires_at_the_age_of_its_table(cast: Cast, name: str) -> None:
    state, quiet, warns, pages = _AGES[name]
    in_state(cast, state, seconds_ago=quiet)
    assert fires(name) == {}
    for age, level in ((warns, "warn"), (pages, "page")):
        if age is not None:
            in_state(cast, state, seconds_ago=age)
            assert fires(name) == {"plain-main": level}


def test_a_quiet_period_needs_both_bounds_and_a_proof_of_stopping(cast: Cast) -> None:
    in_state(cast, "unknown", seconds_ago=DAY, account="plain-unbounded")
    in_state(cast, "unknown", seconds_ago=DAY, account="stripe-main")
    assert fires("unknown_past_quiet") == {}


def test_a_key_whose_life_is_over_is_no_last_chance(cast: Cast) -> None:
    in_state(cast, "unknown", seconds_ago=700)
    in_state(cast, "unknown", seconds_ago=400, account="plain-nokeys")
    assert fires("key_window") == {}


@pytest.mark.parametrize("held_back", ["halted", "pause", "stop", "later", "frozen"])
def test_what_somebody_holds_back_does_not_wait_for_a_worker(cast: Cast, held_back: str) -> None:
    operation = in_state(cast, "authorized", seconds_ago=700)
    match held_back:
        case "halted":
            forced(operation, halted=True)
        case "pause":
            sending.pause("plain-main", kind="person", reason="x", by="ines")
        case "stop":
            sending.stop_everything(by="omar", reason="x")
        case "later":
            forced(operation, not_before=timezone.now() + timedelta(hours=1))
        case _:
            type(operation.order).objects.update(frozen=True)
    assert fires("authorized_waiting") == {}


def test_the_unknown_share_of_a_day_is_read_where_there_are_refunds_enough(cast: Cast) -> None:
    in_state(cast, "unknown", seconds_ago=5)
    for number in range(1, 4):
        build.proposed(cast.echo, Order.objects.get().ref, number)
    assert waiting.unknown_share(refunds_min=5) == []
    [reading] = waiting.unknown_share(refunds_min=4)
    assert (reading.subject, reading.value) == ("plain-main", 25)
    assert fires("unknown_share") == {}


def test_a_case_without_an_owner_warns_and_pages_and_an_owner_ends_it(cast: Cast) -> None:
    case = _case(cast, "unresolved")
    for age, wanted in ((800, {}), (1000, {"": "warn"}), (2 * HOUR + 60, {"": "page"})):
        Case.objects.update(opened_at=timezone.now() - timedelta(seconds=age))
        assert fires("cases_without_owner") == wanted
    soon = timezone.now() + timedelta(minutes=30)
    Case.objects.filter(pk=case.pk).update(owner=cast.omar, owned_until=soon)
    assert fires("cases_without_owner") == {}


def test_an_uncertain_refund_that_no_sweep_will_find_pages(cast: Cast) -> None:
    operation = in_state(cast, "unknown", seconds_ago=5)
    assert fires("not_looked_at") == {}
    forced(operation, due_at=None)
    assert fires("not_looked_at") == {"plain-main": "page"}


# name -> (fault of one attempt, how many of 100 warn, how many page)
_SHARES: dict[str, tuple[dict[str, Any], int, int]] = {
    "ambiguous_answers": ({"outcome": None}, 2, 6),
    "deadline_missed": ({"outcome": "not_sent", "connected_at": timezone.now()}, 2, 11),
}


@pytest.mark.parametrize("name", _SHARES)
def test_a_share_of_the_last_sends_fires_and_a_few_sends_are_no_share(
    cast: Cast, name: str
) -> None:
    fault, warns, pages = _SHARES[name]
    operation = in_state(cast, "unknown", seconds_ago=5 * HOUR, outcome=None)

    def add(first: int, count: int, **columns: Any) -> None:
        for no in range(first, first + count):
            attempt(operation, no, seconds_ago=60, **({"outcome": "confirmed"} | columns))

    add(100, 1, **fault)
    add(200, 18)
    assert read(name) == []
    add(300, 81)
    assert fires(name) == {}
    add(101, warns - 1, **fault)
    assert fires(name) == {"plain-main": "warn"}
    add(101 + warns, pages, **fault)
    assert fires(name) == {"plain-main": "page"}


def test_lookups_that_cannot_tell_fire_by_their_share(cast: Cast) -> None:
    operation = in_state(cast, "unknown", seconds_ago=60)
    for _ in range(15):
        evidence(operation, "lookup")
    for _ in range(4):
        evidence(operation, "lookup", verdict="cannot_tell")
    assert read("lookups_failing") == []
    evidence(operation, "lookup", verdict="cannot_tell")
    assert fires("lookups_failing") == {"plain-main": "warn"}
    for _ in range(11):
        evidence(operation, "lookup", verdict="cannot_tell")
    assert fires("lookups_failing") == {"plain-main": "page"}


def test_answers_that_come_when_it_is_decided_fire_by_their_number(cast: Cast) -> None:
    operation = in_state(cast, "unknown", seconds_ago=60)
    for _ in range(10):
        evidence(operation, "answer", seconds_ago=60)
    evidence(operation, "answer", seconds_ago=HOUR + 60)
    assert fires("stale_decisions") == {}
    evidence(operation, "answer", seconds_ago=60)
    assert fires("stale_decisions") == {"plain-main": "warn"}


def _booked(operation: Operation, *, created_seconds_ago: float) -> None:
    ProviderRefund.objects.create(
        provider_account=operation.provider_account,
        ref="rf_9",
        payment=operation.payment,
        operation=operation,
        amount_minor=100,
        provider_status="succeeded",
        counts=True,
        provider_created_at=timezone.now() - timedelta(seconds=created_seconds_ago),
    )


@pytest.mark.parametrize(("later", "wanted"), [(11, {}), (14, {"plain-main rf_9": "page"})])
def test_a_refund_made_later_than_its_bound_pages(
    cast: Cast, later: float, wanted: dict[str, str]
) -> None:
    """The bound of plain-main is 2 s; clocks may be 10 s apart."""
    operation = in_state(cast, "succeeded", seconds_ago=100, outcome="confirmed")
    _booked(operation, created_seconds_ago=100 - later)
    assert fires("late_landing") == wanted


def test_a_landing_at_an_account_without_a_bound_is_never_late(cast: Cast) -> None:
    operation = in_state(cast, "succeeded", seconds_ago=HOUR, account="plain-unbounded")
    _booked(operation, created_seconds_ago=1)
    assert fires("late_landing") == {}


@pytest.mark.parametrize(
    ("lag", "wanted"),
    [(1.4, {}), (1.6, {"plain-lagged rf_9": "warn"}), (3.5, {"plain-lagged rf_9": "page"})],
)
def test_a_complete_list_that_did_not_show_what_existed_measures_the_lag(
    cast: Cast, lag: float, wanted: dict[str, str]
) -> None:
    operation = in_state(cast, "succeeded", seconds_ago=100, account="plain-lagged")
    evidence(operation, "lookup", seconds_ago=50 - lag)
    _booked(operation, created_seconds_ago=50)
    assert fires("lookup_lag") == wanted


def test_forged_notices_fire_by_their_number(cast: Cast) -> None:
    now = timezone.now()
    NoticeRefused.objects.create(
        provider_account="plain-main", reason="too_large", minute=now, count=99
    )
    NoticeRefused.objects.create(
        provider_account="plain-main", reason="forged", minute=now - timedelta(minutes=7), count=99
    )
    for count, wanted in ((5, {}), (6, {"plain-main": "warn"}), (51, {"plain-main": "page"})):
        NoticeRefused.objects.update_or_create(
            provider_account="plain-main", reason="forged", minute=now, defaults={"count": count}
        )
        assert fires("notices_refused") == wanted


def _noticed(*, seconds_ago: float, event_id: str, applied: bool) -> None:
    at = timezone.now() - timedelta(seconds=seconds_ago)
    Notice.objects.create(
        provider_account="plain-main",
        event_id=event_id,
        kind="refund.updated",
        verdict="genuine",
        body=b"",
        digest=b"",
        facts={},
        signed_at=at,
        arrived_at=at,
        stored_at=at,
        applied_at=at if applied else None,
        due_at=None if applied else at,
    )


def test_a_notice_that_is_not_applied_fires_by_its_age(cast: Cast) -> None:
    _noticed(seconds_ago=5 * HOUR, event_id="a", applied=True)
    _noticed(seconds_ago=500, event_id="b", applied=False)
    assert fires("notices_waiting") == {}
    _noticed(seconds_ago=700, event_id="c", applied=False)
    assert fires("notices_waiting") == {"plain-main": "warn"}


def _succeeded(cast: Cast, seconds_ago: float, account: str = "plain-main") -> None:
    operation = in_state(cast, "succeeded", seconds_ago=seconds_ago, account=account)
    with guards_aside():
        operation.events.filter(seq=2).update(
            event="found_succeeded",
            from_state="unknown",
            to_state="succeeded",
            actor_kind="reconciler",
            at=timezone.now() - timedelta(seconds=seconds_ago),
        )


def test_an_account_that_tells_nothing_while_its_refunds_succeed_is_silent(cast: Cast) -> None:
    _succeeded(cast, 60)
    _succeeded(cast, 7 * HOUR, "plain-blind")  # it never sends any
    assert fires("notices_silent") == {}
    _succeeded(cast, 7 * HOUR)
    assert fires("notices_silent") == {"plain-main": "warn"}
    _succeeded(cast, 24.5 * HOUR)
    assert fires("notices_silent") == {"plain-main": "page"}
    _noticed(seconds_ago=HOUR, event_id="a", applied=True)
    assert fires("notices_silent") == {}


def test_somebody_who_keeps_deciding_about_their_own_is_told_of(cast: Cast) -> None:
    for _ in range(2):
        RefusedAct.objects.create(
            person=cast.ada, act="approve", object_ref="x", code="own_proposal"
        )
    for _ in range(20):
        RefusedAct.objects.create(
            person=cast.ben, act="approve", object_ref="x", code="role_missing"
        )
    assert fires("own_acts_refused") == {}
    RefusedAct.objects.create(
        person=cast.ada, act="start", object_ref="x", code="started_by_the_same_person"
    )
    assert fires("own_acts_refused") == {"ada": "warn"}


def test_clocks_that_agree_are_quiet_and_one_that_is_off_is_named(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fires("database_clock") == {}
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() - timedelta(seconds=3))
    assert fires("database_clock") == {"": "warn"}


@pytest.mark.parametrize(
    ("took", "wanted"),
    [
        (0.5, {}),
        (2.0, {}),
        (3.5, {"echo": "warn"}),
        (8, {"echo": "page"}),
        (-1.5, {"echo": "warn"}),
    ],
)
def test_a_sender_whose_clock_cannot_be_the_databases_is_named(
    cast: Cast, took: float, wanted: dict[str, str]
) -> None:
    """The send begins between the attempt's record and its deadline 2 s later, by any good clock."""
    operation = in_state(cast, "succeeded", seconds_ago=60, outcome="confirmed")
    event = operation.events.order_by("-seq").first()
    assert event is not None
    attempt(operation, 2, seconds_ago=60, outcome="confirmed", fence=event.seq)
    answer = evidence(operation, "answer", seconds_ago=60 - took)
    with guards_aside():
        type(answer).objects.filter(pk=answer.pk).update(attempt_no=2)
        operation.events.filter(seq=event.seq).update(actor="echo")
    assert fires("worker_clock") == wanted


def test_what_stops_sending_pages_and_a_persons_pause_does_not(cast: Cast) -> None:
    sending.pause("plain-main", kind="person", reason="maintenance", by="ines")
    assert fires("account_paused") == {}
    sending.pause("plain-weak", kind="outage", reason="gone", by="dispatcher")
    ProviderAccount.objects.update(paused_at=timezone.now() - timedelta(seconds=1))
    assert fires("account_paused") == {"plain-weak": "page"}
    sending.stop_everything(by="omar", reason="odd")
    assert fires("sending_stopped") == {"everything": "page"}


def test_an_account_that_is_gone_while_it_is_needed_pages(cast: Cast) -> None:
    operation = in_state(cast, "unknown", seconds_ago=5)
    assert fires("account_gone") == {}
    forced(operation, provider_account="plain-gone")
    assert fires("account_gone") == {"plain-gone": "page"}


def test_a_task_that_does_not_come_to_its_end_is_silent() -> None:
    now = timezone.now()

    def silent(after: float) -> dict[str, float]:
        later = now + timedelta(seconds=after)
        return {
            each.subject: each.value
            for each in machinery.silent_tasks({"a": 5.0, "b": 60.0}, later)
        }

    assert silent(0) == {"a": 0, "b": 0}  # counted from the first question
    machinery.ran("a", now + timedelta(seconds=100))
    assert silent(105) == {"a": 0, "b": 45}
    cache.clear()
    assert silent(1000) == {"a": 0, "b": 0}


def test_every_monitor_is_read_here_or_answers_with_nothing(cast: Cast) -> None:
    """On an installation without a refund nothing fires."""
    assert {name: each for name in [m.name for m in MONITORS] if (each := fires(name))} == {}
