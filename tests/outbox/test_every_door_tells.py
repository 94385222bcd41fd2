"""No door moves an operation without its consequence: the database writes both or neither."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from reconciliation import alarms, outbox, reconciler
from reconciliation import outbox_plan as plan
from reconciliation.cases import open_case
from reconciliation.models import Consequence
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.signal import Signal
from refunds import dispatch
from refunds.ledger import lock
from refunds.ledger.sending import pause
from refunds.models import Operation
from tests import build
from tests.cast import Cast
from tests.ledger.rows import approved_by_hand, history
from tests.ledger.rulings import attached, ruled, told, unknown_with_case
from tests.ledger.stage import ready
from tests.outbox.receiver import receiving, tell
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def untold() -> list[tuple[str, int]]:
    """Events that nobody will ever hear of."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.event, e.seq FROM event e LEFT JOIN outbox o"
            " ON o.operation_id = e.operation_id AND o.seq = e.seq"
            " WHERE o.id IS NULL AND e.event <> ALL (%s)",
            [sorted(plan.SILENT)],
        )
        return list(cursor.fetchall())


def written(name: str) -> int:
    return Consequence.objects.filter(name__startswith=name).count()


def test_the_python_door_the_claim_the_answer_and_the_reconciler_all_write_what_to_tell(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    reconciler.look_up(operation.pk)
    assert history(operation) == [
        "proposed",
        "policy_held",
        "approved",
        "submission_started",
        "unanswered",
        "found_succeeded",
    ]
    assert Consequence.objects.filter(operation=operation, seq__isnull=False).count() == 4
    assert untold() == []


def test_what_nobody_is_told_of_is_not_written(cast: Cast) -> None:
    """By the database's own trigger, which a new line of the plan must be brought into."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'event_is_told'"
        )
        (definition,) = cursor.fetchone()
    assert set(re.findall(r"'(\w+)'::", definition)) == plan.SILENT
    build.order()
    operation = build.proposed(cast.omar)
    told = Consequence.objects.filter(operation=operation).values_list("seq", flat=True)
    assert history(operation) == ["proposed", "policy_held"]
    assert list(told) == [2]


def test_nothing_but_its_own_trigger_tells_of_an_event(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.omar)
    with pytest.raises(IntegrityError, match="told by its own trigger"), transaction.atomic():
        Consequence.objects.create(operation=operation, seq=2, kind="event")


def test_a_statement_that_no_verb_of_ours_wrote_cannot_move_without_it(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.omar)
    approved_by_hand(operation)  # a move in SQL of the tests' own
    assert history(operation)[-1] == "approved"
    assert untold() == []


def test_what_is_undone_is_told_to_nobody(provider: SandboxProcess, cast: Cast) -> None:
    ready(provider, cast)
    before = Consequence.objects.count()
    with transaction.atomic():
        operation = build.proposed(cast.omar, amount_minor=1200)
        assert Consequence.objects.filter(operation=operation).count() == 1
        transaction.set_rollback(True)
    assert Consequence.objects.count() == before


def test_an_approval_a_case_with_each_reason_and_a_pause_write_what_to_tell(cast: Cast) -> None:
    build.order()
    operation = build.authorized(cast.omar, cast.ben)
    assert written("approval:") == 1
    with transaction.atomic():
        case = open_case(lock(operation.pk), "unresolved", "Nobody can tell.")
        open_case(lock(operation.pk), "duplicate", "There are two.")
        open_case(lock(operation.pk), "duplicate", "There are still two.")
    names = Consequence.objects.filter(kind="case").order_by("pk").values_list("name", flat=True)
    assert list(names) == [f"case:{case.pk}:unresolved", f"case:{case.pk}:duplicate"]
    pause("plain-main", kind="outage", reason="It does not answer.", by="dispatcher")
    pause("plain-main", kind="outage", reason="It does not answer.", by="dispatcher")
    assert written("paused:plain-main:") == 1


def test_the_same_announcement_is_one_and_needs_the_transaction_of_what_happened() -> None:
    def announced() -> bool:
        return outbox.announce(
            "alarm:7", "Unknown over target.", to="on_call", about="alarm", pages=True
        )

    with transaction.atomic():
        assert announced()
    with transaction.atomic():
        assert not announced()
    with pytest.raises(AssertionError, match="written with what happened"):
        announced()
    assert written("alarm:7") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE outbox SET seq = seq + 100",
        "UPDATE outbox SET kind = 'other'",
        "DELETE FROM outbox",
        "TRUNCATE outbox CASCADE",
        "INSERT INTO outbox (operation_id, seq, kind) SELECT operation_id, seq, 'event' FROM event",
    ],
)
def test_what_is_to_be_told_is_neither_changed_nor_removed_nor_doubled(
    cast: Cast, sql: str
) -> None:
    build.order()
    build.proposed(cast.omar)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def test_what_was_expanded_is_not_expanded_again(cast: Cast) -> None:
    build.order()
    build.proposed(cast.omar)
    assert outbox.expand() == 1
    assert outbox.expand() == 0
    with (
        pytest.raises(IntegrityError, match="told as it was"),
        transaction.atomic(),
    ):
        Consequence.objects.update(expanded_at=None)
    assert Operation.objects.count() == 1


def test_a_ruling_that_two_must_sign_asks_the_ops_leads_while_it_waits(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    case = unknown_with_case(provider, cast, account="plain-blind", fault="drop_after_commit")
    attached(case, cast.omar)
    seen = told(provider.refunds("plain-blind")[0]["id"])
    with receiving(settings, "staff") as receiver:
        outbox.expand()
        ruled(case, cast.omar, "happened", testimony=seen)
        assert written("ruling:") == 1
        tell()
        (heard,) = receiver.heard
    assert "needs a second signature" in heard.body["text"]


def test_an_alarm_is_told_when_it_fires_and_when_it_rises_and_pages_then(settings: Any) -> None:
    signal = Signal(
        name="heat", says="It is hot.", warn=10, page=20, unit="degrees", why="summer", act="Cool."
    )
    began = timezone.now()
    with receiving(settings, "staff", "on_call") as receiver:
        for minute, value in enumerate((11.0, 12.0, 21.0, 22.0)):
            now = began + timedelta(minutes=minute)
            alarms.observe(signal, [Reading("", value, f"{value:.0f} degrees.")], now)
            tell()
        (warned,), (paged,) = receiver.of("staff"), receiver.of("on_call")
    assert warned.body["text"].startswith("Alarm (heat): 11 degrees.")
    assert paged.body["text"].startswith("Alarm goes on (heat): 21 degrees.")


def test_every_task_of_the_schedule_is_one_that_workers_know() -> None:
    from config.celery import app

    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= app.tasks.keys()
