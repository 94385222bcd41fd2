"""Proposing a refund on an order's page, and freezing the order: what one press does, and does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from refunds import dispatch, freezing
from refunds.domain import states
from refunds.models import Operation, Order, Payment, Person, Proposal
from review.intent import digest_of
from review.models import Intent, RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.page import Page
from tests.provider_process import SandboxProcess

HTMX: Any = {"HX-Request": "true"}
WISH = {
    "amount": "79.00",
    "reason_code": "damaged_item",
    "reason_text": "The jug is cracked.",
    "ticket_ref": "T-551",
    "asked_by": "customer",
}
ILL_FORMED: list[tuple[dict[str, str], str, str]] = [
    ({"amount": "129.01"}, "Only 129.00 USD is still refundable", "amount"),
    ({"amount": "79,00"}, "is not an amount", "amount"),
    ({"amount": "79.001"}, "has 2 digits after the point", "amount"),
    ({"amount": ""}, "No amount was typed.", "amount"),
    (
        {"amount": " ", "reason_code": ""},
        "No amount was typed and no reason was chosen.",
        "amount",
    ),
    ({"amount": "0"}, "The amount is zero", "amount"),
    ({"reason_code": ""}, "No reason was chosen", "reason_code"),
    ({"reason_code": "other", "reason_text": "no"}, "10 characters or more", "reason_text"),
    ({"reason_text": "4111 1111 1111 1111"}, "card number", "reason_text"),
    ({"ticket_ref": "x" * 129}, "128 are allowed", "ticket_ref"),
    ({"payment": "77"}, "No payment was chosen", ""),
    ({"separate_from": "me"}, "The tick named no refund", ""),
]


def _page(client: Client, url: str = "/orders/4821") -> Page:
    answer = client.get(url)
    return Page(url, answer.status_code, text(answer))


def _propose(client: Client, ref: str = "4821", **more: str) -> Any:
    """Open the order, fill its propose form, and press once; redirects are not followed."""
    fields = form_on(text(client.get(f"/orders/{ref}")), f"/propose/{ref}")
    return client.post(f"/propose/{ref}", fields | WISH | more)


def _result(client: Client, answer: Any) -> str:
    assert answer.status_code == 303, text(answer)
    return Page(answer["Location"], 200, text(client.get(answer["Location"]))).part("result")


# Proposing


@pytest.mark.django_db
def test_a_person_proposes_and_sees_the_state_as_it_was_read_back(cast: Cast) -> None:
    build.order()
    cleo = signed_in(cast.cleo)
    answer = _propose(cleo)
    result = _result(cleo, answer)
    assert "Nothing is sent until it is approved." in result
    assert "awaiting approval" in result
    operation = Operation.objects.get()
    assert (operation.amount_minor, operation.currency) == (7900, "USD")
    assert (operation.requested_by_kind, operation.requested_by_ref) == ("customer", "cus_4821")
    assert (operation.proposer, operation.ticket_ref) == (cast.cleo, "T-551")
    assert operation.reason_text == "The jug is cracked."
    assert Proposal.objects.get().tool_call_id == str(Intent.objects.get().pk)


@pytest.mark.django_db
def test_the_same_press_twice_is_one_proposal(cast: Cast) -> None:
    build.order()
    cleo = signed_in(cast.cleo)
    fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821") | WISH
    cleo.post("/propose/4821", fields)
    again = cleo.post("/propose/4821", fields | {"amount": "1.00"})
    assert "This second press changed nothing." in _result(cleo, again)
    assert Operation.objects.count() == 1


@pytest.mark.django_db
def test_an_equal_refund_that_is_open_is_shown_instead_of_a_second_one(cast: Cast) -> None:
    build.order()
    first = build.proposed(cast.echo)
    answer = _propose(signed_in(cast.cleo))
    page = Page("/propose/4821", answer.status_code, text(answer))
    assert page.status == 409
    assert "Nothing has been approved or sent." in page.part("result")
    assert "An equal refund of 79.00 USD on payment pi_4821 has not ended" in page.part("result")
    assert "it is awaiting approval." in page.part("result")
    assert first.business_key not in page.part("result")
    assert f'href="/operations/{first.pk}"' in page.html
    assert page.form("propose-form").values["amount"] == "79.00"
    assert page.form("propose-form").values["reason_text"] == "The jug is cracked."
    assert Operation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_equal_refund_that_ended_lately_needs_a_tick_that_says_it_is_separate(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order(captured_minor=30000)
    provider.payment("pi_4821", 30000)
    first = build.authorized(cast.echo, cast.ben)
    dispatch.send(str(first.pk))
    cleo = signed_in(cast.cleo)
    asked = _propose(cleo)
    page = Page("/propose/4821", asked.status_code, text(asked))
    assert page.status == 409
    assert "Nothing was created" in page.part("result")
    assert Operation.objects.count() == 1
    form = page.form("propose-form")
    assert form.boxes == {"separate_from": str(first.pk)}
    answer = cleo.post("/propose/4821", form.values | form.boxes)
    assert answer.status_code == 303
    second = Operation.objects.exclude(pk=first.pk).get()
    assert second.separate_from_id == first.pk
    assert second.possible_repeat


@pytest.mark.django_db
def test_what_policy_refuses_is_shown_with_the_checks_that_failed(cast: Cast) -> None:
    old = timezone.now() - timedelta(days=400)
    build.order()
    Payment.objects.update(captured_at=old)
    cleo = signed_in(cast.cleo)
    result = _result(cleo, _propose(cleo))
    assert "Policy refused it" in result
    assert "refund age\nrefused" in result or "refund age refused" in result
    assert Operation.objects.get().state == states.DENIED


@pytest.mark.django_db
def test_what_is_not_well_formed_is_said_at_its_field_and_the_text_is_kept(cast: Cast) -> None:
    build.order()
    cleo = signed_in(cast.cleo)
    for typed, says, field in ILL_FORMED:
        fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821")
        answer = cleo.post("/propose/4821", fields | WISH | typed)
        page = Page("/propose/4821", answer.status_code, text(answer))
        assert page.status == 422, typed
        assert says in page.part("result"), typed
        assert page.form("propose-form").values["amount"] == (WISH | typed)["amount"]
        if field:
            at = page.html.index(f'id="{field}"')
            assert 'aria-invalid="true"' in page.html[at : page.html.index(">", at)], typed
    assert not Operation.objects.exists()
    assert not Intent.objects.exists()


@pytest.mark.django_db
def test_a_balance_that_moved_while_the_form_was_open_records_nothing(cast: Cast) -> None:
    build.order()
    cleo = signed_in(cast.cleo)
    fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821") | WISH
    build.external_refund("4821", 2900)
    answer = cleo.post("/propose/4821", fields, headers=HTMX)
    page = Page("/propose/4821", answer.status_code, text(answer))
    assert page.status == 409
    assert "changed from 129.00 USD to 100.00 USD while this form was open" in page.text
    assert page.form("propose-form").values["reason_text"] == "The jug is cracked."
    assert not Operation.objects.exists()
    assert cleo.post("/propose/4821", page.form("propose-form").values).status_code == 303


@pytest.mark.django_db
def test_facts_that_moved_without_the_balance_stop_the_press_too(cast: Cast) -> None:
    build.order(return_state="requested")
    cleo = signed_in(cast.cleo)
    fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821") | WISH
    build.order(return_state="received")
    answer = cleo.post("/propose/4821", fields)
    assert answer.status_code == 409
    assert "order 4821 is at version 2 now" in text(answer)
    assert not Operation.objects.exists()


@pytest.mark.django_db
def test_with_several_payments_one_is_chosen_by_the_person(cast: Cast) -> None:
    build.order()
    build.order(payment_ref="pi_second", captured_minor=9000)
    cleo = signed_in(cast.cleo)
    form = _page(cleo).form("propose-form")
    assert "payment" not in form.values
    nobody = cleo.post("/propose/4821", form.values | WISH)
    assert nobody.status_code == 422
    second = Payment.objects.get(ref="pi_second")
    form = _page(cleo).form("propose-form")
    cleo.post("/propose/4821", form.values | WISH | {"payment": str(second.pk)})
    assert Operation.objects.get().payment == second


# Reps, and who may not


@pytest.mark.django_db(transaction=True)
def test_a_rep_proposes_from_the_reduced_page_but_never_beside_a_doubt(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order()
    provider.payment()
    rosa = signed_in(cast.rosa)
    page = _page(rosa)
    assert "Refundable now\n129.00 USD" in page.part("balance")
    assert "Captured" not in page.part("balance")
    assert "versions" not in page.html
    open_form = page.form("propose-form").values | WISH | {"amount": "10.00"}
    assert rosa.post("/propose/4821", open_form).status_code == 303
    drawn = _page(rosa).form("propose-form").values | WISH | {"amount": "11.00"}
    unknown = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_after_commit")
    dispatch.send(str(unknown.pk))
    assert not has_form(_page(rosa).html, "/propose/4821")
    payment = Payment.objects.get()
    version = Order.objects.get().version
    forced = drawn | {
        "obj_version": str(version),
        f"shown-{payment.pk}": str(payment.available_minor),
        "shown_digest": _forged_digest(cast.rosa, payment),
    }
    answer = rosa.post("/propose/4821", forced)
    assert answer.status_code == 409
    assert "Not while it is open whether a refund of this payment has happened." in text(answer)
    assert Operation.objects.count() == 2
    assert _propose(signed_in(cast.cleo), amount="11.00").status_code == 303


def _forged_digest(reader: Person, payment: Payment, *, frozen: bool = False) -> str:
    """The digest that the reader's page would carry if it drew the form."""
    return digest_of(
        reader.pk, "4821", frozen, [[payment.pk, payment.state, payment.available_minor]]
    )


