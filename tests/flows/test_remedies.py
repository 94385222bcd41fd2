"""A refund that makes good for another: proposed from the list of what is owed, approved by others."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from reconciliation import reconciler, remedies
from reconciliation.models import Case
from refunds import approvals, dispatch, intake, withdrawal
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.intake import Caller
from refunds.ledger import RECONCILER, lock, release, transition
from refunds.models import Operation, Payment, Person
from review.models import RefusedAct
from tests import build
from tests.bugs.steps import answer_lost, open_reasons
from tests.cast import Cast
from tests.flows.console import drawn, form_on, has_form, opened, signed_in, text, url
from tests.ledger.rulings import ruled
from tests.outside.steps import later, look_up_due, turn
from tests.page import Page
from tests.provider_process import SandboxProcess


def failed(cast: Cast, amount_minor: int = 4000) -> Operation:
    """A refund that ended without money; its case asks how the customer gets it."""
    build.order()
    operation = build.authorized(cast.echo, cast.ben, amount_minor=amount_minor)
    fail(operation)
    assert remedies.owe_for_ended(timezone.now(), batch_max=10) == 1
    return Operation.objects.get(pk=operation.pk)


def form_of(client: Client, first: Operation) -> dict[str, str]:
    at = f"/orders/4821?remedy_of={first.pk}"
    return Page(at, 200, text(client.get(at))).form("propose-form").values


def propose(client: Client, first: Operation, **typed: str) -> Any:
    return client.post("/propose/4821", form_of(client, first) | typed)


def proposed(client: Client, first: Operation, **typed: str) -> Operation:
    answer = propose(client, first, **typed)
    assert answer.status_code == 303, text(answer)
    return Operation.objects.get(remedy_of=first)


def approved(operation: Operation, by: Person) -> None:
    approvals.approve(operation.pk, by, build.shown(operation, tick=True))


def paid_instead(provider: SandboxProcess, cast: Cast) -> tuple[Operation, Operation]:
    """A refund that was paid and is called failed, and the one that made good for it since."""
    first = answer_lost(provider, cast, amount_minor=4000)
    fail(first)
    remedies.owe_for_ended(timezone.now(), batch_max=10)
    remedy = proposed(signed_in(cast.cleo), first)
    approved(remedy, cast.ben)
    assert dispatch.send(str(remedy.pk)) == "confirmed"
    assert remedies.close_made_good(batch_max=10) == 1
    return first, remedy


def fail(operation: Operation) -> None:
    """The provider turned it down for good."""
    with transaction.atomic():
        locked = lock(operation.pk)
        release(locked, by=RECONCILER)
        transition(locked.operation, "found_failed", by=RECONCILER)


@pytest.mark.django_db
def test_a_remedy_is_filled_in_from_what_is_owed_and_goes_the_way_of_every_refund(
    cast: Cast,
) -> None:
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    owed_page = text(cleo.get(f"/operations/{first.pk}"))
    assert f'href="/orders/4821?remedy_of={first.pk}#propose"' in owed_page
    assert "40.00 USD, which is owed;" in text(cleo.get(f"/orders/4821?remedy_of={first.pk}"))
    fields = form_of(cleo, first)
    assert (fields["amount"], fields["remedy_of"]) == ("40.00", str(first.pk))
    remedy = proposed(cleo, first, reason_text="The card works again.")
    assert (remedy.state, remedy.amount_minor) == (states.AWAITING_APPROVAL, 4000)
    # An equal one ended lately: whoever approves says that it is no repeat.
    assert remedy.possible_repeat
    assert remedy.provider_key != first.provider_key
    assert remedy.events.get(seq=1).detail == {"remedy_of": str(first.pk)}
    # Nobody approves what they proposed, a remedy no more than another refund.
    assert not has_form(opened(cleo, remedy), url(remedy, "approve"))
    ben = signed_in(cast.ben)
    slip = opened(ben, remedy)
    assert "which did not reach the customer" in slip
    assert "Makes good for\nop" in Page("", 200, slip).part("approval")
    form = drawn(ben, remedy, "approve")
    own = cleo.post(url(remedy, "approve"), form_of_own(cleo, form))
    assert (own.status_code, Operation.objects.get(pk=remedy.pk).state) == (
        403,
        states.AWAITING_APPROVAL,
    )
    ticked = form | {"separate_refund_confirmed": "on"}
    assert ben.post(url(remedy, "approve"), ticked).status_code in (200, 303)
    assert Operation.objects.get(pk=remedy.pk).state == states.AUTHORIZED
    assert "It makes good for op" in text(cleo.get(f"/operations/{remedy.pk}"))
    page = text(cleo.get(f"/operations/{first.pk}"))
    assert "A refund was proposed to make good for this one" in page
    assert "is proposed for it already" in page
    assert f'href="/orders/4821?remedy_of={first.pk}#propose"' not in page


def form_of_own(client: Client, form: dict[str, str]) -> dict[str, str]:
    token = form_on(text(client.get("/")), "/sign-out")["csrfmiddlewaretoken"]
    return form | {"csrfmiddlewaretoken": token}


@pytest.mark.django_db
def test_what_is_owed_is_proposed_once_and_never_more_of_it(cast: Cast) -> None:
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    too_much = propose(cleo, first, amount="40.01")
    assert (too_much.status_code, "40.00 USD are owed" in text(too_much)) == (422, True)
    assert form_on(text(too_much), "/propose/4821")["remedy_of"] == str(first.pk)
    half = proposed(cleo, first, amount="25.00")
    assert form_of(cleo, first)["amount"] == "15.00"
    old = form_of(cleo, first)
    assert propose(cleo, first).status_code == 303
    again = cleo.post("/propose/4821", old | {"intent": str(half.pk)})
    assert again.status_code in (409, 422)
    owed = Case.objects.get(closed_at=None)
    with pytest.raises(Refusal, match="make good for it already"):
        ruled(owed, cast.ben, "remedy", kind="voucher", reference="V-2210")
    # Withdrawn, it stands for nothing: the same amount is owed again.
    withdrawal.withdraw(half.pk, by=Caller(person=cast.cleo), reason="A voucher instead.")
    assert form_of(cleo, first)["amount"] == "25.00"


@pytest.mark.django_db
def test_no_remedy_for_what_owes_nothing_and_none_by_who_may_not_choose_one(cast: Cast) -> None:
    first = failed(cast)
    rosa = signed_in(cast.rosa)
    fields = form_on(text(rosa.get("/orders/4821")), "/propose/4821")
    posted = {"amount": "40.00", "reason_code": "goodwill", "remedy_of": str(first.pk)}
    assert rosa.post("/propose/4821", fields | posted).status_code == 403
    assert RefusedAct.objects.filter(act="choose_remedy").exists()
    cleo = signed_in(cast.cleo)
    fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821")
    for wrong in ("x", "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"):
        answer = cleo.post("/propose/4821", fields | posted | {"remedy_of": wrong})
        assert (answer.status_code, "no such refund" in text(answer) or wrong == "x") == (422, True)
    Case.objects.update(closed_at=timezone.now(), closed_because="voucher V-1")
    answer = cleo.post("/propose/4821", fields | posted)
    assert (answer.status_code, "No money is recorded as owed" in text(answer)) == (422, True)
    waits = build.proposed(cast.echo, amount_minor=1000)
    request = build.request("4821", 1000, remedy_of=waits.pk)
    with pytest.raises(Refusal) as no:
        intake.propose(request, Caller(person=cast.cleo))
    assert (no.value.code, no.value.status) == ("equivalent_unresolved", 409)
    request = build.request("4821", 900, remedy_of=waits.pk)
    with pytest.raises(Refusal) as no:
        intake.propose(request, Caller(person=cast.cleo))
    assert (no.value.code, no.value.status) == ("remedy_not_owed", 422)
    assert not Operation.objects.exclude(remedy_of=None).exists()


@pytest.mark.django_db(transaction=True)
def test_a_remedy_that_paid_ends_what_was_owed_and_one_that_failed_does_not(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    in_vain = proposed(cleo, first)
    approved(in_vain, cast.ben)
    fail(in_vain)
    assert remedies.owe_for_ended(timezone.now(), batch_max=10) == 0
    assert Case.objects.filter(closed_at=None).count() == 1
    assert propose(cleo, first).status_code == 303
    paying = Operation.objects.filter(remedy_of=first).latest("created_at")
    approved(paying, cast.ben)
    assert remedies.close_made_good(batch_max=10) == 0
    assert dispatch.send(str(paying.pk)) == "confirmed"
    assert [each["amount_minor"] for each in provider.refunds()] == [4000]
    assert remedies.close_made_good(batch_max=10) == 1
    case = Case.objects.get()
    assert case.closed_because == f"The customer got it by another refund: {paying.business_key}."
    assert remedies.owe_for_ended(timezone.now(), batch_max=10) == 0
    assert "No money is recorded as owed" in text(cleo.get(f"/orders/4821?remedy_of={first.pk}"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sent", [False, True])
def test_a_first_refund_that_turns_up_stops_its_remedy_or_names_it(
    provider: SandboxProcess, cast: Cast, *, sent: bool
) -> None:
    first = answer_lost(provider, cast, amount_minor=4000)
    fail(first)
    remedies.owe_for_ended(timezone.now(), batch_max=10)
    cleo = signed_in(cast.cleo)
    remedy = proposed(cleo, first)
    approved(remedy, cast.ben)
    if sent:
        assert dispatch.send(str(remedy.pk)) == "confirmed"
    reconciler.look_up(first.pk)
    assert open_reasons(first) == ["remedy", "contradiction"]
    assert propose_refused(cleo, first)
    if sent:
        case = Case.objects.get(operation=first)
        assert f"out already: {remedy.business_key}" in case.because
        assert (open_reasons(remedy), len(provider.refunds())) == ([], 2)
        return
    assert open_reasons(remedy) == ["contradiction"]
    assert dispatch.send(str(remedy.pk)) != "confirmed"
    assert [each["aftersend_operation"] for each in provider.refunds()] == [str(first.pk)]


def propose_refused(client: Client, first: Operation) -> bool:
    return "No money is recorded as owed" in text(client.get(f"/orders/4821?remedy_of={first.pk}"))


@pytest.mark.django_db(transaction=True)
def test_a_remedy_that_comes_back_is_owed_by_the_case_that_is_open_and_by_no_second(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    part = proposed(cleo, first, amount="25.00")
    approved(part, cast.ben)
    assert dispatch.send(str(part.pk)) == "confirmed"
    [refund] = provider.refunds()
    turn(provider, refund["id"], "failed")
    reconciler.look_up(part.pk)
    assert Operation.objects.get(pk=part.pk).state == states.RETURNED
    assert (open_reasons(first), open_reasons(part)) == (["remedy"], [])
    assert propose_refused(cleo, part)
    assert form_of(cleo, first)["amount"] == "40.00"


@pytest.mark.django_db(transaction=True)
def test_what_a_remedy_has_paid_is_not_paid_another_way_before_its_case_is_closed(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    first = failed(cast)
    remedy = proposed(signed_in(cast.cleo), first)
    approved(remedy, cast.ben)
    assert dispatch.send(str(remedy.pk)) == "confirmed"
    owed = Case.objects.get(closed_at=None)
    with pytest.raises(Refusal, match="paid for it already"):
        ruled(owed, cast.ben, "remedy", kind="voucher", reference="V-2210")
    assert remedies.close_made_good(batch_max=10) == 1


@pytest.mark.django_db(transaction=True)
def test_a_returned_remedy_owes_nothing_once_the_first_refund_turned_up(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, remedy = paid_instead(provider, cast)
    cleo = signed_in(cast.cleo)
    back = provider.refunds()[-1]
    assert back["aftersend_operation"] == str(remedy.pk)
    turn(provider, back["id"], "failed")
    reconciler.look_up(remedy.pk)
    assert open_reasons(remedy) == ["remedy"]
    assert not propose_refused(cleo, remedy)
    reconciler.look_up(first.pk)
    assert propose_refused(cleo, remedy)
    later(provider, 3601)
    look_up_due()
    assert Operation.objects.get(pk=first.pk).state == states.SUCCEEDED
    assert propose_refused(cleo, remedy)
    assert remedies.close_made_good(batch_max=10) == 1
    assert open_reasons(remedy) == []
    assert first.business_key in Case.objects.get(operation=remedy).closed_because


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sent", [False, True])
def test_a_remedy_that_turns_up_stops_the_one_that_took_its_place_or_names_it(
    provider: SandboxProcess, cast: Cast, *, sent: bool
) -> None:
    provider.payment()
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    lost = proposed(cleo, first)
    approved(lost, cast.ben)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(lost.pk)) == "unanswered"
    fail(lost)
    assert propose(cleo, first).status_code == 303
    instead = Operation.objects.filter(remedy_of=first).latest("created_at")
    approved(instead, cast.ben)
    if sent:
        assert dispatch.send(str(instead.pk)) == "confirmed"
    reconciler.look_up(lost.pk)
    assert open_reasons(lost) == ["contradiction"]
    if sent:
        assert f"out already: {instead.business_key}" in Case.objects.get(operation=lost).because
        return
    assert open_reasons(instead) == ["contradiction"]
    Payment.objects.update(halted=False)
    assert dispatch.send(str(instead.pk)) != "confirmed"


@pytest.mark.django_db(transaction=True)
def test_a_remedy_beside_one_that_turns_up_goes_on_where_both_are_owed(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    lost = proposed(cleo, first, amount="25.00")
    approved(lost, cast.ben)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(lost.pk)) == "unanswered"
    fail(lost)
    assert propose(cleo, first, amount="15.00").status_code == 303
    rest = Operation.objects.filter(remedy_of=first).latest("created_at")
    reconciler.look_up(lost.pk)
    assert (open_reasons(lost), open_reasons(rest)) == (["contradiction"], [])


@pytest.mark.django_db(transaction=True)
def test_a_first_refund_that_turns_up_stops_the_remedy_of_its_remedy(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, remedy = paid_instead(provider, cast)
    cleo = signed_in(cast.cleo)
    turn(provider, provider.refunds()[-1]["id"], "failed")
    reconciler.look_up(remedy.pk)
    again = proposed(cleo, remedy)
    reconciler.look_up(first.pk)
    assert open_reasons(again) == ["contradiction"]
    # Nor is it owed another way while nobody knows what became of the first.
    owed = Case.objects.get(operation=remedy, closed_at=None)
    with pytest.raises(Refusal, match="make good for it already"):
        ruled(owed, cast.ben, "remedy", kind="voucher", reference="V-2210")
