"""The same refund once more under its own key: when that is safe, and when nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from reconciliation.models import Case
from refunds import accepting
from refunds.domain import states
from refunds.domain.contract import UNKNOWN_FACT, ProviderContract
from refunds.ledger import held_to, sending
from refunds.ledger.claim import attempt_of
from refunds.ledger.resend import RESUBMIT, terms
from refunds.models import Attempt, Evidence, KnownContract, Operation, Payment
from refunds.providers import registry
from refunds.providers.plain_contracts import CONTRACTS
from tests import build
from tests.cast import Cast
from tests.clocks import time_passes
from tests.flows.finding import accepted, looked_up, sent_again, sent_with
from tests.ledger.rows import earlier_attempt, history, outcomes
from tests.ledger.stage import creates, run
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_never_arrived_is_sent_again_under_the_same_key_and_paid_once(
    provider: SandboxProcess, cast: Cast, rung: list[tuple[str, str]]
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")
    assert looked_up(operation) == ["LookUpAgain"]
    assert sent_again(operation) == "waiting"  # one empty lookup is not enough
    assert looked_up(operation) == ["Resend"]
    assert ("refunds.tasks.resend", str(operation.pk)) in rung
    assert len(creates(provider)) == 1  # the reconciler itself sends nothing
    assert sent_again(operation) == "confirmed"
    first, second = creates(provider)
    assert (first["key"], first["body_sha256"]) == (second["key"], second["body_sha256"])
    assert first["key"] == operation.provider_key
    assert [each["amount_minor"] for each in provider.refunds()] == [4000]
    payment = Payment.objects.get()
    assert (payment.refunded_minor, payment.held_minor) == (4000, 0)
    assert history(operation)[-3:] == ["unanswered", "resubmitted", "confirmed"]
    assert outcomes(operation) == ["unanswered", "confirmed"]


def test_what_was_paid_unseen_where_nothing_can_be_looked_up_is_told_by_its_key(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit", "plain-stored500")
    assert looked_up(operation, 2) == ["LookUpAgain", "Resend"]
    assert sent_again(operation) == "confirmed"
    assert len(provider.refunds("plain-stored500")) == 1


def test_an_error_that_the_provider_keeps_ends_the_sending_and_not_the_reading(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "stored_500", "plain-stored500")
    assert looked_up(operation, 2)[-1] == "Resend"
    assert sent_again(operation) == "unanswered"
    assert "Resend" not in looked_up(operation, 3)
    assert sent_again(operation) == "waiting"
    assert len(creates(provider)) == 2
    assert operation.state == states.UNKNOWN
    assert operation.due_at is not None


def test_at_most_five_attempts_are_made(provider: SandboxProcess, cast: Cast) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-forever", times=None)
    for _ in range(4):
        assert looked_up(operation, 2)[-1] == "Resend"
        assert sent_again(operation) == "unanswered"
    assert looked_up(operation, 2) == ["LookUpAgain", "LookUpAgain"]
    assert sent_again(operation) == "waiting"
    assert len(creates(provider)) == 5


@pytest.mark.parametrize(
    "account", ["plain-nokeys", "plain-weak", "plain-unbounded", "stripe-main"]
)
def test_without_a_key_that_surely_lives_long_enough_nothing_is_sent_again(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", account)
    assert looked_up(operation, 2) == ["LookUpAgain", "LookUpAgain"]
    assert sent_again(operation) == "waiting"
    assert len(creates(provider)) == 1


def test_what_two_people_accepted_lets_it_be_sent_again_and_its_event_names_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    fact = accepted(cast, "stripe-main", "flight_max", 3600, "resend")
    operation = sent_with(provider, cast, "drop_before_commit", "stripe-main")
    assert looked_up(operation, 2)[-1] == "Resend"
    assert sent_again(operation) == "confirmed"
    event = operation.events.get(event="resubmitted")
    assert event.detail == {"accepted": [fact.pk]}
    assert event.evidence_id == Evidence.objects.get(operation=operation, lookup_no=2).pk


# The statement compares everything itself: whoever rings has decided nothing


def says_yes(operation: Operation) -> bool:
    """Whether the statement permits one more send, within a transaction that is undone."""
    account = registry.account(operation.provider_account)
    fresh = Operation.objects.get(pk=operation.pk)
    attempt = attempt_of("test", account.identity(), account.contract, settings.LIMITS)
    held = held_to(fresh, account.contract)
    terms_of = terms(account.name, held, fresh.attempt_count, settings.LIMITS)
    with connection.cursor() as cursor:
        cursor.execute(RESUBMIT, attempt | terms_of | {"id": operation.pk})
        return cursor.fetchone() is not None


def _withdrawn(operation: Operation, cast: Cast) -> None:
    [fact] = accepting.listed()
    accepting.withdraw(fact.pk, by=cast.ines, because="The provider says otherwise.")


def _for_absence_only(operation: Operation, cast: Cast) -> None:
    _withdrawn(operation, cast)
    accepted(cast, "plain-unbounded", "flight_max", 60, "absence")


def _by_one_person(operation: Operation, cast: Cast) -> None:
    _withdrawn(operation, cast)
    figure = ("plain-unbounded", "flight_max", 60, "resend")
    accepting.propose(*figure, reason="measured over a month", days=1, by=cast.ines)


def _earlier(outcome: str, times: int = 1) -> Callable[[Operation, Cast], None]:
    def act(operation: Operation, cast: Cast) -> None:
        for _ in range(times):
            earlier_attempt(operation, outcome, timezone.now() - timedelta(seconds=5))

    return act


def _first_long_ago(operation: Operation, cast: Cast) -> None:
    _earlier("unanswered")(operation, cast)
    run("UPDATE attempt SET recorded_at = recorded_at - interval '150 s' WHERE no = 1")
    run("""UPDATE evidence SET facts = facts || '{"verdict": "cannot_tell"}' WHERE lookup_no = 2""")


def _under(contract: ProviderContract | None) -> Callable[[Operation, Cast], None]:
    """Its first attempt was made under another contract, which was kept or was not."""

    def act(operation: Operation, cast: Cast) -> None:
        digest = contract.hash() if contract else b"x" * 32
        if contract is not None:
            KnownContract.objects.create(hash=digest, name="older", facts=contract.facts())
        Attempt.objects.update(contract_hash=digest)

    return act


def _sql(text: str) -> Callable[[Operation, Cast], None]:
    return lambda operation, cast: run(text)


AGAINST: dict[str, Callable[[Operation, Cast], Any]] = {
    "a case halts it": _sql("UPDATE operation SET halted = true"),
    "a case halts its payment": _sql("UPDATE payment SET halted = true"),
    "the payment is disputed": _sql("UPDATE payment SET state = 'disputed'"),
    "the account is paused": lambda operation, cast: sending.pause(
        operation.provider_account, kind="person", reason="looking into it", by="ines"
    ),
    "everything is stopped": lambda operation, cast: sending.stop_everything(by="x", reason="y"),
    "quarantine": lambda operation, cast: sending.begin_quarantine("a restore", {}),
    "the order is frozen": _sql("UPDATE orders SET frozen = true"),
    "the order moved": lambda operation, cast: build.external_refund("4821", 500),
    "the approval ran out": _sql("UPDATE approval SET expires_at = now()"),
    "the proposal ran out": _sql("UPDATE operation SET expires_at = now()"),
    "the approver lost the role": _sql("DELETE FROM person_groups"),
    "its proposer is gone": _sql("UPDATE person SET is_active = false WHERE username = 'omar'"),
    "it is not unknown": _sql("UPDATE operation SET state = 'pending'"),
    "a newer lookup has begun": _sql("UPDATE operation SET lookup_started = 3"),
    "the lookup is old": _sql(
        "UPDATE attempt SET recorded_at = recorded_at - interval '61 s';"
        "UPDATE evidence SET started_at = started_at - interval '61 s'"
    ),
    "only one lookup came after the attempt": _sql(
        "UPDATE evidence SET started_at = started_at - interval '1 h' WHERE lookup_no = 1"
    ),
    "its last lookup found it": _sql(
        'UPDATE evidence SET facts = facts || \'{"verdict": "match"}\' WHERE lookup_no = 2'
    ),
    "the provider keeps an error for it": _sql(
        'UPDATE evidence SET facts = facts || \'{"status": 500, "headers":'
        ' {"idempotent-replayed": "true"}}\' WHERE kind = \'answer\''
    ),
    "the provider keeps a refusal at the door for it": _sql(
        'UPDATE evidence SET facts = facts || \'{"status": 429, "headers":'
        ' {"idempotent-replayed": "true"}}\' WHERE kind = \'answer\''
    ),
    "it holds nothing": _sql("UPDATE reservation SET state = 'released'"),
    "five attempts": _earlier("unanswered", 4),
    "an attempt was refused": _earlier("refused"),
    "an attempt was confirmed": _earlier("confirmed"),
    "its sender may still sleep": _sql("UPDATE attempt SET stop_proof_at = NULL"),
    "it was sent to another address": _sql(
        'UPDATE attempt SET account_identity = account_identity || \'{"base_url": "elsewhere"}\''
    ),
    "a quarter of the window is over and the last lookup could not tell": _sql(
        "UPDATE attempt SET recorded_at = recorded_at - interval '150 s';"
        'UPDATE evidence SET facts = facts || \'{"verdict": "cannot_tell"}\' WHERE lookup_no = 2'
    ),
    "a quarter of the window is over since the first of two attempts": _first_long_ago,
    "what was accepted is withdrawn": _withdrawn,
    "what was accepted ran out": _sql("UPDATE accepted_fact SET valid_until = now()"),
    "it was accepted for absence": _for_absence_only,
    "one person accepted it": _by_one_person,
    "its first contract promised less": _under(CONTRACTS["plain-nokeys"]),
    "nobody knows its first contract": _under(None),
}
# What another attempt, or another version of the contract, does not take away.
NOT_AGAINST: dict[str, Callable[[Operation, Cast], Any]] = {
    "nothing": _sql("SELECT 1"),
    "three attempts more": _earlier("unanswered", 3),
    "an earlier attempt was turned away": _earlier("turned_away"),
    "its first contract promised more": _under(CONTRACTS["plain-forever"]),
    "a first error that nobody keeps": _sql(
        "UPDATE evidence SET facts = facts || '{\"status\": 500}' WHERE kind = 'answer'"
    ),
    "just within the quarter, and the last lookup could not tell": _sql(
        "UPDATE attempt SET recorded_at = recorded_at - interval '130 s';"
        'UPDATE evidence SET facts = facts || \'{"verdict": "cannot_tell"}\' WHERE lookup_no = 2'
    ),
    "long after the window, by a complete fresh lookup": _sql(
        "UPDATE attempt SET recorded_at = recorded_at - interval '1 day'"
    ),
}


def test_every_condition_is_part_of_the_statement_that_sends_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    accepted(cast, "plain-unbounded", "flight_max", 60, "resend")
    operation = sent_with(provider, cast, "drop_before_commit", "plain-unbounded")
    assert looked_up(operation, 2)[-1] == "Resend"
    said = {}
    for name, act in (AGAINST | NOT_AGAINST).items():
        with transaction.atomic():
            run("SET LOCAL session_replication_role = replica")
            act(operation, cast)
            said[name] = says_yes(operation)
            transaction.set_rollback(True)
    assert said == dict.fromkeys(AGAINST, False) | dict.fromkeys(NOT_AGAINST, True)
    assert len(creates(provider)) == 1


def test_where_a_sender_may_sleep_for_ever_a_stated_flight_bounds_no_second_send(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The copy of that sender would land when the key is long forgotten."""
    operation = sent_with(provider, cast, "drop_before_commit")
    assert looked_up(operation, 2)[-1] == "Resend"
    with transaction.atomic():
        run("SET LOCAL session_replication_role = replica")
        _under(CONTRACTS["plain-main"].with_changes(idle_close=UNKNOWN_FACT))(operation, cast)
    assert sent_again(operation) == "waiting"
    assert len(creates(provider)) == 1


