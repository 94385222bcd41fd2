"""Signing in with a real browser: passkeys by Chromium's virtual authenticator, an app's codes,
recovery codes, and the confirmation in place."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from refunds.models import Approval
from tests.browser.looking import NARROW, WIDE, look
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.cast import PASSWORD, Cast
from tests.flows.factors import code, forget_used_codes, with_app


@pytest.fixture
def factors(settings: Any, live_server: Any) -> None:
    """As in production, on the name that passkeys need on plain http."""
    settings.SECOND_FACTOR = True
    settings.BASE_URL = live_server.url


def _with_authenticator(page: Page) -> None:
    """A security key in this browser that always agrees."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def _first_step(page: Page, name: str, *, wanted: str = "/") -> None:
    page.goto(f"/sign-in?next={wanted}")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def _sign_out(page: Page) -> None:
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_passkey_is_set_up_and_signs_in(visitors: Visitors, factors: None) -> None:
    page = visitors.page()
    _with_authenticator(page)
    _first_step(page, "cleo")
    look(page, "Who decides about money needs a second factor")
    page.get_by_label("Its name").fill("blue key")
    page.get_by_role("button", name="Add a passkey").click()
    look(page, "Your recovery codes")
    expect(page.locator("ol.codes li")).to_have_count(10)
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_role("heading", name="My work")).to_be_visible()
    _sign_out(page)
    _first_step(page, "cleo", wanted="/approvals")
    look(page, "One more step")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url("**/approvals")
    page.goto("/account/second-factor")
    look(page, "blue key")
    page.goto("/account")
    look(page, "set up")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_an_app_is_set_up_from_the_page_and_its_code_signs_in(
    visitors: Visitors, factors: None, width: int
) -> None:
    page = visitors.page(width=width)
    _first_step(page, "fay")
    look(page, "Add an authenticator app")
    secret = page.locator("code.id").inner_text()
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Add the app").click()
    look(page, "That code does not fit")
    page.get_by_label("Code").fill(code(secret))
    page.get_by_role("button", name="Add the app").click()
    look(page, "Your recovery codes")
    recovery = page.locator("ol.codes li").first.inner_text()
    page.get_by_role("link", name="I have kept them").click()
    _sign_out(page)
    _first_step(page, "fay")
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Sign in").click()
    look(page, "That code does not fit")
    page.get_by_label("Code").fill(recovery)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="My work")).to_be_visible()


def test_a_session_that_ended_comes_back_in_two_steps_with_the_text_kept(
    visitors: Visitors, stage: Stage, cast: Cast, factors: None
) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    secret = with_app(cast.cleo)
    page = visitors.page()
    _first_step(page, "cleo")
    page.get_by_label("Code").fill(code(secret))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/$"))
    page.goto(f"/approvals?open={operation.pk}")
    page.locator("summary", has_text="Reject").click()
    words = "The parcel never came back to us. " * 15
    page.get_by_label("Why it is not owed").fill(words[:480])
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.get_by_text("Nothing was lost and nothing was submitted")).to_be_visible()
    page.get_by_label("Name").fill("cleo")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    look(page, "Second step. Your text below is kept.")
    forget_used_codes()
    page.get_by_label("Code").fill(code(secret))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Your text is still here and was not submitted")).to_be_visible()
    assert page.get_by_label("Why it is not owed").input_value() == words[:480]
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.get_by_text("Nothing was sent").first).to_be_visible()
    operation.refresh_from_db()
    assert operation.state == "rejected"


def test_a_confirmation_comes_in_place_and_executes_nothing(
    visitors: Visitors, stage: Stage, cast: Cast, factors: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = stage.proposed("two", "U-1", 19900, captured_minor=24900)
    secret = with_app(cast.cleo)
    page = visitors.page()
    _first_step(page, "cleo")
    page.get_by_label("Code").fill(code(secret))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/$"))
    page.goto(f"/approvals?open={operation.pk}")
    expect(page.get_by_text("Confirmed,")).to_be_visible()
    forget_used_codes()
    monkeypatch.setattr("review.step_up.STEP_UP_SECONDS", -1)
    page.get_by_role("button", name="Approve refund of").click()
    look(page, "Confirm that it is you")
    assert not Approval.objects.exists()
    monkeypatch.undo()
    page.get_by_label("Code").fill(code(secret))
    page.get_by_role("button", name="Confirm", exact=True).click()
    look(page, "Nothing was recorded yet: look at it, and press again")
    assert not Approval.objects.exists()
    expect(page.get_by_role("button", name="Approve refund of")).to_be_focused()
    expect(page.locator("#confirmed")).to_contain_text("s left")
    with page.expect_response("**/approve") as answered:
        page.get_by_role("button", name="Approve refund of").click()
    assert answered.value.status == 200
    assert Approval.objects.count() == 1


def test_people_and_roles_and_the_confirmation_page(visitors: Visitors, cast: Cast) -> None:
    for width in (WIDE, NARROW):
        page = visitors.sign_in("adam", width=width)
        page.goto("/people")
        look(page, "People and roles")
        page.locator("summary", has_text="Change").first.click()
        look(page, "nothing changes until another admin")
        page.goto("/confirm?next=/people")
        look(page, "Confirm it is you")
