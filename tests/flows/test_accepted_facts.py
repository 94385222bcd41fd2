"""What two people accept about a provider, what it changes, and what ends it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.utils import timezone

from reconciliation.models import Case
from refunds import accepting, dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import accepted_now, decided_under
from refunds.models import AcceptedFact, Operation, Person
from tests import build
from tests.cast import Cast
from tests.clocks import time_passes
from tests.flows.finding import accepted, looked_up, sent_again, sent_with
from tests.ledger.stage import run
from tests.provider_process import SandboxProcess

WHY = "a letter of the provider, 12 March"


@pytest.mark.django_db(transaction=True)
def test_of_41_lost_answers_all_end_by_themselves_where_a_flight_bound_is_accepted(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Ten of them never arrived: without the acceptance they are ten cases."""
    operations = []
    for number in range(41):
        lost = "drop_before_commit" if number % 4 == 3 else "drop_after_commit"
        operation = sent_with(
            *(provider, cast, lost, "stripe-main"), ref=f"41{number:02}", amount_minor=100 + number
        )
        looked_up(operation)
        operations.append(operation)
    left = [each for each in operations if each.state == states.UNKNOWN]
    assert (len(left), len(provider.refunds("stripe-main"))) == (10, 31)
    with transaction.atomic():
        time_passes(provider, 30)
        for each in left:
            looked_up(each)
        ended = Operation.objects.filter(state=states.SUCCEEDED).count()
        assert (ended, Case.objects.filter(closed_at=None).count()) == (31, 10)
        transaction.set_rollback(True)
    accepted(cast, "stripe-main", "flight_max", 3600, "resend")
    Operation.objects.filter(state=states.UNKNOWN).update(unknown_since=timezone.now())
    for each in left:
        assert (looked_up(each), sent_again(each)) == (["Resend"], "confirmed")
    assert Operation.objects.filter(state=states.SUCCEEDED).count() == 41
    book = provider.refunds("stripe-main")
    assert (len(book), len({each["aftersend_operation"] for each in book})) == (41, 41)
    assert not Case.objects.exists()


# Two people, once each, for a while


@pytest.mark.django_db
def test_a_figure_counts_once_another_person_has_confirmed_it_and_until_it_runs_out(
    cast: Cast,
) -> None:
    row = accepting.propose(
        "stripe-main", "flight_max", 3600, "resend", reason=WHY, days=180, by=cast.ines
    )
    assert accepted_now("stripe-main") == ()
    with pytest.raises(Refusal, match="another person"):
        accepting.confirm(row.pk, by=cast.ines)
    accepting.confirm(row.pk, by=cast.ava)
    [taken] = accepted_now("stripe-main")
    assert (taken.id, taken.fact, taken.seconds, taken.scope) == (
        row.pk,
        "flight_max",
        3600,
        "resend",
    )
    assert accepted_now("plain-main") == ()
    with pytest.raises(Refusal, match="in force"):
        accepting.propose(
            "stripe-main", "flight_max", 60, "resend", reason=WHY, days=1, by=cast.olga
        )
    accepting.withdraw(row.pk, by=cast.olga, because="They changed their queue.")
    assert accepted_now("stripe-main") == ()
    accepting.propose("stripe-main", "flight_max", 60, "resend", reason=WHY, days=1, by=cast.olga)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("figure", "code"),
    [
        (("stripe-main", "idle_close", 60, "resend"), "not_acceptable"),
        (("stripe-main", "key_window", 60, "resend"), "not_acceptable"),
        (("stripe-main", "flight_max", 60, "success"), "not_acceptable"),
        (("stripe-main", "flight_max", 0, "resend"), "seconds_out_of_range"),
        (("stripe-main", "flight_max", 86_400, "resend"), "longer_than_the_key"),
        (("plain-main", "flight_max", 60, "resend"), "stated_already"),
        (("plain-blind", "lookup_lag", 60, "absence"), "no_lookup"),
        (("plain-hooks", "lookup_lag", 60, "resend"), "no_key_window"),
        (("nobody", "flight_max", 60, "resend"), "account_unknown"),
    ],
)
def test_only_what_nobody_states_and_what_would_permit_something_can_be_proposed(
    cast: Cast, figure: tuple[str, str, int, str], code: str
) -> None:
    with pytest.raises(Refusal) as refused:
        accepting.propose(*figure, reason=WHY, days=30, by=cast.ines)
    assert refused.value.code == code
    assert not AcceptedFact.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(("days", "reason"), [(181, WHY), (0, WHY), (30, "short")])