def test_every_copy_must_land_while_the_key_lives(provider: SandboxProcess, cast: Cast) -> None:
    """t + S + D + skew <= first + K: with 592 s in flight the first half second is too late."""
    limits = settings.LIMITS
    longest = 600 - int(limits.send_deadline_seconds) - limits.skew_seconds
    accepted(cast, "plain-unbounded", "flight_max", longest, "resend")
    operation = sent_with(provider, cast, "drop_before_commit", "plain-unbounded")
    assert looked_up(operation, 2)[-1] == "LookUpAgain"
    assert sent_again(operation) == "waiting"


def test_after_a_complete_fresh_lookup_the_age_of_the_key_says_nothing(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Rule 41: an hour after the first attempt, with a flight bound and a lag that are known."""
    operation = sent_with(provider, cast, "drop_before_commit", "plain-lagged")
    patient = Operation.objects.filter(pk=operation.pk)
    time_passes(provider, 3600)
    patient.update(unknown_since=timezone.now(), entered_at=timezone.now())
    # An absence would be believed by now: the sender of the first attempt is still on its way.
    run("SET session_replication_role = replica")
    run("UPDATE attempt SET send_deadline = now(), stop_proof_at = NULL")
    run("SET session_replication_role = DEFAULT")
    assert looked_up(operation, 2)[-1] == "Resend"
    provider.fault("lookup_503", account="plain-lagged", on="list")
    assert looked_up(operation) == ["LookUpAgain"]  # could not tell: the old key is worth nothing
    assert sent_again(operation) == "waiting"
    assert looked_up(operation) == ["Resend"]
    assert sent_again(operation) == "confirmed"
    assert len(provider.refunds("plain-lagged")) == 1


def test_a_refusal_at_the_door_that_is_kept_under_the_key_is_for_a_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Never a new key, and no round and round under the old one (rule 37)."""
    operation = sent_with(provider, cast, "drop_before_commit", "stripe-main")
    answer = Evidence.objects.get(operation=operation, kind="answer")
    facts = answer.facts | {"status": 429, "headers": {"idempotent-replayed": "true"}}
    run("SET session_replication_role = replica")
    Evidence.objects.filter(pk=answer.pk).update(facts=facts)
    run("SET session_replication_role = DEFAULT")
    assert looked_up(operation) == ["OpenCase"]
    assert Case.objects.get(operation=operation).reasons == ["poison"]
    assert looked_up(operation) == ["LookUpAgain"]
    assert sent_again(operation) == "waiting"
