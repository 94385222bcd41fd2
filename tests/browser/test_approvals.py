"""Approvals and my work at a real browser: several at once, what others handle, keys, and phones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings
from playwright.sync_api import Page, expect

from refunds import approvals
from refunds.domain import states
from refunds.models import Approval, Operation
from review.models import Intent
from tests import build
from tests.browser.looking import NARROW, WIDE, look
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.cast import Cast


@pytest.fixture
def two(stage: Stage) -> list[Operation]:
    """Two small proposals of one agent."""
    return [
        stage.proposed("one", "A-1", 1000, by="foxtrot"),
        stage.proposed("two", "A-2", 1200, by="foxtrot"),
    ]


def _tick_all(page: Page) -> None:
    page.goto("/approvals")
    for box in page.locator("[data-tick]").all():
        box.check()


def _states(operations: list[Operation]) -> set[str]:
    ids = [each.pk for each in operations]
    return set(Operation.objects.filter(pk__in=ids).values_list("state", flat=True))


@pytest.mark.parametrize("scripts", [True, False])
def test_ticked_reviewed_and_approved_by_one_press(
    visitors: Visitors, two: list[Operation], scripts: bool
) -> None:
    page = visitors.sign_in("cleo", scripts=scripts)
    _tick_all(page)
    page.get_by_role("button", name="Review the ticked").click()
    expect(page.get_by_role("heading", name="Review 2 refunds")).to_be_visible()
    assert _states(two) == {states.AWAITING_APPROVAL}
    page.get_by_role("button", name="Approve 2 refunds, 22.00 USD").dblclick()
    expect(page.locator("#result")).to_be_visible()
    expect(page.get_by_role("heading", name="What was approved together")).to_be_visible()
    assert _states(two) == {states.AUTHORIZED}
    assert Approval.objects.count() == 2
    assert Intent.objects.count() == 1


@pytest.mark.parametrize("width", [1440, 720])
def test_reviewing_is_readable_by_everybody(
    visitors: Visitors, two: list[Operation], width: int
) -> None:
    page = visitors.sign_in("cleo", width=width)
    _tick_all(page)
    look(page, "Every one is listed again before anything is recorded")
    page.get_by_role("button", name="Review the ticked").click()
    look(page, "2 refunds, 22.00 USD in total")
    page.get_by_role("button", name="Remove 12.00 USD on order A-2").click()
    look(page, "1 refund, 10.00 USD in total")
    page.get_by_role("button", name="Approve 1 refund").click()
    look(page, "1 approved")
    page.goto("/approvals")
    page.get_by_role("button", name="Review the ticked").click()
    look(page, "Nothing is ticked")


def test_a_phone_approves_one_at_a_time(visitors: Visitors, two: list[Operation]) -> None:
    page = visitors.sign_in("cleo", width=390)
    page.goto("/approvals")
    look(page, "Approving several at once needs the list beside the boxes")
    expect(page.get_by_role("button", name="Review the ticked")).not_to_be_visible()
    expect(page.locator("[data-tick]").first).not_to_be_visible()
    page.get_by_role("link", name="Open the refund on order A-1").click()
    page.get_by_role("button", name="Approve refund of 10.00 USD").click()
    expect(page.locator("#result")).to_contain_text("Approved at")


def test_no_key_approves(visitors: Visitors, two: list[Operation]) -> None:
    page = visitors.sign_in("cleo")
    page.goto(f"/approvals?open={two[0].pk}")
    for key in ("j", "x", "j", "x", "a", "y", "Enter", "]", "x", "Enter"):
        page.keyboard.press(key)
    # In a tab of its own: the last key may still be on its way to the page of the row.
    other = visitors.another_tab(page)
    other.goto("/approvals")
    for key in ("j", "x", "Enter", "j", "Enter"):
        other.keyboard.press(key)
    for each in (page, other):
        expect(each.locator(f"#row-{two[0].pk}")).to_contain_text("awaiting")
    assert not Approval.objects.exists()


def test_a_row_that_somebody_handled_says_so_and_stays(
    visitors: Visitors, two: list[Operation], cast: Cast
) -> None:
    page, at_home = visitors.sign_in("cleo"), visitors.sign_in("cleo")
    page.goto("/approvals")
    expect(at_home.locator("#count-mine")).to_have_text("2")
    approvals.approve(two[0].pk, cast.ada, build.shown(two[0]))
    handled = page.locator(f"#row-{two[0].pk}")
    expect(handled).to_contain_text("Approved by ada at", timeout=15000)
    expect(page.locator("#queue-rows > tr")).to_have_count(2)
    at_home.bring_to_front()
    expect(at_home.locator("main")).to_contain_text("Handled by ada at", timeout=45000)
    expect(at_home.locator("#count-mine")).to_have_text("1")
    expect(at_home).to_have_title("(1) My work - Aftersend")
    page.reload()
    expect(page.locator("#queue-rows > tr")).to_have_count(1)


@override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))
def test_what_one_pressed_oneself_is_no_news(
    visitors: Visitors, stage: Stage, two: list[Operation]
) -> None:
    page = visitors.sign_in("cleo")
    page.goto(f"/approvals?open={two[0].pk}")
    page.get_by_role("button", name="Approve refund of 10.00 USD").click()
    expect(page.locator("#result")).to_contain_text("Approved at")
    stage.proposed("three", "A-3", 1300, by="omar")
    expect(page.locator("#list-poll")).to_contain_text("1 changed: show", timeout=25000)
    expect(page.get_by_role("button", name="Take the approval back")).to_be_visible()
    expect(page.locator(f"#row-{two[0].pk}")).to_contain_text("Close")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_list_and_every_first_page(visitors: Visitors, stage: Stage, width: int) -> None:
    stage.full()
    page = visitors.sign_in("ada", width=width)
    for address, subject in {
        "/approvals?tab=stale": "Order changed",
        "/approvals?tab=second": "Approved by ada",
        "/approvals?tab=mine": "What you approved or rejected",
        "/": "Returned to me",
    }.items():
        page.goto(address)
        look(page, subject)
    for name, subject in {
        "omar": "Needs a person",
        "mia": "Oldest unresolved",
        "rosa": "What I asked for",
    }.items():
        look(visitors.sign_in(name, width=width), subject)
