"""What is typed stays: after a pause, a reload, an ended session, and with scripts off."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from refunds import approvals
from refunds.domain import states
from refunds.models import Operation
from review.models import Draft, Intent
from tests import build
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.cast import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = ("The parcel came back to us unopened, and the customer kept the shoes as well. " * 7)[:500]


@pytest.fixture
def waiting(stage: Stage) -> Operation:
    return stage.proposed("one", "A-1", 1000, by="foxtrot")


def _open(page: Page, operation: Operation) -> None:
    page.goto(f"/approvals?open={operation.pk}")


def _type(page: Page, words: str) -> None:
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why it is not owed").fill(words)


def _sign_in(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def _unmoved(operation: Operation) -> bool:
    state = Operation.objects.get(pk=operation.pk).state
    return state == states.AWAITING_APPROVAL and not Intent.objects.exists()


def test_a_text_is_kept_by_itself_and_is_restored_kept_or_discarded(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    _type(page, TEXT)
    with page.expect_response(lambda answer: answer.url.endswith("/drafts")) as saved:
        pass
    assert saved.value.status == 204
    page.reload()
    expect(page.locator("[data-draft-note]")).to_contain_text("restored. It was not submitted.")
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT)
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("[data-draft-note]")).to_have_count(0)
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT)
    page.reload()
    page.get_by_role("button", name="Discard the draft").click()
    expect(page.locator("#said")).to_have_text("Draft discarded")
    expect(page.get_by_label("Why it is not owed")).to_have_value("")
    page.reload()
    expect(page.locator("[data-draft-note]")).to_have_count(0)
    assert _unmoved(waiting)


def test_leaving_the_page_at_once_keeps_the_text_too(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    _type(page, TEXT)
    page.goto("/unknown")
    _open(page, waiting)
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT)


def test_a_session_that_ends_while_500_characters_are_typed_loses_and_submits_nothing(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    _type(page, TEXT[:250])
    page.context.clear_cookies(name="sessionid")
    page.get_by_label("Why it is not owed").press_sequentially(TEXT[250:])
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("#slot")).to_contain_text("Nothing was lost and nothing was submitted")
    _sign_in(page, "cleo")
    expect(page.locator("#slot")).to_contain_text("Signed in as cleo")
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT)
    assert _unmoved(waiting)
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("#result")).to_contain_text("Rejected. Nothing was sent.")
    assert not Draft.objects.exists()


def test_without_scripts_the_text_is_there_after_the_sign_in_page_and_for_nobody_else(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo", scripts=False)
    _open(page, waiting)
    _type(page, TEXT)
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("main")).to_contain_text("What you typed is kept")
    assert _unmoved(waiting)
    _sign_in(page, "cleo")
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT.strip())
    expect(page.locator("[data-draft-note]")).to_contain_text("It was not submitted")
    other = visitors.sign_in("ben", scripts=False)
    _open(other, waiting)
    assert TEXT[:40] not in other.content()
    page.get_by_role("button", name="Discard the draft").click()
    expect(page.locator("[data-draft-note]")).to_have_count(0)


def test_a_poll_touches_neither_text_nor_caret_nor_the_rows(
    visitors: Visitors, stage: Stage, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    _type(page, TEXT[:60])
    page.evaluate("document.querySelector('#reason').setSelectionRange(7, 7)")
    before = page.locator("#queue-rows").inner_text()
    stage.proposed("two", "A-9", 1100, by="omar")
    with page.expect_response(lambda answer: "since=" in answer.url, timeout=15000):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('heartbeat'))")
    expect(page.locator("#list-poll")).to_contain_text("show")
    assert page.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == [
        "reason",
        7,
    ]
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT[:60])
    assert page.locator("#queue-rows").inner_text() == before
    page.keyboard.press("Tab")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    expect(page.locator("#queue-rows")).to_contain_text("A-9")


def test_after_three_missed_polls_the_page_is_stale_and_takes_no_press_until_it_is_live_again(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    page.route("**/approvals?**since=**", lambda route: route.abort())
    for _ in range(3):
        with page.expect_event("requestfailed"):
            page.evaluate("document.body.dispatchEvent(new CustomEvent('heartbeat'))")
    expect(page.locator("#not-live")).to_contain_text(
        "What you see may be out of date. Actions are off until we are connected again."
    )
    page.get_by_role("button", name="Approve refund of").click(force=True)  # it looks switched off
    assert page.evaluate("document.activeElement.id") == "not-live"
    assert _unmoved(waiting)
    page.unroute("**/approvals?**since=**")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('heartbeat'))")
    expect(page.locator("#not-live")).to_have_count(0)
    visitors.complaints.clear()  # the browser names the requests that we cut
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#result")).to_contain_text("Approved at")


def test_what_is_under_the_pointer_stays_and_says_that_it_changed(
    visitors: Visitors, stage: Stage
) -> None:
    operation = stage.proposed("one", "A-1", 1000, by="foxtrot")
    page = visitors.sign_in("cleo")
    page.goto(f"/operations/{operation.pk}")
    page.locator("#status-panel").hover()
    approvals.approve(operation.pk, stage.cast.ada, build.shown(operation))
    page.evaluate("document.body.dispatchEvent(new CustomEvent('heartbeat'))")
    expect(page.locator("#acts")).to_contain_text("The buttons are off")
    expect(page.locator("#status-panel[data-behind]")).to_contain_text("awaiting approval")
    page.get_by_role("link", name="Show what changed").click()
    expect(page.locator("#status-panel")).to_contain_text("authorized")


def test_a_hidden_page_asks_for_nothing(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo")
    page.goto(f"/operations/{waiting.pk}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "pulse.next_at = 0; beat(performance.now())"
    )
    assert asked == []
    with page.expect_request(lambda request: "since=" in request.url):
        page.evaluate(
            "delete document.hidden; dispatchEvent(new Event('visibilitychange')); beat(performance.now())"
        )


def test_a_plain_form_whose_answer_is_lost_says_so_and_is_not_offered_again(
    visitors: Visitors, stage: Stage
) -> None:
    page = visitors.sign_in("cleo")
    page.goto("/sending")
    page.locator("#stop-reason").fill("Something is wrong with the prices.")

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/sending/stop", lose_the_answer)
    page.get_by_role("button", name="Stop all sending").click()
    expect(page.locator("#slot")).to_contain_text("We could not tell whether your action")
    expect(page.get_by_role("button", name="Stop all sending")).to_be_disabled()
    visitors.complaints.clear()  # the browser names the request that we cut
    page.get_by_role("link", name="Check what was recorded").click()
    expect(page.locator("main")).to_contain_text("It was recorded")
    page.get_by_role("link", name="See where it stands").click()
    expect(page.locator("main")).to_contain_text("Stopped since")


def test_a_plain_form_that_is_refused_keeps_its_text_and_takes_the_focus_to_the_reason(
    visitors: Visitors, stage: Stage
) -> None:
    page = visitors.sign_in("cleo")
    page.goto("/sending")
    page.locator("#stop-reason").fill("short")
    page.get_by_role("button", name="Stop all sending").dblclick()
    expect(page.locator("#result")).to_contain_text("10 characters or more")
    assert "10 characters" in page.evaluate("document.activeElement.textContent")
    expect(page.locator("#stop-reason")).to_have_value("short")
    page.locator("#stop-reason").fill("Something is wrong with the prices.")
    page.get_by_role("button", name="Stop all sending").click()
    expect(page.locator("main")).to_contain_text("Stopped since")
    assert Intent.objects.count() == 1
