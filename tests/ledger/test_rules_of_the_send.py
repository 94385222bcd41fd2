"""Rules 7, 8, 14, 32 and 33: a sender that sleeps, is killed, or stands behind somebody's proxy."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.models import Operation, Payment, ProviderAccount
from refunds.providers import registry
from tests.cast import Cast
from tests.ledger.actors import Actor, Troupe, database_url
from tests.ledger.pgproxy import in_front
from tests.ledger.rows import history, outcomes, poll, state_of
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    BEFORE_THE_CALL,
    CLAIM,
    CONNECTED,
    after_the_lease,
    creates,
    lease_ends,
    past_the_send_deadline,
    ready,
    refunds,
    several,
)
from tests.provider_process import SandboxProcess
from tests.providers.listener import answer, listening
from tests.providers.listener import http as said

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = {"send_deadline_seconds": 0.2}


def test_rule_07_the_send_deadline_counts_from_before_the_commit(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """The claim is committed, and its confirmation takes longer than the deadline."""
    operation = ready(provider, cast)
    with in_front(CLAIM, "hold") as proxy:
        one_second = {"send_deadline_seconds": 1}
        sender = troupe.actor("send", [operation], host=proxy.host, limits=one_second)
        sender.go()
        assert proxy.struck.wait(60)
        past_the_send_deadline(operation)
        proxy.release.set()
        assert sender.result() == {str(operation.pk): "not_executed"}
    assert creates(provider) == []
    attempt = operation.attempts.get()
    assert (attempt.outcome, attempt.first_byte_at) == ("not_sent", None)
    assert attempt.connected_at is not None
    assert state_of(operation) == states.AUTHORIZED
    # Our own lateness says nothing about the provider.
    assert ProviderAccount.objects.get().not_executed_in_row == 0


def test_rule_07_a_sender_that_slept_past_its_deadline_writes_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL, limits=SHORT)
    sender.go()
    sender.reaches(BEFORE_THE_CALL)
    sender.pause()
    past_the_send_deadline(operation)
    sender.resume()
    assert sender.finish() == {str(operation.pk): "not_executed"}
    assert creates(provider) == []
    assert outcomes(operation) == ["not_sent"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's table of connections")
def test_rule_07_a_sender_that_slept_between_the_check_and_the_write_finds_the_door_closed(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """No check on our side can prevent this sleep; the provider's idle limit I bounds it."""
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=CONNECTED)
    sender.go()
    sender.reaches(CONNECTED)
    sender.pause()
    poll(lambda: closed_by_the_provider(sender, provider.port), "the provider's idle limit")
    sender.resume()
    assert sender.finish() == {str(operation.pk): "unanswered"}
    assert refunds(provider, operation) == []
    assert creates(provider) == []
    assert state_of(operation) == states.UNKNOWN


def closed_by_the_provider(sender: Actor, port: int) -> bool:
    """Whether a connection of the process to this port was closed from the other side."""
    waiting = [
        line.split() for line in Path(f"/proc/{sender.pid}/net/tcp").read_text().splitlines()[1:]
    ]
    close_wait = "08"
    return any(line[2].endswith(f":{port:04X}") and line[3] == close_wait for line in waiting)


