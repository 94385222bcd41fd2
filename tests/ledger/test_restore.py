"""A backup is restored under load: nothing is sent twice, and everything is known again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest
from django.db import Error, connection
from django.utils import timezone

from reconciliation import quarantine
from reconciliation.models import Case
from refunds import approvals, dispatch, witness
from refunds.domain import states
from refunds.domain.errors import CommitUnknown, Refusal
from refunds.models import Operation, Payment, Quarantine
from tests import build
from tests.bugs.history import let_pass
from tests.cast import Cast
from tests.ledger import restored
from tests.ledger.rows import held_equals_reservations, poll
from tests.outside.steps import look_up_due, tick
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
ACCOUNTS = ("plain-nokeys", "plain-main")
SENT_BEFORE, SENT_AFTER = 2, 4  # of each account, the backup
# By then all that was sent before a quarantine has landed and is shown.
LANDED_SECONDS = 60


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    restored.forget()


def _approved(provider: SandboxProcess, cast: Cast, account: str, number: int) -> Operation:
    ref = f"{account}-{number}"
    provider.payment(f"pi_{ref}", account=account)
    build.order(ref, account=account)
    return build.authorized(cast.fay, cast.ben, order_ref=ref, amount_minor=100 + number)


class _Senders:
    """Threads that try to send everything, over and over, whatever happens to the database."""

    def __init__(self, ids: list[UUID], count: int = 2) -> None:
        self.ids, self.over, self.rounds = ids, threading.Event(), Counter[int]()
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(count)]
        for each in self.threads:
            each.start()

    def _work(self, number: int) -> None:
        while not self.over.is_set():
            for pk in self.ids[number:] + self.ids[:number]:
                try:
                    dispatch.send(str(pk))
                except (Error, CommitUnknown):
                    connection.close()
            self.rounds[number] += 1
        connection.close()

    def go_round(self) -> None:
        """Wait until each has tried everything once more from here."""
        now = dict(self.rounds)
        poll(
            lambda: all(self.rounds[n] > now.get(n, 0) + 1 for n in range(len(self.threads))),
            "every sender to try everything again",
        )

    def end(self) -> None:
        self.over.set()
        for each in self.threads:
            each.join()


def _per_marker(provider: SandboxProcess) -> Counter[str]:
    return Counter(refund["aftersend_operation"] for refund in provider.refunds())


def test_a_backup_ten_minutes_old_is_restored_under_load_and_nothing_is_paid_twice(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Half of it has no keys at the provider, and the keys of the others are forgotten by then."""
    operations = [_approved(provider, cast, name, n) for name in ACCOUNTS for n in range(8)]
    ids = [each.pk for each in operations]
    for name in ACCOUNTS:
        for each in [op for op in operations if op.provider_account == name][:SENT_BEFORE]:
            assert dispatch.send(str(each.pk)) == "confirmed"
    build.order("late", account="plain-nokeys")
    provider.payment("pi_late", account="plain-nokeys")
    waiting = build.proposed(cast.fay, "late", 700)
    restored.back_up()

    provider.advance(601)
    approvals.approve(waiting.pk, cast.ben, build.shown(waiting))
    assert dispatch.send(str(waiting.pk)) == "confirmed"
    forgotten = _approved(provider, cast, "plain-nokeys", 99)
    assert dispatch.send(str(forgotten.pk)) == "confirmed"
    for name in ACCOUNTS:
        for each in [op for op in operations if op.provider_account == name][:SENT_AFTER]:
            dispatch.send(str(each.pk))
    sent = len(provider.refunds())
    provider.fault("delay", account="plain-nokeys", times=None, seconds=0.2)
    senders = _Senders(ids[SENT_AFTER:8] + ids[8 + SENT_AFTER :])
    try:
        poll(lambda: len(provider.refunds()) >= sent + 2, "sends under load")
        restored.restore()
        senders.ids = ids
        senders.go_round()
    finally:
        senders.end()
    provider.clear_faults()

    assert set(_per_marker(provider).values()) == {1}
    before = len(provider.refunds())
    begun = Quarantine.objects.get()
    assert "does not know a send that it permitted" in begun.reason
    with pytest.raises(Refusal) as refused:
        quarantine.ask(by=cast.ines, by_hand=frozenset())
    assert refused.value.code == "proof_missing"
    assert "plain-nokeys since" in refused.value.detail
    assert "plain-main since" in refused.value.detail

    let_pass(LANDED_SECONDS)
    begun.refresh_from_db()
    quarantine.tend(timezone.now())
    tick()
    for _ in range(3):
        Operation.objects.filter(state__in=states.UNCERTAIN).update(due_at=timezone.now())
        look_up_due()
    assert quarantine.missing(begun) == []
    assert len(provider.refunds()) == before
    quarantine.ask(by=cast.ines, by_hand=frozenset())
    with pytest.raises(Refusal, match="two different people"):
        quarantine.lift(by=cast.olga)
    quarantine.lift(by=cast.adam)
    assert witness.check()

    for pk in [*ids, waiting.pk]:
        dispatch.send(str(pk))
    assert _per_marker(provider) == Counter(map(str, [*ids, waiting.pk, forgotten.pk]))
    ended = Operation.objects.filter(pk__in=[*ids, waiting.pk])
    assert set(ended.values_list("state", flat=True)) == {states.SUCCEEDED}
    assert held_equals_reservations()
    # The refund whose operation is gone is counted where it was made, and a person is asked.
    unplaced = Case.objects.filter(payment__ref="pi_plain-nokeys-99").exists()
    assert unplaced or not Payment.objects.filter(ref="pi_plain-nokeys-99").exists()


def test_a_list_read_before_the_last_lost_send_has_landed_lifts_nothing(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The account keeps no keys, so a second send would be a second refund."""
    operation = _approved(provider, cast, "plain-nokeys", 1)
    restored.back_up()
    provider.configure("plain-nokeys", flight_seconds_max=LANDED_SECONDS)
    provider.fault("land_late", account="plain-nokeys", seconds=LANDED_SECONDS / 2)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    restored.restore()
    assert dispatch.send(str(operation.pk)) == "waiting"
    begun = Quarantine.objects.get()
    quarantine.tend(timezone.now())
    tick()

    assert provider.refunds() == []
    [unread] = quarantine.missing(begun)
    assert "UTC, when the last send has landed" in unread.says
    with pytest.raises(Refusal, match="Not lifted"):
        quarantine.ask(by=cast.ines, by_hand=frozenset())

    provider.advance(LANDED_SECONDS / 2)
    let_pass(LANDED_SECONDS)
    quarantine.tend(timezone.now())
    tick()
    Operation.objects.update(due_at=timezone.now())
    look_up_due()
    quarantine.ask(by=cast.ines, by_hand=frozenset())
    quarantine.lift(by=cast.adam)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(provider.refunds()) == 1
