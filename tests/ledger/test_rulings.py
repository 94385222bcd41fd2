"""Two signatures, their proof, and what they do to the operation, the balance and the order."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reconciliation import reconciler, remedies, resolutions, rulings
from reconciliation.models import Case, CaseStatement, Ruling, RulingEnd, Statement
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import Actor, transition
from refunds.models import Attempt, Operation, Order, Payment, Person, ProviderRefund
from tests.bugs.history import let_pass
from tests.cast import Cast
from tests.ledger.rulings import (
    PDF,
    attached,
    looked,
    opened,
    quiet_is_over,
    ruled,
    screen,
    signed,
    told,
    unknown_with_case,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def refused(code: str, act: Any, *args: Any, **more: Any) -> Refusal:
    with pytest.raises(Refusal) as no:
        act(*args, **more)
    assert no.value.code == code, no.value.detail
    return no.value


def books(case: Case) -> tuple[str, int, int]:
    """(state, refunded, held) as they stand."""
    operation = Operation.objects.select_related("payment").get(cases=case)
    return operation.state, operation.payment.refunded_minor, operation.payment.held_minor


def as_planned(ruling: Ruling) -> bool:
    """Whether what the page had printed is what the rows say now."""
    plan = ruling.shown["plan"]
    case = Case.objects.get(pk=ruling.case_id)
    operation = Operation.objects.select_related("payment", "order").get(cases=case)
    payment = operation.payment
    return (
        operation.state,
        payment.refunded_minor,
        payment.held_minor,
        payment.available_minor,
        operation.order.version,
        case.closed_at is not None,
    ) == (
        plan["state"],
        plan["refunded_minor"],
        plan["held_minor"],
        plan["available_minor"],
        plan["order_version"],
        plan["closes"],
    )


@pytest.fixture
def blind(provider: SandboxProcess, cast: Cast) -> Case:
    """Paid, and nothing but a person can find out."""
    return unknown_with_case(provider, cast, account="plain-blind", fault="drop_after_commit")


@pytest.fixture
def lost(provider: SandboxProcess, cast: Cast) -> Case:
    """Never arrived, on an account that can be asked."""
    return unknown_with_case(provider, cast)


def test_testimony_of_two_people_books_the_refund_that_is_in_the_book(
    provider: SandboxProcess, cast: Cast, blind: Case
) -> None:
    [refund] = provider.refunds("plain-blind")
    refused("proof_missing", ruled, blind, cast.omar, "happened", testimony=told(refund["id"]))
    attached(blind, cast.omar)
    first = ruled(blind, cast.omar, "happened", testimony=told(refund["id"]))
    assert books(blind) == (states.UNKNOWN, 0, 4000)
    signed(first, cast.ines)
    assert books(blind) == (states.SUCCEEDED, 4000, 0)
    assert ProviderRefund.objects.get(counts=True).ref == refund["id"]
    assert as_planned(first)
    event = Operation.objects.get().events.get(event="ruled_happened")
    assert event.actor == "person:omar, person:ines"
    assert Operation.objects.get().halted is False


def test_a_refund_of_ours_that_a_lookup_shows_needs_one_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast, account="plain-lagged", fault="drop_after_commit")
    provider.advance(4)
    assert case.operation is not None
    looked(case.operation)
    [refund] = provider.refunds("plain-lagged")
    ruling = ruled(case, cast.omar, "happened", ref=refund["id"])
    assert books(case) == (states.SUCCEEDED, 4000, 0)
    assert as_planned(ruling)
    assert ruling.people == 1


def test_an_equal_refund_of_a_stranger_is_ours_only_by_two_people(
    provider: SandboxProcess, cast: Cast, lost: Case
) -> None:
    provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": "pi_4821", "amount_minor": 4000},
    )
    assert lost.operation is not None
    looked(lost.operation)
    [refund] = provider.refunds()
    first = ruled(lost, cast.ines, "happened", ref=refund["id"])
    assert (first.people, books(lost)) == (2, (states.UNKNOWN, 0, 4000))
    signed(first, cast.olga)
    assert books(lost) == (states.SUCCEEDED, 4000, 0)
    assert as_planned(first)
    assert len(provider.refunds()) == 1


def test_a_different_refund_counts_with_what_really_left(
    provider: SandboxProcess, cast: Cast, lost: Case
) -> None:
    provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": "pi_4821", "amount_minor": 3000},
    )
    assert lost.operation is not None
    looked(lost.operation)
    [refund] = provider.refunds()
    refused(
        "proof_missing",
        ruled, lost, cast.omar, "different", ref=refund["id"], confirmed_minor=4000,
    )  # fmt: skip
    first = ruled(lost, cast.omar, "different", ref=refund["id"], confirmed_minor=3000)
    signed(first, cast.ines)
    assert books(lost) == (states.MISMATCHED, 3000, 0)
    assert as_planned(first)
    order = Order.objects.get()
    assert order.moves.get(version=order.version).cause == "difference"
    assert sum(each["amount_minor"] for each in provider.refunds()) == 3000


def test_did_not_happen_waits_for_the_quiet_period_and_then_takes_two_people(
    provider: SandboxProcess, cast: Cast, lost: Case
) -> None:
    assert lost.operation is not None
    attached(lost, cast.omar)
    early = refused("proof_missing", ruled, lost, cast.omar, "not_happened")
    assert "begun after" in early.detail
    quiet_is_over(lost.operation)
    looked(lost.operation)
    first = ruled(lost, cast.omar, "not_happened")
    signed(first, cast.ines)
    assert books(lost) == (states.FAILED, 0, 0)
    assert as_planned(first)
    attempt = Attempt.objects.get()
    assert attempt.settled_by_evidence is not None
    owed = Case.objects.get(closed_at=None)
    assert owed.reasons == ["remedy"]
    assert provider.refunds() == []


def test_a_lookup_from_before_the_quiet_period_proves_nothing_to_a_person(
    provider: SandboxProcess, cast: Cast, lost: Case
) -> None:
    # The only lookup began before; that the time has passed since does not make it a proof.
    assert lost.operation is not None
    Attempt.objects.update(stop_proof_at=timezone.now())
    assert "begun after" in refused("proof_missing", ruled, lost, cast.omar, "not_happened").detail


def test_where_no_flight_is_bounded_only_a_statement_supports_did_not_happen(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast, account="plain-unbounded")
    no = refused("proof_missing", ruled, case, cast.omar, "not_happened")
    assert "proves nothing" in no.detail
    attached(case, cast.omar)
    first = ruled(case, cast.omar, "not_happened")
    signed(first, cast.ines)
    assert books(case) == (states.FAILED, 0, 0)
    assert provider.refunds("plain-unbounded") == []


def test_a_refund_that_shows_between_the_signatures_voids_the_first(
    provider: SandboxProcess, cast: Cast, lost: Case
) -> None:
    assert lost.operation is not None
    quiet_is_over(lost.operation)
    looked(lost.operation)
    first = ruled(lost, cast.omar, "not_happened")
    looked(lost.operation)  # says the same: nothing moved
    assert resolutions.void_if_moved(lost.pk) is False
    provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": "pi_4821", "amount_minor": 4000},
    )
    looked(lost.operation)
    refused("evidence_moved", signed, first, cast.ines)
    assert resolutions.void_moved(batch_max=10) == 1
    assert RulingEnd.objects.get().outcome == "voided"
    refused("already_decided", signed, first, cast.ines)
    assert books(lost) == (states.UNKNOWN, 0, 4000)


def test_the_machine_settles_while_a_ruling_waits_and_wins(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast, account="plain-lagged", fault="drop_after_commit")
    attached(case, cast.omar)
    assert case.operation is not None
    quiet_is_over(case.operation)
    provider.configure("plain-lagged", lookup_lag_seconds=3600)
    looked(case.operation)
    first = ruled(case, cast.omar, "not_happened")
    provider.advance(3601)
    reconciler.look_up(case.operation.pk)
    assert books(case)[0] == states.SUCCEEDED
    assert RulingEnd.objects.get().outcome == "voided"
    closed = refused("case_closed", signed, first, cast.ines)
    assert closed.status == 409


def test_a_second_person_declines_and_the_case_waits_again(
    provider: SandboxProcess, cast: Cast, blind: Case
) -> None:
    attached(blind, cast.omar)
    first = ruled(blind, cast.omar, "happened", testimony=told("rf_77"))
    why = "There is no rf_77 in the dashboard of this account."
    refused("reason_too_short", resolutions.decline, first.pk, cast.ines, reason="no")
    resolutions.decline(first.pk, cast.ines, reason=why)
    assert RulingEnd.objects.get().outcome == "declined"
    assert Case.objects.get().closed_at is None
    ruled(blind, cast.omar, "happened", testimony=told("rf_78"))


def test_a_ruling_that_nobody_signs_lapses(
    provider: SandboxProcess, cast: Cast, blind: Case
) -> None:
    attached(blind, cast.omar)
    first = ruled(blind, cast.omar, "happened", testimony=told("rf_77"))
    let_pass((first.lapses_at - timezone.now()).total_seconds() + 1)
    # By its time, and not only once the sweep has come by.
    refused("already_decided", signed, first, cast.ines)
    assert rulings.lapse(timezone.now(), batch_max=10) == 1
    assert RulingEnd.objects.get().outcome == "lapsed"
    refused("already_decided", signed, first, cast.ines)
    assert Case.objects.get().closed_at is None


def test_who_may_sign(provider: SandboxProcess, cast: Cast, blind: Case) -> None:
    attached(blind, cast.omar)
    for person in (cast.fay, cast.ben, cast.mia, cast.adam):
        refused("role_missing", ruled, blind, person, "happened", testimony=told("rf_7"))
    cast.adam.groups.add(cast.ines.groups.get())
    refused("role_missing", ruled, blind, cast.adam, "happened", testimony=told("rf_7"))
    first = ruled(blind, cast.ines, "happened", testimony=told("rf_7"))
    refused("own_signature", signed, first, cast.ines)
    refused("role_missing", signed, first, cast.omar)
    refused("role_missing", signed, first, cast.adam)


def test_nobody_signs_what_they_or_their_agent_proposed(
    provider: SandboxProcess, cast: Cast, blind: Case
) -> None:
    attached(blind, cast.omar)
    cast.fay.groups.add(cast.ines.groups.get())
    refused("own_proposal", ruled, blind, cast.fay, "happened", testimony=told("rf_7"))
    first = ruled(blind, cast.omar, "happened", testimony=told("rf_7"))
    refused("own_proposal", signed, first, cast.fay)


def test_two_at_once_are_one_ruling(provider: SandboxProcess, cast: Cast, blind: Case) -> None:
    attached(blind, cast.omar)
    seen = screen(blind)
    ruled(blind, cast.omar, "happened", testimony=told("rf_7"), screen=seen)
    no = refused(
        "already_decided", ruled, blind, cast.ines, "happened", testimony=told("rf_8"), screen=seen
    )
    assert "omar signed first" in no.detail
    assert Ruling.objects.count() == 1


def test_an_empty_or_short_reason_is_refused(cast: Cast, blind: Case) -> None:
    attached(blind, cast.omar)
    short = {**screen(blind), "reason": "   done       "}
    refused(
        "reason_too_short",
        ruled, blind, cast.omar, "happened", testimony=told("rf_7"), screen=short,
    )  # fmt: skip


def test_still_not_known_keeps_the_case_and_everything_else(cast: Cast, lost: Case) -> None:
    ruling = ruled(lost, cast.omar, "still_unknown")
    assert books(lost) == (states.UNKNOWN, 0, 4000)
    assert Case.objects.get().closed_at is None
    assert as_planned(ruling)


def test_a_duplicate_that_is_explained_by_two_lifts_the_halt(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(
        provider, cast, account="plain-nokeys", fault="execute_twice", amount_minor=6000
    )
    assert case.reasons == ["duplicate"]
    assert Payment.objects.get().halted is True
    ruling = ruled(case, cast.omar, "written_off")
    assert ruling.people == 1  # one surplus refund of 60.00, in tier 1
    assert Payment.objects.get().halted is False
    assert Case.objects.get().closed_at is not None
    assert books(case) == (states.SUCCEEDED, 12000, 0)
    assert len(provider.refunds("plain-nokeys")) == 2


def test_a_poisoned_operation_is_looked_at_again_once_it_is_fixed(cast: Cast, lost: Case) -> None:
    assert lost.operation is not None
    case = opened(lost.operation, "poison")
    Operation.objects.update(failure_count=3)
    ruled(case, cast.omar, "resume")
    operation = Operation.objects.get()
    assert (operation.failure_count, operation.halted) == (0, True)  # still unresolved
    assert Case.objects.get().reasons == ["unresolved"]


def test_what_failed_is_owed_once_until_a_remedy_is_chosen(
    provider: SandboxProcess, cast: Cast, lost: Case
) -> None:
    assert lost.operation is not None
    quiet_is_over(lost.operation)
    looked(lost.operation)
    signed(ruled(lost, cast.omar, "not_happened"), cast.ines)
    assert remedies.owe_for_ended(timezone.now(), batch_max=10) == 0
    owed = Case.objects.get(closed_at=None)
    refused("proof_missing", ruled, owed, cast.ben, "remedy", kind="voucher")
    ruled(owed, cast.ben, "remedy", kind="voucher", reference="V-2210")
    assert not Case.objects.filter(closed_at=None).exists()
    assert remedies.owe_for_ended(timezone.now(), batch_max=10) == 0


def test_statements_are_told_by_their_content_and_stored_once(cast: Cast, blind: Case) -> None:
    attached(blind, cast.omar)
    attached(blind, cast.ines)
    assert (Statement.objects.count(), CaseStatement.objects.count()) == (1, 1)
    for content in (b"", b"<html>%PDF-</html>", b"MZ\x90\x00", b"From: a\n\nhello"):
        with pytest.raises(Refusal) as no:
            attached(blind, cast.omar, content)
        assert no.value.code in ("statement_type", "statement_empty")
    with pytest.raises(Refusal, match="5242880 bytes are allowed"):
        attached(blind, cast.omar, PDF + b"x" * 5_242_880)
    mail = b"From: ops@psp.example\nDate: Sun, 29 Nov 2026 10:00:00 +0000\nSubject: x\n\nNo refund."
    attached(blind, cast.omar, mail)
    assert Statement.objects.get(media_type="message/rfc822")


# What the database holds when a verb forgets


def test_the_database_refuses_a_second_signature_of_the_same_person(
    cast: Cast, blind: Case
) -> None:
    attached(blind, cast.omar)
    first = ruled(blind, cast.ines, "happened", testimony=told("rf_7"))
    people: list[Person | None] = [cast.ines, cast.omar, cast.fay, None]
    for person in people:
        with pytest.raises(IntegrityError):
            RulingEnd.objects.create(ruling=first, outcome="in_force", by=person)


def test_the_database_refuses_a_hard_ruling_of_one_person(cast: Cast, blind: Case) -> None:
    row = {
        "case": blind,
        "reason": "x" * 20,
        "shown": {},
        "evidence_digest": b"\0" * 32,
        "lapses_at": timezone.now(),
    }
    for choice in ("not_happened", "different", "accept_figure", "correct"):
        with pytest.raises(IntegrityError):
            Ruling.objects.create(choice=choice, people=1, first_by=cast.omar, **row)
    for person in (cast.ben, cast.adam, cast.fay):
        with pytest.raises(IntegrityError):
            Ruling.objects.create(choice="happened", people=2, first_by=person, **row)


def test_the_one_door_takes_no_ruling_that_nobody_signed(cast: Cast, blind: Case) -> None:
    by = Actor(states.OPERATORS, "person:omar")
    attached(blind, cast.omar)
    first = ruled(blind, cast.omar, "happened", testimony=told("rf_7"))
    for detail in ({}, {"ruling": first.pk}, {"ruling": 999}):
        with pytest.raises(IntegrityError), transaction.atomic():
            transition(Operation.objects.get(), "ruled_happened", by=by, detail=detail)
    assert Operation.objects.get().state == states.UNKNOWN


def test_what_people_did_about_a_case_is_never_edited(cast: Cast, blind: Case) -> None:
    attached(blind, cast.omar)
    first = ruled(blind, cast.omar, "happened", testimony=told("rf_7"))
    for row in (first, Statement.objects.get(), CaseStatement.objects.get(), blind.events.first()):
        assert row is not None
        with pytest.raises(IntegrityError):
            type(row)._default_manager.filter(pk=row.pk).delete()
    with pytest.raises(IntegrityError):
        Ruling.objects.update(reason="Another reason, thought of later.")