@pytest.mark.django_db
def test_who_may_read_but_not_propose_is_told_who_can_and_the_try_is_kept(cast: Cast) -> None:
    build.order()
    fay = signed_in(cast.fay)
    assert "It needs the role rep or support lead" in _page(fay).part("propose")
    answer = fay.post("/propose/4821", _csrf(fay) | WISH)
    assert answer.status_code == 403
    assert RefusedAct.objects.get().act == "propose"
    dora = signed_in(cast.dora)
    assert dora.get("/orders/4821").status_code == 404
    assert dora.post("/propose/4821", _csrf(dora) | WISH).status_code == 404
    assert signed_in(cast.rosa).get("/orders").status_code == 403
    assert signed_in(cast.ben).get("/orders/nowhere").status_code == 404


def _csrf(client: Client) -> dict[str, str]:
    return {
        "csrfmiddlewaretoken": form_on(text(client.get("/")), "/sign-out")["csrfmiddlewaretoken"]
    }


# Freezing


@pytest.mark.django_db
def test_an_ops_lead_freezes_an_order_and_lifts_it_with_a_reason_each_time(cast: Cast) -> None:
    build.order()
    build.proposed(cast.echo)
    ines = signed_in(cast.ines)
    page = _page(ines)
    assert (
        "No refund can be proposed, approved or sent for order 4821 until someone lifts this."
        " 1 waiting proposal will show as stale." in page.part("freeze-c")
    )
    form = page.form("freeze-form").values
    short = ines.post("/freeze/4821", form | {"reason": "no"})
    assert short.status_code == 422
    assert "10 characters" in text(short)
    answer = ines.post("/freeze/4821", form | {"reason": "Two parcels, one number."})
    assert "Frozen at" in _result(ines, answer)
    assert Order.objects.get().frozen
    cleo = signed_in(cast.cleo)
    assert not has_form(_page(cleo).html, "/propose/4821")
    assert "is frozen by a person" in _page(cleo).part("propose")
    lifted = _page(ines).form("unfreeze-form").values | {"reason": "It was one parcel after all."}
    assert "The freeze was lifted" in _result(ines, ines.post("/unfreeze/4821", lifted))
    assert not Order.objects.get().frozen
    history = _page(ines).part("versions")
    assert "Refunds of this order were frozen by ines" in history
    assert "“Two parcels, one number.”" in history


@pytest.mark.django_db
def test_a_frozen_order_takes_no_proposal_from_a_page_that_was_drawn_before(cast: Cast) -> None:
    order = build.order()
    cleo = signed_in(cast.cleo)
    fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821") | WISH
    freezing.freeze("4821", cast.ines, reason="Two parcels, one number.", version=order.version)
    assert cleo.post("/propose/4821", fields).status_code == 409
    forged = {
        "obj_version": str(Order.objects.get().version),
        "shown_digest": _forged_digest(cast.cleo, Payment.objects.get(), frozen=True),
    }
    answer = cleo.post("/propose/4821", fields | forged)
    assert answer.status_code == 409
    assert "Not recorded. Order 4821 is frozen by a person" in text(answer)
    assert not Operation.objects.exists()


@pytest.mark.django_db
def test_freezing_needs_its_role(cast: Cast) -> None:
    build.order()
    ben = signed_in(cast.ben)
    assert not has_form(_page(ben).html, "/freeze/4821")
    for person in (cast.ben, cast.rosa, cast.omar):
        client = signed_in(person)
        answer = client.post("/freeze/4821", _csrf(client) | {"reason": "Because I say so."})
        assert answer.status_code == 403
    assert not Order.objects.get().frozen
