"""Rules 1 to 3: what must be stored, confirmed and survive before a byte leaves."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from reconciliation import quarantine, reconciler
from refunds import dispatch, withdrawal, witness
from refunds.domain import fingerprint, states
from refunds.domain.errors import Refusal
from refunds.ledger.sending import lift_quarantine
from refunds.models import Order, Payment, ProviderAccount, Quarantine
from refunds.proposal import Caller
from tests.bugs.history import let_pass
from tests.cast import Cast
from tests.ledger.actors import Troupe, database_url
from tests.ledger.pgproxy import in_front
from tests.ledger.rows import held_equals_reservations, history, outcomes, state_of
from tests.ledger.stage import (
    ANSWER,
    BEFORE_THE_CALL,
    CLAIM,
    creates,
    lease_ends,
    make_due,
    ready,
    refunds,
    several,
    somebody_waits_for_a_lock,
)
from tests.outside.steps import tick
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_rule_01_the_attempt_is_committed_before_the_provider_hears_of_it(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    provider.fault("hold")
    sender = troupe.actor("send", [operation])
    sender.go()
    provider.wait_for_hold(60)
    # The sender still waits for its answer; this is another connection.
    assert state_of(operation) == states.SUBMITTING
    assert history(operation)[-1] == "submission_started"
    attempt = operation.attempts.get()
    assert (attempt.no, attempt.outcome, attempt.closed_at) == (1, None, None)
    assert attempt.fence == operation.version
    assert Payment.objects.get().held_minor == 7900
    [call] = creates(provider)
    assert attempt.recorded_at <= datetime.fromisoformat(call["received_at"])
    provider.release()
    assert sender.result() == {str(operation.pk): "confirmed"}
    assert len(refunds(provider, operation)) == 1


def test_rule_01_what_is_about_to_be_sent_is_not_withdrawn_and_does_not_expire(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL)
    sender.go()
    sender.reaches(BEFORE_THE_CALL)
    with pytest.raises(Refusal) as late:
        withdrawal.withdraw(operation.pk, by=Caller(person=cast.omar))
    assert late.value.code == "already_sent"
    assert dispatch.send(str(operation.pk)) == "gone"
    assert sender.finish() == {str(operation.pk): "confirmed"}
    assert len(creates(provider)) == len(refunds(provider, operation)) == 1


def test_rule_02_a_claim_that_never_reached_the_database_sends_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    with in_front(CLAIM, "cut_before") as proxy:
        sender = troupe.actor("send", [operation], host=proxy.host)
        assert sender.finish() == {str(operation.pk): "CommitUnknown"}
        assert proxy.struck.is_set()
    assert creates(provider) == []
    assert state_of(operation) == states.AUTHORIZED
    assert outcomes(operation) == []
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(refunds(provider, operation)) == 1


@pytest.mark.parametrize("act", ["cut_between", "cut_after"])
def test_rule_02_a_claim_whose_commit_was_not_confirmed_sends_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, act: Any
) -> None:
    """The same error to the sender; this time the row exists, and its lease finds it. That the
    statement did what it should is no word about the commit after it."""
    operation = ready(provider, cast)
    with in_front(CLAIM, act) as proxy:
        sender = troupe.actor("send", [operation], host=proxy.host)
        assert sender.finish() == {str(operation.pk): "CommitUnknown"}
        assert proxy.struck.is_set()
    assert creates(provider) == []
    assert state_of(operation) == states.SUBMITTING
    assert outcomes(operation) == [None]
    assert dispatch.send(str(operation.pk)) == "gone"
    lease_ends(operation)
    assert reconciler.look_up(operation.pk) == "LookUpAgain"
    assert dispatch.send(str(operation.pk)) == "gone"
    assert creates(provider) == []


def test_rule_02_a_claim_whose_backend_is_terminated_sends_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    with transaction.atomic():
        Order.objects.select_for_update().get()
        sender = troupe.actor("send", [operation])
        sender.go()
        somebody_waits_for_a_lock()
        with psycopg.connect(database_url(), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
        assert sender.result() == {str(operation.pk): "CommitUnknown"}
    assert creates(provider) == []
    assert state_of(operation) == states.AUTHORIZED


@pytest.mark.parametrize("act", ["cut_before", "cut_after"])
def test_rule_02_an_answer_whose_commit_was_not_confirmed_is_never_sent_again(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, act: Any
) -> None:
    operation = ready(provider, cast)
    with in_front(ANSWER, act) as proxy:
        sender = troupe.actor("send", [operation], host=proxy.host)
        assert sender.finish() == {str(operation.pk): "OperationalError"}
        assert proxy.struck.is_set()
    assert dispatch.send(str(operation.pk)) == "gone"
    if act == "cut_before":
        lease_ends(operation)
        assert reconciler.look_up(operation.pk) == "Settle"
    assert state_of(operation) == states.SUCCEEDED
    assert len(creates(provider)) == len(refunds(provider, operation)) == 1
    assert held_equals_reservations()


# Rule 3: the database may have lost the rows that permitted sends


def lost(operation_id: object, seq: int, **changes: str) -> dict[str, Any]:
    """A witness record of another process, as it would be after a restore or a failover."""
    return witness.identity() | {"operation": str(operation_id), "seq": seq} | changes


def witnessed(settings: Any, record: dict[str, Any]) -> Path:
    settings.WITNESS_DIR.mkdir(parents=True, exist_ok=True)
    path: Path = settings.WITNESS_DIR / "4711.json"
    path.write_text(json.dumps(record))
    return path


def test_rule_03_the_permission_is_noted_outside_the_database_before_the_first_byte(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL)
    sender.go()
    sender.reaches(BEFORE_THE_CALL)
    record = json.loads((troupe.witness / f"{sender.pid}.json").read_text())
    operation.refresh_from_db()
    event = operation.events.get(seq=operation.version)
    noted_at = datetime.fromisoformat(record.pop("at"))
    assert abs(noted_at - event.at) < timedelta(seconds=1)  # both by the database's clock
    assert record == witness.identity() | {
        "operation": str(operation.pk),
        "seq": operation.version,
    }
    assert creates(provider) == []


def test_rule_03_a_permission_that_cannot_be_noted_is_not_used(
    provider: SandboxProcess, cast: Cast, settings: Any, tmp_path: Path
) -> None:
    """A full disk must not turn a queue into unknowns: nothing has left, and we know it."""
    operation = ready(provider, cast)
    settings.WITNESS_DIR = tmp_path / "file"
    settings.WITNESS_DIR.touch()
    assert dispatch.send(str(operation.pk)) == "not_executed"
    assert outcomes(operation) == ["not_sent"]
    evidence = operation.evidence.get()
    assert "could not be noted" in evidence.facts["because"]
    assert creates(provider) == []
    assert ProviderAccount.objects.get().not_executed_in_row == 0
    settings.WITNESS_DIR = tmp_path / "folder"
    make_due(operation)
    assert dispatch.send(str(operation.pk)) == "confirmed"


def test_rule_03_a_database_that_knows_all_it_permitted_is_trusted(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert witness.check()
    assert not Quarantine.objects.exists()


@pytest.mark.parametrize(
    ("changes", "seq", "reason"),
    [
        ({}, 4, "does not know a send"),
        ({"operation": "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"}, 1, "does not know a send"),
        ({"system": "7000000000000000000"}, 1, "Another database answers"),
        ({"timeline": "99"}, 1, "another timeline"),
    ],
    ids=["event_lost", "operation_lost", "another_database", "another_timeline"],
)
def test_rule_03_a_database_that_may_have_lost_its_tail_sends_nothing_until_two_people_say_so(
    provider: SandboxProcess,
    cast: Cast,
    settings: Any,
    changes: dict[str, str],
    seq: int,
    reason: str,
) -> None:
    operation = ready(provider, cast)
    witnessed(settings, lost(operation.pk, seq) | changes)
    assert not witness.check()
    assert reason in Quarantine.objects.get().reason
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert dispatch.ready(10) == []
    assert state_of(operation) == states.AUTHORIZED
    assert creates(provider) == []
    with pytest.raises(Refusal) as alone:
        lift_quarantine(by="olga", with_="olga")
    assert alone.value.code == "two_people_needed"
    assert dispatch.send(str(operation.pk)) == "waiting"
    with pytest.raises(CommandError, match="of plain-main since .* were not listed to the end"):
        call_command("lift_quarantine", by="olga", with_="adam")
    let_pass(60)  # whatever was sent before it began has landed and shows
    quarantine.tend(timezone.now())
    tick()
    call_command("lift_quarantine", by="olga", with_="adam")
    assert witness.check()
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(refunds(provider, operation)) == 1


def test_rule_03_one_quarantine_is_open_however_often_it_is_noticed(
    cast: Cast, settings: Any
) -> None:
    witnessed(settings, lost("0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a", 1))
    assert not witness.check()
    assert not witness.check()
    assert Quarantine.objects.count() == 1
    with pytest.raises(IntegrityError, match="quarantine_lifted_by_two"):
        Quarantine.objects.update(lifted_by="a", lifted_with="a", lifted_at="2026-11-29T12:00Z")


def test_rule_03_a_worker_that_lived_through_a_failover_does_not_stop_sending_again(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its notes go on naming the database it began with; people have accepted the change."""
    first, second = several(provider, cast, 2)
    before = {"system": witness.identity()["system"], "timeline": "0"}
    monkeypatch.setitem(witness._identity_of_process, os.getpid(), before)
    assert dispatch.send(str(first.pk)) == "confirmed"
    assert not witness.check()
    lift_quarantine(by="olga", with_="adam")
    assert witness.check()
    assert dispatch.send(str(second.pk)) == "confirmed"
    assert witness.check()
    assert Quarantine.objects.count() == 1


def test_rule_03_losing_every_row_cannot_make_a_second_key(cast: Cast) -> None:
    """The key depends on the operation's id alone (rule 6)."""
    id_ = UUID("0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a")
    assert fingerprint.provider_key(id_) == "af06802e-b314-4ce9-bef4-130685fed08c"
