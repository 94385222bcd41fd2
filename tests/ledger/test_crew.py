"""One wake-up and many refunds: whoever hears it sends until nothing is ready any more."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection

from refunds import prepared
from refunds.crew import Crew
from refunds.domain import states
from refunds.models import Operation, SendingStop
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import held_equals_reservations, poll, state_of
from tests.ledger.stage import creates, ready, refunds, several
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_wake_up_sends_whatever_is_ready(provider: SandboxProcess, cast: Cast) -> None:
    operations = several(provider, cast, 4)
    assert Crew(spacing_seconds=0).work() == 4
    assert [len(refunds(provider, each)) for each in operations] == [1, 1, 1, 1]
    assert held_equals_reservations()


def test_two_refunds_of_one_order_are_sent_by_one_wake_up_one_after_the_other(
    provider: SandboxProcess, cast: Cast
) -> None:
    first = ready(provider, cast)
    second = build.authorized(cast.foxtrot, cast.cleo, amount_minor=1200)
    # The first one's send moves the order on; the second's approval was given with it on the page.
    assert Crew(size=2, spacing_seconds=0).work() == 2
    assert [len(creates(provider, each)) for each in (first, second)] == [1, 1]


def test_more_hands_are_called_for_what_is_more_than_one_can_hold(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 4)
    provider.fault("hold", times=3)
    crew = troupe.actor("work_in_threes", [operations[0]])
    crew.go()
    poll(lambda: len(creates(provider)) == 3, "three calls at once")
    assert sorted(state_of(each) for each in operations) == [
        states.AUTHORIZED,
        *[states.SUBMITTING] * 3,
    ]
    provider.release()
    assert crew.result()
    assert [len(refunds(provider, each)) for each in operations] == [1] * 4


def test_two_processes_that_are_woken_at_once_send_each_refund_once(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 6)
    crews = [troupe.actor("work", [operations[0]]) for _ in range(3)]
    for each in crews:
        each.go()
    tried = [int(result) for each in crews for result in each.result().values()]
    assert sum(tried) >= 6
    assert len(creates(provider)) == 6
    assert [len(refunds(provider, each)) for each in operations] == [1] * 6


def test_what_is_stored_just_after_the_last_look_needs_no_bell_of_its_own(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    SendingStop.objects.create(reason="a test", stopped_by="ben")
    crew = Crew(spacing_seconds=3)

    def work() -> int:
        try:
            return crew.work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        tried = pool.submit(work)
        poll(lambda: crew.waits, "nobody waited for what may follow")
        SendingStop.objects.update(ended_at=operation.created_at, ended_by="cleo")
        assert tried.result() == 1
    assert len(refunds(provider, operation)) == 1


def test_a_crew_that_is_asked_to_end_takes_nothing_more(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    crew = Crew(spacing_seconds=0)
    crew.stop()
    assert crew.work() == 0
    assert creates(provider) == []
    assert state_of(operation) == states.AUTHORIZED


def test_a_failed_send_ends_the_shift_and_leaves_the_rest_ready(
    provider: SandboxProcess, cast: Cast
) -> None:
    """What went wrong is raised, and told by whoever runs the task; the next wake-up goes on."""
    operations = several(provider, cast, 2)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE attempt ADD CONSTRAINT never CHECK (no < 1) NOT VALID")
    try:
        with pytest.raises(IntegrityError):
            Crew(spacing_seconds=0).work()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE attempt DROP CONSTRAINT never")
    assert creates(provider) == []
    assert Crew(spacing_seconds=0).work() == 2
    assert [len(refunds(provider, each)) for each in operations] == [1, 1]


def test_a_crew_waits_for_every_hand_also_where_others_have_failed(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """Whoever ends the process waits for the task: a call that it left behind would be cut off."""
    held, *others = several(provider, cast, 8)
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE attempt ADD CONSTRAINT never CHECK (operation_id = '{held.pk}') NOT VALID"
        )
    provider.fault("hold")
    release = threading.Timer(3, provider.release)
    crew = troupe.actor("work_in_eights", [others[0]])
    release.start()
    try:
        assert set(crew.finish().values()) == {"IntegrityError"}
        assert state_of(held) == states.SUCCEEDED
    finally:
        release.join()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE attempt DROP CONSTRAINT never")


def test_what_only_the_commit_refuses_is_refused_by_a_prepared_statement_too(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The guards that wait for the commit speak after the statement's own answer."""
    operation = ready(provider, cast)
    with pytest.raises(IntegrityError, match="operation_head_is_last_event"):
        prepared.one(
            "UPDATE operation SET version = version + 1 WHERE id = %(id)s::uuid RETURNING version",
            {"id": operation.pk},
        )
    assert Operation.objects.get().version == operation.version
