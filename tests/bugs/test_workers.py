"""Public reports of workers and queues that lost a task or ran it twice: B127 to B133."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from config.embedded import Valkey
from reconciliation import reconciler, sweep
from refunds import approvals, dispatch, doorbell, tasks
from refunds.domain import states
from refunds.models import Attempt, Evidence
from tests import build
from tests.bugs.history import let_pass
from tests.bugs.programs import Program
from tests.bugs.races import until
from tests.bugs.steps import authorized, balance_of, creates, events_of, state_of
from tests.bugs.workers import Workers
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workers(db: None) -> Iterator[Workers]:
    # pytest's own folders are too long for a socket's path.
    folder = Path(tempfile.mkdtemp(prefix="as-", dir="/tmp"))
    broker = Valkey(folder)
    try:
        yield Workers(broker.ensure(), folder)
    finally:
        broker.stop()
        shutil.rmtree(folder)


def test_b127_a_send_longer_than_the_visibility_time_is_one_call(
    provider: SandboxProcess, cast: Cast, workers: Workers
) -> None:
    operation = authorized(provider, cast)
    provider.fault("hold")
    with workers.working("one", "two"):
        workers.ring_send(operation.pk)
        provider.wait_for_hold(20)
        until(lambda: workers.noted("done"), seconds=20)
        [second] = workers.noted("done")
        assert second["result"] == "gone"
        assert state_of(operation) == states.SUBMITTING
        provider.release()
        until(lambda: len(workers.noted("done")) > 1)
    first = workers.noted("done")[1]
    assert first["result"] == "confirmed"
    assert first["pid"] != second["pid"]
    assert len(creates(provider)) == 1
    assert state_of(operation) == states.SUCCEEDED
    assert Attempt.objects.count() == 1


def test_b129_a_message_that_died_with_its_worker_is_found_by_the_sweep(
    provider: SandboxProcess, cast: Cast, workers: Workers, rung: list[tuple[str, str]]
) -> None:
    operation = authorized(provider, cast)
    rung.clear()
    with workers.working("one", BUGS_DIE_ON_TAKING="1") as [worker]:
        workers.ring_send(operation.pk)
        assert worker.wait(30) == -signal.SIGKILL
    assert [len(workers.noted(each)) for each in ("taken", "done")] == [1, 0]
    assert state_of(operation) == states.AUTHORIZED
    assert not Attempt.objects.exists()
    tasks.sweep_ready()
    assert rung == [("refunds.tasks.send", str(operation.pk))]
    assert tasks.send(rung[0][1]) == "confirmed"
    assert len(provider.refunds()) == 1


def test_b131_a_bell_rings_after_the_commit_and_nobody_acts_before(
    provider: SandboxProcess, cast: Cast, program: Program, rung: list[tuple[str, str]]
) -> None:
    provider.payment()
    build.order()
    operation = build.proposed(cast.echo)
    with transaction.atomic():
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
        assert rung == []
        assert program.ask("ready") == {"result": []}
        assert program.ask("send", operation=str(operation.pk)) == {"result": "gone"}
    assert rung == [("refunds.tasks.send", str(operation.pk))]
    assert program.ask("ready") == {"result": [str(operation.pk)]}
    assert program.ask("send", operation=str(operation.pk)) == {"result": "confirmed"}
    assert len(creates(provider)) == 1


def test_b131_what_was_rolled_back_rings_no_bell(cast: Cast, rung: list[tuple[str, str]]) -> None:
    build.order()
    operation = build.proposed(cast.echo)

    @transaction.atomic
    def approve_and_fail() -> None:
        assert approvals.approve(operation.pk, cast.ben, build.shown(operation)).complete
        raise ConnectionResetError("the browser is gone")

    with pytest.raises(ConnectionResetError):
        approve_and_fail()
    assert rung == []
    assert state_of(operation) == states.AWAITING_APPROVAL


def test_b131_a_bell_that_nobody_hears_fails_no_approval_and_the_sweep_finds_it(
    cast: Cast, rung: list[tuple[str, str]]
) -> None:
    def away(task: str, operation_id: str, after_seconds: float) -> None:
        raise ConnectionError("the broker is away")

    build.order()
    doorbell.connect(away)
    operation = build.authorized(cast.echo, cast.ben)
    assert state_of(operation) == states.AUTHORIZED
    assert dispatch.ready(10) == [str(operation.pk)]


def test_b133_a_sender_paused_past_its_lease_can_decide_nothing_when_it_comes_back(
    provider: SandboxProcess, cast: Cast, program: Program
) -> None:
    operation = authorized(provider, cast)
    provider.fault("hold")
    program.tell("send", operation=str(operation.pk))
    provider.wait_for_hold()
    program.signal(signal.SIGSTOP)
    program.until_stopped()
    provider.release()
    let_pass(61)
    assert sweep.end_leases(timezone.now()) == 1
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    decided = events_of(operation)
    assert not Evidence.objects.filter(kind="answer").exists()

    program.signal(signal.SIGCONT)
    assert program.hear() == {"result": "late"}
    assert events_of(operation) == decided
    assert Evidence.objects.get(kind="answer").attempt_no == 1
    assert dispatch.ready(10) == []
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(creates(provider)) == 1
    assert balance_of() == (0, 7900, 5000)


def test_b133_a_sender_paused_before_its_first_byte_writes_none_when_it_comes_back(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    operation = authorized(provider, cast)
    program = Program(tmp_path, AFTERSEND_LIMITS='{"send_deadline_seconds": 0.05}')
    try:
        program.until_ready()
        program.tell("send", operation=str(operation.pk), at_the_wire="SIGSTOP")
        program.until_stopped()
        let_pass(61)
        assert sweep.end_leases(timezone.now()) == 1
        until(lambda: _older_than(operation.pk, 61.05))
        program.signal(signal.SIGCONT)
        assert program.hear() == {"result": "late"}
    finally:
        program.end()
    assert provider.calls() == []
    assert state_of(operation) == states.UNKNOWN
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.first_byte_at) == ("not_sent", None)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert provider.refunds() == []


def _older_than(operation_id: UUID, seconds: float) -> bool:
    recorded_at = Attempt.objects.get(operation_id=operation_id).recorded_at
    return (timezone.now() - recorded_at).total_seconds() > seconds


def test_a_worker_that_is_asked_to_end_in_the_middle_of_a_send_finishes_it(
    provider: SandboxProcess, cast: Cast, workers: Workers
) -> None:
    operation = authorized(provider, cast)
    provider.fault("hold")
    with workers.working("one") as [worker]:
        workers.ring_send(operation.pk)
        provider.wait_for_hold(20)
        worker.terminate()
        assert worker.poll() is None
        provider.release()
        assert worker.wait(30) == 0
    assert state_of(operation) == states.SUCCEEDED
    assert len(creates(provider)) == 1
