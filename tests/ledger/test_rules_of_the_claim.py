"""Rules 4 to 6: one statement decides, on what the approver saw, about one body under one key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch, policies, withdrawal
from refunds.domain import states
from refunds.domain.errors import ClaimRefused, Refusal
from refunds.domain.fingerprint import provider_key
from refunds.domain.limits import Limits
from refunds.ledger import claim, sending
from refunds.models import Agent, Operation, Order, OrderMove, Payment, Reservation
from refunds.proposal import Caller
from refunds.providers.plain_contracts import CONTRACTS
from tests import build
from tests.cast import ROLES as CAST_ROLES
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import approved_by_hand, earlier_attempt, everything, history, state_of
from tests.ledger.stage import (
    creates,
    make_due,
    ready,
    refunds,
    run,
    several,
    somebody_waits_for_a_lock,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def claimed(operation: Operation, *, needs_a_person: bool = True) -> bool:
    """Whether the claim statement takes the operation; a refused one has changed nothing."""
    before = everything()
    try:
        claim(
            operation.pk,
            worker="test",
            identity={},
            contract=CONTRACTS["plain-main"],
            limits=Limits(),
            needs_a_person=needs_a_person,
        )
    except ClaimRefused:
        assert everything() == before
        return False
    return True


def order_version() -> int:
    return Order.objects.get().version


def authorized(cast: Cast) -> Operation:
    build.order()
    return build.authorized(cast.echo, cast.ben)


def cleared(cast: Cast, settings: Any, tmp_path: Path) -> Operation:
    """What policy alone approved: nobody has to sign."""
    policy = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(
        policy.replace("tier0_max_minor = 0 ", "tier0_max_minor = 100000 ")
    )
    policies.current.cache_clear()
    build.order()
    return build.proposed(cast.echo)


Break = Callable[[Operation, Cast], object]
CONDITIONS: dict[str, Break] = {
    "the operation is halted": lambda o, c: run("UPDATE operation SET halted = true"),
    "its time has not come": lambda o, c: run(
        "UPDATE operation SET not_before = clock_timestamp() + interval '1 minute'"
    ),
    "its authority has expired": lambda o, c: run(
        "UPDATE operation SET expires_at = clock_timestamp()"
    ),
    "the order moved": lambda o, c: build.external_refund("4821", 1),
    "the order is frozen": lambda o, c: run("UPDATE orders SET frozen = true"),
    "the payment is disputed": lambda o, c: run("UPDATE payment SET state = 'disputed'"),
    "the payment is halted": lambda o, c: run("UPDATE payment SET halted = true"),
    "the balance is too small": lambda o, c: run("UPDATE payment SET captured_minor = 7899"),
    "the rest is held": lambda o, c: run("UPDATE payment SET held_minor = 5001"),
    "the rest is refunded": lambda o, c: run("UPDATE payment SET refunded_minor = 5001"),
    "the account is paused": lambda o, c: sending.pause(
        "plain-main", kind="person", reason="test", by="olga"
    ),
    "everything is stopped": lambda o, c: sending.stop_everything(by="ada", reason="test"),
    "the database is in quarantine": lambda o, c: sending.begin_quarantine("test", {}),
    "the agent is not active": lambda o, c: Agent.objects.update(active=False),
    "the agent's owner is not active": lambda o, c: run(
        "UPDATE person SET is_active = false WHERE username = 'ada'"
    ),
    "the approver is not active": lambda o, c: run(
        "UPDATE person SET is_active = false WHERE username = 'ben'"
    ),
    "the approver has another role now": lambda o, c: c.ben.groups.set(c.omar.groups.all()),
    "the approver has no role any more": lambda o, c: c.ben.groups.clear(),
    "an attempt is ambiguous": lambda o, c: earlier_attempt(o, "unanswered", timezone.now()),
    "an attempt was refused": lambda o, c: earlier_attempt(o, "refused", timezone.now()),
    "the round is another": lambda o, c: run("UPDATE operation SET round = round + 1"),
}
_OF_APPROVALS = {name for name in CONDITIONS if "approver" in name} | {"the round is another"}


def test_rule_04_with_every_condition_the_claim_reserves_and_records(cast: Cast) -> None:
    operation = authorized(cast)
    assert claimed(operation)
    operation.refresh_from_db()
    assert (operation.state, operation.attempt_count) == (states.SUBMITTING, 1)
    assert operation.send_version == order_version() == 2
    assert OrderMove.objects.get(version=2).cause == "reserved"
    reservation = Reservation.objects.get()
    assert (reservation.state, reservation.amount_minor) == ("held", 7900)
    assert Payment.objects.get().held_minor == 7900
    assert history(operation)[-1] == "submission_started"
    assert not claimed(operation)


def test_rule_04_what_was_withdrawn_is_claimed_by_nobody(cast: Cast) -> None:
    operation = authorized(cast)
    withdrawal.withdraw(operation.pk, by=Caller(person=cast.cleo))
    assert not claimed(operation)


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_rule_04_every_condition_is_part_of_the_claim(cast: Cast, condition: str) -> None:
    operation = authorized(cast)
    CONDITIONS[condition](operation, cast)
    assert not claimed(operation)
    assert state_of(operation) == states.AUTHORIZED


@pytest.mark.parametrize("condition", sorted(CONDITIONS.keys() - _OF_APPROVALS))
def test_rule_04_every_condition_is_part_of_the_claim_of_what_policy_approved(
    cast: Cast, settings: Any, tmp_path: Path, condition: str
) -> None:
    operation = cleared(cast, settings, tmp_path)
    CONDITIONS[condition](operation, cast)
    assert not claimed(operation, needs_a_person=False)
    assert state_of(operation) == states.AUTHORIZED


def test_rule_04_what_policy_approved_is_claimed_without_reading_approvals(
    cast: Cast, settings: Any, tmp_path: Path
) -> None:
    operation = cleared(cast, settings, tmp_path)
    assert claimed(operation, needs_a_person=False)
    assert history(operation)[-1] == "submission_started"
    assert Payment.objects.get().held_minor == 7900


def test_rule_04_policys_own_claim_takes_nothing_that_a_person_has_to_sign(cast: Cast) -> None:
    operation = authorized(cast)
    assert not claimed(operation, needs_a_person=False)
    assert claimed(operation)


def test_rule_04_an_expired_approval_does_not_count(
    cast: Cast, settings: Any, tmp_path: Path
) -> None:
    policy = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(
        policy.replace("approval_valid_seconds = 86400", "approval_valid_seconds = 0")
    )
    policies.current.cache_clear()
    operation = authorized(cast)
    run("UPDATE operation SET expires_at = clock_timestamp() + interval '1 day'")
    assert not claimed(operation)


def test_rule_04_a_proposer_who_left_the_house_proposes_nothing(cast: Cast) -> None:
    build.order()
    operation = build.authorized(cast.omar, cast.ben)
    run("UPDATE person SET is_active = false WHERE username = 'omar'")
    assert not claimed(operation)


@pytest.mark.parametrize(("second", "enough"), [("fay", True), ("cleo", False)])
def test_rule_04_two_of_one_role_are_not_a_lead_and_finance(
    cast: Cast, second: str, enough: bool
) -> None:
    """No verb authorises on two leads where finance is needed; the claim counts for itself."""
    build.order(captured_minor=900_000)
    operation = build.proposed(cast.omar, amount_minor=500_000)
    approved_by_hand(operation, (cast.ben, "lead"), (getattr(cast, second), CAST_ROLES[second][0]))
    assert claimed(operation) is enough


def test_rule_04_the_money_is_taken_once_where_two_want_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    first = ready(provider, cast, amount_minor=4000)
    second = build.authorized(cast.omar, cast.ben, amount_minor=4100)
    run("UPDATE payment SET captured_minor = 8000")
    assert dispatch.send(str(first.pk)) == "confirmed"
    # The first was on the page of the second: only the money is left to say no.
    assert dispatch.send(str(second.pk)) == "lapsed"
    second.refresh_from_db()
    assert second.stale_cause == "balance"
    assert (len(creates(provider)), Payment.objects.get().refunded_minor) == (1, 4000)


def test_rule_04_a_claim_that_waited_decides_on_what_it_finds_then(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """Checked before and written after would send on a picture that is gone."""
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation])
    with transaction.atomic():
        build.external_refund("4821", 3000)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(operation.pk): "lapsed"}
    assert creates(provider) == []
    operation.refresh_from_db()
    assert (operation.state, operation.stale_cause) == (states.AWAITING_APPROVAL, "order_changed")


def test_rule_04_two_processes_that_claim_the_same_refunds_send_each_once(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 12)
    senders = [troupe.actor("send", operations) for _ in range(2)]
    for sender in senders:
        sender.go()
    said = [sender.result() for sender in senders]
    for operation in operations:
        words = sorted(each[str(operation.pk)] for each in said)
        assert words[0] == "confirmed"
        assert words[1] in ("gone", "waiting")
        assert state_of(operation) == states.SUCCEEDED
        assert len(creates(provider, operation)) == len(refunds(provider, operation)) == 1
    assert len(creates(provider)) == 12


# Rule 5: the approval is for what was on the screen


def sibling_sent(operation: Operation, cast: Cast) -> None:
    sibling = build.authorized(cast.omar, cast.ben, amount_minor=1000)
    assert dispatch.send(str(sibling.pk)) == "confirmed"


def sibling_released(operation: Operation, cast: Cast) -> None:
    """A sibling that held its money before gives it back after the approval."""
    sibling = Operation.objects.get(amount_minor=1000)
    withdrawal.withdraw(sibling.pk, by=Caller(person=cast.omar))


MOVED: dict[str, tuple[str, Break]] = {
    "an outside refund is learned": (
        "external",
        lambda o, c: build.external_refund("4821", 3000),
    ),
    "the captured amount is fed": ("feed", lambda o, c: build.order(captured_minor=12901)),
    "the customer is fed": ("feed", lambda o, c: build.order(customer_ref="cus_another")),
    "the return state is fed": ("feed", lambda o, c: build.order(return_state="received")),
    "a dispute is fed": ("feed", lambda o, c: build.order(state="disputed")),
    "another refund takes its money": ("reserved", sibling_sent),
    "another refund gives its money back": ("released", sibling_released),
}


@pytest.mark.parametrize("move", sorted(MOVED))
def test_rule_05_every_change_of_the_orders_money_ends_the_approval(
    provider: SandboxProcess, cast: Cast, move: str
) -> None:
    cause, happens = MOVED[move]
    provider.payment()
    build.order()
    if cause == "released":
        # Turned away: it keeps its reservation while it waits for the next try.
        sibling = build.authorized(cast.omar, cast.ben, amount_minor=1000)
        provider.fault("rate_429")
        assert dispatch.send(str(sibling.pk)) == "not_executed"
    operation = build.authorized(cast.omar, cast.ben, amount_minor=7900)
    seen = order_version()
    already = len(creates(provider))
    happens(operation, cast)
    assert order_version() == seen + 1
    assert OrderMove.objects.get(version=seen + 1).cause == cause
    sent_meanwhile = 1 if cause == "reserved" else 0
    assert dispatch.send(str(operation.pk)) == "lapsed"
    assert len(creates(provider)) == already + sent_meanwhile
    operation.refresh_from_db()
    assert (operation.state, operation.round) == (states.AWAITING_APPROVAL, 2)
    assert operation.stale_cause == "order_changed"


def test_rule_05_held_becoming_refunded_leaves_what_others_saw_as_it_is(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    version = order_version()
    assert reconciler.look_up(operation.pk) == "Settle"
    assert order_version() == version


@pytest.mark.parametrize("amount_minor", [3, 790_000])
def test_rule_05_what_was_approved_is_what_is_paid(
    provider: SandboxProcess, cast: Cast, amount_minor: int
) -> None:
    operation = ready(provider, cast)
    with pytest.raises(IntegrityError, match="material facts are immutable"):
        run("UPDATE operation SET amount_minor = %s", amount_minor)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    [refund] = refunds(provider, operation)
    assert refund["amount_minor"] == 7900


def test_rule_05_another_fingerprint_than_the_one_on_the_screen_is_not_approved(
    cast: Cast,
) -> None:
    build.order()
    one, other = build.proposed(cast.echo, amount_minor=300), build.proposed(cast.echo)
    with pytest.raises(Refusal) as refused:
        approvals.approve(other.pk, cast.ben, build.shown(one))
    assert refused.value.code == "fingerprint_differs"
    assert state_of(other) == states.AWAITING_APPROVAL


# Rule 6: one key and one body, for ever


@pytest.mark.parametrize("account", ["plain-main", "plain-forever", "stripe-main"])
def test_rule_06_every_attempt_has_the_same_key_and_the_same_bytes(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    operation = ready(provider, cast, account=account)
    body = bytes(operation.body)
    for _ in range(3):
        provider.fault("rate_429", account=account)
        assert dispatch.send(str(operation.pk)) == "not_executed"
        make_due(operation)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    calls = creates(provider)
    assert len(calls) == 4
    assert {call["key"] for call in calls} == {operation.provider_key}
    assert {call["body_sha256"] for call in calls} == {hashlib.sha256(body).hexdigest()}
    operation.refresh_from_db()
    assert bytes(operation.body) == body
    assert operation.provider_key == provider_key(operation.pk)
    assert len(refunds(provider, operation)) == 1


def test_rule_06_a_new_key_needs_a_new_operation_and_a_new_approval(
    provider: SandboxProcess, cast: Cast
) -> None:
    first = ready(provider, cast, amount_minor=900)
    assert dispatch.send(str(first.pk)) == "confirmed"
    second = build.proposed(cast.omar, amount_minor=900, separate_from=first.pk)
    assert second.provider_key != first.provider_key
    assert dispatch.send(str(second.pk)) == "gone"
    assert len(creates(provider)) == 1
