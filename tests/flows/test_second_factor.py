"""A second factor at sign-in, for everybody who decides, and again before what cannot be undone."""

from __future__ import annotations

import time
from typing import Any

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.test import Client

from refunds.domain import states
from refunds.ledger import sending
from refunds.models import Approval, Operation, SendingStop
from tests import build
from tests.cast import PASSWORD, Cast
from tests.flows.console import drawn, form_on, opened, press, signed_in, text, try_password, url
from tests.flows.factors import (
    code,
    factors_of,
    only_factor,
    second_step,
    signed_in_twice,
    with_app,
    with_codes,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def factors(settings: Any) -> None:
    """As in production: second factors are on."""
    settings.SECOND_FACTOR = True


def _age_proofs(client: Client, seconds: int) -> None:
    session = client.session
    records = session[AUTHENTICATION_METHODS_SESSION_KEY]
    session[AUTHENTICATION_METHODS_SESSION_KEY] = [
        record | {"at": record["at"] - seconds} for record in records
    ]
    session.save()


def _two_lead_proposal(cast: Cast) -> Operation:
    build.order("U-1", captured_minor=24900)
    operation = build.proposed(cast.foxtrot, "U-1", 19900)
    assert operation.tier == 2
    return operation


# Signing in


def test_a_password_alone_does_not_sign_in_whoever_has_an_app(cast: Cast, factors: None) -> None:
    secret = with_app(cast.cleo)
    client = Client(enforce_csrf_checks=True)
    answer = try_password(client, "cleo", PASSWORD)
    assert answer["Location"] == "/sign-in/second"
    assert client.get("/approvals").status_code == 302
    key = client.session.session_key
    answer = second_step(client, code=code(secret))
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.session.session_key != key
    assert client.get("/approvals").status_code == 200


def test_a_wrong_code_says_so_and_the_sixth_one_waits(cast: Cast, factors: None) -> None:
    secret = with_app(cast.cleo)
    client = Client(enforce_csrf_checks=True)
    try_password(client, "cleo", PASSWORD)
    for _ in range(5):
        answer = second_step(client, code="000000")
        assert answer.status_code == 422
        assert "That code does not fit" in text(answer)
    answer = second_step(client, code=code(secret))
    assert answer.status_code == 429
    assert "Try again in 15 min" in text(answer)


def test_the_wanted_page_waits_behind_both_steps(cast: Cast, factors: None) -> None:
    secret = with_app(cast.cleo)
    client = Client(enforce_csrf_checks=True)
    fields = form_on(text(client.get("/sign-in?next=/approvals%3Ftab%3Dall")), "/sign-in")
    client.post("/sign-in", fields | {"username": "cleo", "password": PASSWORD})
    assert second_step(client, code=code(secret))["Location"] == "/approvals?tab=all"


def test_a_code_counts_once_and_a_second_press_lands_where_the_first_did(
    cast: Cast, factors: None
) -> None:
    secret = with_app(cast.cleo)
    client = Client(enforce_csrf_checks=True)
    try_password(client, "cleo", PASSWORD)
    fields = form_on(text(client.get("/sign-in/second")), "/sign-in/second")
    shown = code(secret)
    first = client.post("/sign-in/second", fields | {"code": shown})
    token = client.cookies["csrftoken"].value
    again = client.post("/sign-in/second", fields | {"code": shown, "csrfmiddlewaretoken": token})
    assert first["Location"] == again["Location"] == "/"
    other = Client(enforce_csrf_checks=True)
    try_password(other, "cleo", PASSWORD)
    assert second_step(other, code=shown).status_code == 422


def test_a_recovery_code_signs_in_once(cast: Cast, factors: None) -> None:
    with_app(cast.cleo)
    codes = with_codes(cast.cleo)
    client = Client(enforce_csrf_checks=True)
    try_password(client, "cleo", PASSWORD)
    assert second_step(client, code=codes[0]).status_code == 302
    other = Client(enforce_csrf_checks=True)
    try_password(other, "cleo", PASSWORD)
    assert second_step(other, code=codes[0]).status_code == 422
    assert second_step(other, code=codes[1]).status_code == 302


def test_the_second_step_comes_in_place_over_a_kept_form(cast: Cast, factors: None) -> None:
    secret = with_app(cast.cleo)
    client = Client(enforce_csrf_checks=True)
    ended = client.get("/approvals", headers={"HX-Request": "true"})
    fields = form_on(text(ended), "/sign-in") | {"username": "cleo", "password": PASSWORD}
    step = client.post("/sign-in", fields, headers={"HX-Request": "true"})
    assert "<html" not in text(step)
    fields = form_on(text(step), "/sign-in/second")
    wrong = client.post("/sign-in/second", fields | {"code": "1"}, headers={"HX-Request": "true"})
    assert wrong.status_code == 422
    back = client.post(
        "/sign-in/second", fields | {"code": code(secret)}, headers={"HX-Request": "true"}
    )
    assert "Your text is still here and was not submitted" in text(back)
    assert "data-token" in text(back)


# Who must have one


@pytest.mark.parametrize("name", ["ada", "omar", "ines", "fay", "adam"])
def test_who_decides_sets_a_second_factor_up_before_anything_else(
    cast: Cast, factors: None, name: str
) -> None:
    build.order()
    operation = build.proposed(cast.foxtrot)
    client = signed_in(cast.people[name])
    for page in ("/", "/approvals", "/sending", f"/operations/{operation.pk}", "/people"):
        assert client.get(page)["Location"] == "/account/second-factor", page
    client.handler.enforce_csrf_checks = False
    answer = client.post("/sending/stop", {"reason": "A reason of some length."})
    assert answer["Location"] == "/account/second-factor"
    assert not SendingStop.objects.exists()
    assert client.post("/sign-out").status_code == 302


@pytest.mark.parametrize("name", ["rosa", "mia", "dora"])
def test_who_decides_nothing_may_go_without(cast: Cast, factors: None, name: str) -> None:
    assert signed_in(cast.people[name]).get("/").status_code == 200


def test_setting_up_an_app_shows_the_recovery_codes_once(cast: Cast, factors: None) -> None:
    ada = signed_in(cast.ada)
    other = signed_in(cast.ada)
    page = text(ada.get("/account/second-factor"))
    secret = page.split('Secret: <code class="id">')[1].split("<")[0]
    fields = form_on(page, "/account/second-factor/app")
    wrong = ada.post("/account/second-factor/app", fields | {"code": "000000"})
    assert wrong.status_code == 422
    assert secret in text(wrong)
    done = ada.post("/account/second-factor/app", fields | {"code": code(secret)})
    assert text(done).count('<li class="id">') == 10
    assert factors_of(cast.ada) == {"totp", "recovery_codes"}
    assert 'class="codes"' not in text(ada.get("/account/second-factor"))
    assert ada.get("/approvals").status_code == 200
    assert other.get("/approvals").status_code == 302, "a session from before it has ended"


def test_who_decides_cannot_remove_the_last_factor(cast: Cast, factors: None) -> None:
    secret = with_app(cast.ada)
    ada = signed_in_twice(cast.ada, secret)
    page = text(ada.get("/account/second-factor"))
    at = page.split('action="/account/second-factor/')[1].split('"')[0]
    address = f"/account/second-factor/{at}"
    answer = ada.post(address, form_on(page, address))
    assert answer.status_code == 422
    assert "add another one first" in text(answer)
    assert factors_of(cast.ada) == {"totp"}


def test_nobody_removes_the_factor_of_somebody_else(cast: Cast, factors: None) -> None:
    secret = with_app(cast.ada)
    with_app(cast.ben)
    ada = signed_in_twice(cast.ada, secret)
    theirs = only_factor(cast.ben)
    ada.handler.enforce_csrf_checks = False
    assert ada.post(f"/account/second-factor/{theirs.pk}/remove").status_code == 404
    assert factors_of(cast.ben) == {"totp"}


def test_secrets_are_not_in_the_database_in_the_clear(cast: Cast) -> None:
    secret = with_app(cast.ada)
    assert secret not in str(only_factor(cast.ada).data)


# Confirm it is you


def test_approving_above_tier_1_asks_again_after_five_minutes(cast: Cast, factors: None) -> None:
    operation = _two_lead_proposal(cast)
    secret = with_app(cast.cleo)
    cleo = signed_in_twice(cast.cleo, secret)
    _age_proofs(cleo, 301)
    answer = press(cleo, operation, "approve")
    assert answer.status_code == 403
    assert answer["Aftersend-Code"] == "step_up_needed"
    assert not Approval.objects.exists()


def test_a_password_is_no_confirmation_where_second_factors_are_on(
    cast: Cast, factors: None
) -> None:
    operation = _two_lead_proposal(cast)
    cleo = signed_in_twice(cast.cleo, with_app(cast.cleo))
    _age_proofs(cleo, 301)
    asked = press(cleo, operation, "approve")
    fields = form_on(text(asked), "/confirm") | {"password": PASSWORD}
    assert cleo.post("/confirm", fields).status_code == 422
    assert press(cleo, operation, "approve").status_code == 403
    assert not Approval.objects.exists()


def test_a_fresh_record_of_a_password_beside_an_old_factor_is_no_confirmation(
    cast: Cast, factors: None
) -> None:
    operation = _two_lead_proposal(cast)
    cleo = signed_in_twice(cast.cleo, with_app(cast.cleo))
    _age_proofs(cleo, 301)
    session = cleo.session
    records = session[AUTHENTICATION_METHODS_SESSION_KEY]
    fresh = {"method": "password", "at": time.time(), "reauthenticated": True}
    session[AUTHENTICATION_METHODS_SESSION_KEY] = [*records, fresh]
    session.save()
    assert press(cleo, operation, "approve").status_code == 403
    assert not Approval.objects.exists()


def test_confirming_executes_nothing_and_brings_everything_back(cast: Cast, factors: None) -> None:
    operation = _two_lead_proposal(cast)
    secret = with_app(cast.cleo)
    cleo = signed_in_twice(cast.cleo, secret)
    _age_proofs(cleo, 301)
    asked = press(cleo, operation, "approve", separate_refund_confirmed="on")
    key = cleo.session.session_key
    fields = form_on(text(asked), "/confirm")
    confirmed = cleo.post("/confirm", fields | {"code": code(secret)})
    assert confirmed.status_code == 200
    assert cleo.session.session_key != key
    assert not Approval.objects.exists()
    kept = form_on(text(confirmed), url(operation, "approve"))
    assert kept["separate_refund_confirmed"] == "on"
    assert cleo.post(url(operation, "approve"), kept).status_code == 303
    assert Approval.objects.get().approver == cast.cleo


def test_in_place_only_the_panel_is_answered_and_the_form_stays(cast: Cast, factors: None) -> None:
    operation = _two_lead_proposal(cast)
    secret = with_app(cast.cleo)
    cleo = signed_in_twice(cast.cleo, secret)
    _age_proofs(cleo, 301)
    form = drawn(cleo, operation, "approve")
    asked = cleo.post(url(operation, "approve"), form, headers={"HX-Request": "true"})
    assert (asked.status_code, asked["HX-Retarget"]) == (403, "#slot")
    assert "<html" not in text(asked)
    fields = form_on(text(asked), "/confirm") | {"code": code(secret)}
    done = cleo.post("/confirm", fields, headers={"HX-Request": "true"})
    assert "Nothing was recorded yet: look at it, and press again" in text(done)
    again = cleo.post(url(operation, "approve"), form, headers={"HX-Request": "true"})
    assert again.status_code == 200
    assert Approval.objects.count() == 1


def test_tier_1_needs_no_confirmation(cast: Cast, factors: None) -> None:
    build.order()
    operation = build.proposed(cast.foxtrot)
    cleo = signed_in_twice(cast.cleo, with_app(cast.cleo))
    _age_proofs(cleo, 3_000)
    assert press(cleo, operation, "approve").status_code == 303
    operation.refresh_from_db()
    assert operation.state == states.AUTHORIZED


def test_starting_again_and_resuming_need_a_confirmation(cast: Cast, factors: None) -> None:
    sending.stop_everything(by="omar", reason="Answers do not fit our requests.")
    sending.pause("plain-main", kind="person", reason="A look at its answers.", by="omar")
    ines = signed_in_twice(cast.ines, with_app(cast.ines))
    _age_proofs(ines, 301)
    page = text(ines.get("/sending"))
    for address in ("/sending/start", "/sending/plain-main/resume"):
        assert ines.post(address, form_on(page, address)).status_code == 403
    assert SendingStop.objects.filter(ended_at=None).exists()


def test_while_second_factors_are_off_the_password_confirms_and_the_ribbon_says_so(
    cast: Cast,
) -> None:
    operation = _two_lead_proposal(cast)
    cleo = signed_in(cast.cleo)
    assert "No second factor" in opened(cleo, operation)
    assert "Confirmed, <span" in opened(cleo, operation)
    _age_proofs(cleo, 301)
    assert "Confirmed, <span" not in opened(cleo, operation)
    asked = press(cleo, operation, "approve")
    fields = form_on(text(asked), "/confirm")
    assert cleo.post("/confirm", fields | {"password": "wrong"}).status_code == 422
    confirmed = cleo.post("/confirm", fields | {"password": PASSWORD})
    kept = form_on(text(confirmed), url(operation, "approve"))
    assert cleo.post(url(operation, "approve"), kept).status_code == 303


def test_the_proof_of_another_person_counts_for_nothing(cast: Cast) -> None:
    cleo = signed_in(cast.cleo)
    session = cleo.session
    session["account_authentication_methods_user"] = str(cast.ben.pk)
    session.save()
    build.order("U-1", captured_minor=24900)
    operation = build.proposed(cast.foxtrot, "U-1", 19900)
    assert press(cleo, operation, "approve").status_code == 403
