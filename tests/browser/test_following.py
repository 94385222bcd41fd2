"""After the press: the page that promised the provider's answer shows it, and polls leave no error."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.test import override_settings
from playwright.sync_api import Page, Route, expect

from refunds import dispatch
from refunds.models import Operation
from tests import build
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.ledger.stage import run

DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))


def _open(page: Page, operation: Operation) -> None:
    page.goto(f"/approvals?open={operation.pk}")
    expect(page.locator("#approval-form")).to_be_visible()


def _beat(page: Page) -> None:
    """One poll and its answer."""
    with page.expect_response(lambda answer: "since=" in answer.url):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('heartbeat'))")


@DELAYED
def test_the_place_of_the_press_shows_what_the_provider_answered(
    visitors: Visitors, stage: Stage
) -> None:
    operation = stage.proposed("one", "A-1", 1000, by="foxtrot")
    page = visitors.sign_in("cleo")
    _open(page, operation)
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#result")).to_contain_text("This page will show the provider’s answer")
    run("UPDATE operation SET not_before = NULL WHERE state = 'authorized'")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    _beat(page)
    expect(page.locator("#result")).to_contain_text("It is succeeded since")
    expect(page.get_by_role("button", name="Take the approval back")).to_have_count(0)
    _beat(page)
    expect(page.locator("#acts")).to_be_empty()


@DELAYED
def test_a_poll_beside_a_press_takes_nothing_from_its_answer(
    visitors: Visitors, stage: Stage
) -> None:
    operation = stage.proposed("one", "A-1", 1000, by="foxtrot")
    page = visitors.sign_in("cleo")
    _open(page, operation)
    held: list[Route] = []
    page.route("**/approve", lambda route: held.append(route))
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("form.htmx-request")).to_have_count(1)
    build.external_refund("A-1", 500)
    _beat(page)
    held[0].continue_()
    expect(page.locator("#result")).to_contain_text("changed from version 1 to 2")
    expect(page.locator(f"#row-{operation.pk}")).to_contain_text("now v2")
