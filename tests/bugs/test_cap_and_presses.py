"""Public reports of caps, races and double presses: B033 to B047."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation import lookup, monitors, reconciler
from reconciliation.models import Case
from refunds import approvals, dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal, StaleOperation
from refunds.ledger import RECONCILER, transition
from refunds.models import Approval, Operation, Payment, Proposal
from tests import build
from tests.bugs.programs import Program
from tests.bugs.races import order_held, until_waiting
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    creates,
    events_of,
    state_of,
)
from tests.cast import Cast
from tests.flows import console
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def press(operation: Operation, person: str) -> dict[str, Any]:
    """What an approve form posts that was drawn just now."""
    shown = build.shown(operation, tick=True)
    return {
        "operation": str(operation.pk),
        "person": person,
        "fingerprint": shown.fingerprint.hex(),
        "order_version": shown.order_version,
        "siblings": [(str(each.operation_id), each.amount_minor) for each in shown.siblings],
    }


def test_b033_two_leads_cannot_over_refund(
    provider: SandboxProcess, cast: Cast, two_programs: list[Program]
) -> None:
    provider.payment(captured_minor=100)
    build.order(captured_minor=100)
    # Two of 60 would end at the second proposal already, so the second says 59.
    wishes = [build.proposed(cast.echo, amount_minor=amount) for amount in (60, 59)]
    presses = [press(each, lead) for each, lead in zip(wishes, ("ben", "cleo"), strict=True)]
    with order_held("4821"):
        for program, each in zip(two_programs, presses, strict=True):
            program.tell("approve", **each)
        until_waiting(2)
    said = [program.hear() for program in two_programs]
    winner, loser = sorted(said, key=lambda each: "refused" in each)
    assert winner == {"result": "approved"}
    assert loser["refused"] == "balance"
    won_minor = wishes[said.index(winner)].amount_minor
    left = 100 - won_minor
    assert loser["facts"] == {"remaining_minor": left}
    assert f"Only 0.{left} USD is still refundable on order 4821" in loser["detail"]
    for wish in wishes:
        dispatch.send(str(wish.pk))
    assert [refund["amount_minor"] for refund in provider.refunds()] == [won_minor]
    assert balance_of() == (0, won_minor, left)


def test_b033_the_page_tells_the_second_lead_how_much_is_left(cast: Cast) -> None:
    build.order(captured_minor=100)
    first = build.proposed(cast.echo, amount_minor=60)
    second = build.proposed(cast.echo, amount_minor=59)
    cleo = console.signed_in(cast.cleo)
    form = console.drawn(cleo, second, "approve")
    approvals.approve(first.pk, cast.ben, build.shown(first))
    answer = cleo.post(console.url(second, "approve"), form)
    assert answer.status_code == 409
    told = "Not approved. Only 0.40 USD is still refundable on order 4821"
    assert told in answer.content.decode()
    assert state_of(second) == states.AWAITING_APPROVAL


def test_b033_two_senders_at_once_cannot_hold_more_than_was_captured(
    provider: SandboxProcess, cast: Cast, two_programs: list[Program]
) -> None:
    first = authorized(provider, cast, amount_minor=60, captured_minor=100)
    second = build.authorized(cast.echo, cast.cleo, amount_minor=40)
    # The room that was there at the approvals is gone by the time of the claims.
    Payment.objects.update(captured_minor=80)
    with order_held("4821"):
        for program, each in zip(two_programs, (first, second), strict=True):
            program.tell("send", operation=str(each.pk))
        until_waiting(2)
    said = [program.hear()["result"] for program in two_programs]
    assert said.count("confirmed") == 1
    assert len(provider.refunds()) == 1
    held, refunded, available = balance_of()
    assert (held, refunded + available) == (0, 80)
    assert available >= 0


def test_b035_one_form_posted_twice_is_one_request(
    provider: SandboxProcess, cast: Cast, two_programs: list[Program]
) -> None:
    build.order()
    asked = build.request(session_id="console", tool_call_id="intent-of-one-form")
    form = {name: getattr(asked, name) for name in asked.__slots__}
    with order_held("4821"):
        for program in two_programs:
            program.tell("propose", request=form, person="cleo")
        until_waiting(2)
    said = [program.hear()["result"] for program in two_programs]
    assert sorted(outcome for outcome, _ in said) == ["created", "same"]
    assert {operation for _, operation in said} == {str(Operation.objects.get().pk)}
    assert Proposal.objects.count() == 1


def test_b037_the_second_of_two_people_sees_the_open_request_and_cannot_exceed_the_rest(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order()
    first = build.proposed(cast.ada, amount_minor=12900)
    with pytest.raises(Refusal) as equal:
        build.proposed(cast.ben, amount_minor=12900)
    assert equal.value.code == "equivalent_unresolved"
    assert equal.value.operation_id == first.pk
    assert f"{first.business_key} is awaiting_approval" in equal.value.detail
    second = build.proposed(cast.ben, amount_minor=12899)
    for lead in (cast.ben, cast.cleo):
        approvals.approve(first.pk, lead, build.shown(first))
    with pytest.raises(Refusal) as over:
        approvals.approve(second.pk, cast.ada, build.shown(second, tick=True))
    assert over.value.code == "balance"
    assert over.value.facts == {"remaining_minor": 0}
    assert [state_of(first), state_of(second)] == [states.AUTHORIZED, states.AWAITING_APPROVAL]
    assert Operation.objects.count() == 2


def test_b039_rejecting_one_of_two_requests_ends_that_one_and_frees_nothing_else(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment(captured_minor=9000)
    build.order(captured_minor=9000)
    rejected = build.proposed(cast.echo, amount_minor=8000)
    other = build.proposed(cast.echo, amount_minor=9000)
    assert balance_of() == (0, 0, 9000)
    approvals.reject(
        rejected.pk, cast.ben, reason="the parcel did arrive", version=rejected.version
    )
    assert [state_of(rejected), state_of(other)] == [states.REJECTED, states.AWAITING_APPROVAL]
    ended = rejected.events.order_by("-seq")[0]
    assert (ended.event, ended.actor) == ("rejected", "person:ben")
    assert ended.detail["reason"] == "the parcel did arrive"
    assert events_of(other) == ["proposed", "policy_held"]
    for lead in (cast.ben, cast.cleo)[: other.quorum]:
        approvals.approve(other.pk, lead, build.shown(other, tick=True))
    assert dispatch.send(str(other.pk)) == "confirmed"
    assert balance_of() == (0, 9000, 0)


def test_b041_more_refunded_than_charged_is_shown_as_it_is_with_a_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=6000, captured_minor=10000)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    build.external_refund("4821", 8000)
    assert balance_of() == (0, 14000, -4000)
    assert monitors.over_refunded() == 1
    case = Case.objects.get()
    assert case.reasons == ["external"]
    assert "Over-refunded by 40.00 USD" in case.because
    assert Payment.objects.get().halted
    denied = build.proposed(cast.echo, amount_minor=100)
    assert state_of(denied) == states.DENIED
    check = denied.checks.get(name="within_balance")
    assert check.says == "-40.00 USD of 100.00 USD still refundable"


def test_b043_a_view_read_before_the_success_cannot_take_it_back(
    provider: SandboxProcess, cast: Cast, program: Program
) -> None:
    operation = answer_lost(provider, cast)
    read_before = Operation.objects.get(pk=operation.pk)
    assert program.ask("look_up", operation=str(operation.pk)) == {"result": "Settle"}
    with pytest.raises(StaleOperation):
        transition(read_before, "found_failed", by=RECONCILER)
    assert state_of(operation) == states.SUCCEEDED
    assert "found_failed" not in events_of(operation)


def test_b043_a_finding_older_than_the_one_that_decided_changes_nothing(
    provider: SandboxProcess, cast: Cast, program: Program
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("list_lag", on="list", seconds=60)
    number = lookup.take_number(operation.pk)
    assert number is not None
    older = lookup.ask(operation, number)
    assert older.finding.verdict == "absent"
    assert program.ask("look_up", operation=str(operation.pk)) == {"result": "Settle"}
    assert reconciler.conclude(operation.pk, older) == "overtaken"
    assert state_of(operation) == states.SUCCEEDED
    assert balance_of() == (0, 7900, 5000)


def test_b045_pressing_approve_again_from_the_page_before_has_no_second_effect(
    provider: SandboxProcess, cast: Cast, rung: list[tuple[str, str]]
) -> None:
    provider.payment()
    build.order()
    operation = build.proposed(cast.echo)
    page = build.shown(operation)
    approvals.approve(operation.pk, cast.ben, page)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    before = events_of(operation)
    with pytest.raises(Refusal) as refused:
        approvals.approve(operation.pk, cast.ben, page)
    assert (refused.value.code, refused.value.status) == ("already_decided", 409)
    assert events_of(operation) == before
    assert Approval.objects.count() == 1
    assert rung == [("refunds.tasks.send", str(operation.pk))]
    assert len(creates(provider)) == 1


def test_b045_the_same_form_pressed_again_says_so_and_changes_nothing(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = console.signed_in(cast.ben)
    form = console.drawn(ben, operation, "approve")
    assert ben.post(console.url(operation, "approve"), form).status_code == 303
    before = events_of(operation)
    again = ben.post(console.url(operation, "approve"), form)
    assert again.status_code == 200
    assert "This second press changed nothing." in again.content.decode()
    assert events_of(operation) == before
    assert Approval.objects.count() == 1


def test_b045_one_of_two_leads_pressing_twice_is_still_one(cast: Cast) -> None:
    build.order(captured_minor=90000)
    operation = build.proposed(cast.cleo, amount_minor=50000)
    assert operation.quorum == 2
    page = build.shown(operation)
    approvals.approve(operation.pk, cast.ben, page)
    with pytest.raises(Refusal) as refused:
        approvals.approve(operation.pk, cast.ben, page)
    assert refused.value.code == "already_decided"
    assert state_of(operation) == states.AWAITING_APPROVAL


def test_b047_two_server_paths_that_want_to_send_make_one_call(
    provider: SandboxProcess, cast: Cast, two_programs: list[Program]
) -> None:
    operation = authorized(provider, cast)
    with order_held("4821"):
        for program in two_programs:
            program.tell("send", operation=str(operation.pk))
        until_waiting(2)
    said = sorted(program.hear()["result"] for program in two_programs)
    assert said == ["confirmed", "gone"]
    assert len(creates(provider)) == 1
    assert balance_of() == (0, 7900, 5000)