@pytest.mark.parametrize("fault", ["drop_after_commit", "reset_before", "error_after_commit"])
def test_rule_08_an_attempt_is_one_request_even_when_its_answer_is_lost(
    provider: SandboxProcess, cast: Cast, fault: str
) -> None:
    operation = ready(provider, cast)
    provider.fault(fault)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert len(creates(provider)) == 1
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(creates(provider)) == 1


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def test_rule_32_no_hop_of_ours_stands_between_us_and_the_provider(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """A proxy may resend; where one may, no answer could return an operation to authorized."""
    operation = ready(provider, cast)
    with listening(answer(said(status="429 Too Many"))) as hop:
        environ = dict.fromkeys(PROXIES, hop.url) | {"no_proxy": "", "NO_PROXY": ""}
        sender = troupe.actor("send", [operation], environ=environ)
        assert sender.finish() == {str(operation.pk): "confirmed"}
    assert hop.requests == []
    assert len(creates(provider)) == 1


# Rule 14: killed, redelivered, overtaken by its lease


@pytest.mark.parametrize(
    ("point", "reached", "executed"),
    [
        (BEFORE_THE_CALL, 0, 0),
        (CONNECTED, 0, 0),
        (ANSWER_IN_HAND, 1, 1),
    ],
    ids=["before_the_connection", "before_the_first_byte", "with_the_answer_in_hand"],
)
def test_rule_14_a_sender_that_is_killed_leaves_unknown_and_nothing_to_send(
    provider: SandboxProcess,
    cast: Cast,
    troupe: Troupe,
    point: str,
    reached: int,
    executed: int,
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=point)
    sender.go()
    sender.reaches(point)
    sender.kill()
    # Redelivered at once, or found by the sweep: nothing to do.
    assert dispatch.send(str(operation.pk)) == "gone"
    assert dispatch.ready(10) == []
    # A lease that has not ended is left alone.
    assert reconciler.end_leases(timezone.now(), batch_max=100) == 0
    assert state_of(operation) == states.SUBMITTING
    lease_ends(operation)
    assert history(operation)[-1] == "lease_ended"
    attempt = operation.attempts.get()
    assert (attempt.outcome, attempt.stop_proof_at) == (None, None)
    assert attempt.closed_at is not None
    assert Payment.objects.get().held_minor == 7900
    assert dispatch.send(str(operation.pk)) == "gone"
    assert reconciler.end_leases(after_the_lease(), batch_max=100) == 0
    word = reconciler.look_up(operation.pk)
    assert word == ("Settle" if executed else "LookUpAgain")
    assert state_of(operation) == (states.SUCCEEDED if executed else states.UNKNOWN)
    assert len(creates(provider)) == reached
    assert len(refunds(provider, operation)) == executed


def test_rule_14_a_sender_that_is_killed_before_its_claim_has_done_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    before_the_claim = "refunds.ledger.claim:claim"
    sender = troupe.actor("send", [operation], stop_at=before_the_claim)
    sender.go()
    sender.reaches(before_the_claim)
    sender.kill()
    assert state_of(operation) == states.AUTHORIZED
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(creates(provider)) == 1


def test_rule_14_a_task_delivered_twice_sends_once(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    provider.fault("hold")
    sender = troupe.actor("send", [operation])
    sender.go()
    provider.wait_for_hold(60)
    again = troupe.actor("send", [operation])
    assert again.finish() == {str(operation.pk): "gone"}
    provider.release()
    assert sender.result() == {str(operation.pk): "confirmed"}
    assert len(creates(provider)) == 1


def killed_on_the_way(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, count: int
) -> list[Operation]:
    """Refunds whose senders died between the claim and the first byte."""
    operations = several(provider, cast, count)
    for operation in operations:
        sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL)
        sender.go()
        sender.reaches(BEFORE_THE_CALL)
        sender.kill()
    return operations


def test_rule_14_a_lease_ends_although_somebody_sleeps_on_another_operation(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    first, second = killed_on_the_way(provider, cast, troupe, 2)
    with psycopg.connect(database_url()) as sleeper:
        sleeper.execute("SELECT 1 FROM operation WHERE id = %s FOR UPDATE", [first.pk])
        assert reconciler.end_leases(after_the_lease(), batch_max=100) == 1
        assert state_of(second) == states.UNKNOWN
        assert state_of(first) == states.SUBMITTING
        sleeper.rollback()
    lease_ends(first)


def test_rule_14_a_lease_ends_although_its_account_was_taken_out_of_the_house(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = killed_on_the_way(provider, cast, troupe, 2)
    monkeypatch.delitem(registry.accounts(), "plain-main")
    assert reconciler.end_leases(after_the_lease(), batch_max=100) == 2
    assert {state_of(each) for each in operations} == {states.UNKNOWN}


def test_rule_33_only_the_sender_itself_says_not_sent(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """No first byte is stored, the lease is over, the provider shows nothing: still unknown."""
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL)
    sender.go()
    sender.reaches(BEFORE_THE_CALL)
    sender.kill()
    lease_ends(operation)
    for _ in range(3):
        reconciler.look_up(operation.pk)
    attempt = operation.attempts.get()
    assert (attempt.first_byte_at, attempt.outcome) == (None, None)
    assert state_of(operation) == states.UNKNOWN
    assert dispatch.send(str(operation.pk)) == "gone"


def test_rule_33_a_sender_says_not_sent_of_its_own_attempt_whenever_it_wakes(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """By its own deadline, long after its lease; it moves nothing, and somebody looks at once."""
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL, limits=SHORT)
    sender.go()
    sender.reaches(BEFORE_THE_CALL)
    lease_ends(operation)
    past_the_send_deadline(operation)
    assert sender.finish() == {str(operation.pk): "late"}
    assert creates(provider) == []
    assert outcomes(operation) == ["not_sent"]
    assert state_of(operation) == states.UNKNOWN
    assert operation.due_at is not None
    assert operation.due_at <= timezone.now()