def test_an_acceptance_ends_and_has_a_reason(cast: Cast, days: int, reason: str) -> None:
    with pytest.raises(Refusal):
        accepting.propose(
            "stripe-main", "flight_max", 60, "resend", reason=reason, days=days, by=cast.ines
        )


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["ben", "omar", "fay", "mia", "dora"])
def test_only_ops_leads_and_admins_accept(cast: Cast, name: str) -> None:
    with pytest.raises(Refusal) as refused:
        accepting.propose(
            "stripe-main",
            *("flight_max", 60, "resend"),
            reason=WHY,
            days=30,
            by=Person.objects.get(username=name),
        )
    assert refused.value.status == 403


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE accepted_fact SET seconds = 86000",
        "UPDATE accepted_fact SET scope = 'absence'",
        "UPDATE accepted_fact SET valid_until = valid_until + interval '1 day'",
        "UPDATE accepted_fact SET confirmed_by_id = proposed_by_id",
        "UPDATE accepted_fact SET confirmed_at = NULL, confirmed_by_id = NULL",
        "DELETE FROM accepted_fact",
    ],
)
def test_what_was_accepted_is_never_edited(cast: Cast, edit: str) -> None:
    accepted(cast, "stripe-main", "flight_max", 3600, "resend")
    with pytest.raises(DatabaseError):
        run(edit)


@pytest.mark.django_db
def test_the_command_takes_two_people_and_says_what_goes_wrong(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("accept_fact", "stripe-main")
    figure = ("accept_fact", "stripe-main", "flight_max", "3600", "--for", "resend")
    call_command(*figure, "--reason", WHY, "--by", "ines")
    number = str(AcceptedFact.objects.get().pk)
    with pytest.raises(CommandError, match="another person must confirm"):
        call_command("accept_fact", "stripe-main", "--confirm", number, "--by", "ines")
    with pytest.raises(CommandError, match="needs one of the roles"):
        call_command("accept_fact", "stripe-main", "--confirm", number, "--by", "ben")
    with pytest.raises(CommandError, match="has no accepted fact"):
        call_command("accept_fact", "plain-main", "--confirm", number, "--by", "ava")
    call_command("accept_fact", "stripe-main", "--confirm", number, "--by", "ava")
    call_command("accept_fact", "stripe-main")
    call_command(
        "accept_fact", "stripe-main", "--withdraw", number, "--reason", "no", "--by", "olga"
    )
    said = capsys.readouterr().out
    assert "Nothing is accepted for stripe-main." in said
    assert "later than 1 h after we sent it; we rely on less, namely on 17 h 59 min" in said
    assert "one refund can be paid twice" in said
    assert f"{number}: flight_max 3600 s for resend" in said
    assert accepted_now("stripe-main") == ()


# What shows it to be false (rule 44)


@pytest.mark.django_db(transaction=True)
def test_a_refund_that_turns_up_after_an_accepted_absence_withdraws_it_and_asks_a_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    for fact, seconds in (("flight_max", 3), ("lookup_lag", 1)):
        accepted(cast, "stripe-main", fact, seconds, "absence")
    operation = sent_with(provider, cast, "land_past_flight", "stripe-main", seconds=3600)
    time_passes(provider, 30)
    assert looked_up(operation) == ["Settle"]
    assert operation.state == states.FAILED
    provider.advance(3600)
    assert len(provider.refunds("stripe-main")) == 1
    looked_up(operation)
    assert operation.state == states.UNKNOWN
    rows = AcceptedFact.objects.order_by("pk")
    assert all(each.withdrawn_by == "reconciler" for each in rows)
    assert accepted_now("stripe-main") == ()
    assert [each.operation_id for each in decided_under(rows[0].pk)] == [operation.pk]
    case = Case.objects.get(operation=operation)
    assert case.reasons == ["contradiction"]
    assert f"Accepted fact {rows[1].pk} is false" in case.because
    assert str(operation.pk) in case.because


@pytest.mark.django_db(transaction=True)
def test_a_refund_made_later_than_the_accepted_flight_stops_resends_for_its_account(
    provider: SandboxProcess, cast: Cast
) -> None:
    fact = accepted(cast, "stripe-main", "flight_max", 60, "resend")
    operation = sent_with(provider, cast, "land_past_flight", "stripe-main", seconds=200)
    provider.advance(201)
    assert looked_up(operation) == ["Settle"]
    assert operation.state == states.SUCCEEDED
    fact.refresh_from_db()
    assert "later than 60 s" in fact.withdrawn_because
    build.order("4822", account="stripe-main")
    provider.payment("pi_4822", account="stripe-main")
    other = build.authorized(cast.omar, cast.cleo, order_ref="4822", amount_minor=4100)
    provider.fault("drop_before_commit", account="stripe-main")
    dispatch.send(str(other.pk))
    assert looked_up(other, 2) == ["LookUpAgain", "LookUpAgain"]
    assert sent_again(other) == "waiting"


@pytest.mark.django_db(transaction=True)
def test_a_refund_made_in_time_withdraws_nothing(provider: SandboxProcess, cast: Cast) -> None:
    fact = accepted(cast, "stripe-main", "flight_max", 60, "resend")
    operation = sent_with(provider, cast, "land_past_flight", "stripe-main", seconds=50)
    provider.advance(51)
    assert looked_up(operation) == ["Settle"]
    fact.refresh_from_db()
    assert fact.withdrawn_at is None
    assert fact.valid_until > timezone.now() + timedelta(days=29)
