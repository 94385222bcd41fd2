"""The order pages and the rep's page in a real browser: every state of them, and what is pressed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from refunds import dispatch, feed, freezing
from refunds.domain import states
from refunds.models import Operation, Order
from tests import build
from tests.browser.looking import NARROW, WIDE, look
from tests.browser.stage import FACTS, LINES, LINKS, Stage
from tests.browser.visitor import Visitors


def _focused(page: Page) -> str:
    """What the focus stands on says; a page without a focus has it on its body, with all its words."""
    return str(page.evaluate("document.querySelector('body :focus')?.innerText ?? ''"))


@pytest.fixture
def order(stage: Stage) -> Order:
    """Order 4821 with a refund that succeeded, one that nobody knows of, and one made elsewhere."""
    made = build.order(
        return_state="requested",
        fulfilment_state="delivered",
        captured_minor=40000,
        lines=LINES,
        facts=FACTS,
        links=LINKS,
    )
    stage.provider.payment("pi_4821", 40000)
    first = build.authorized(stage.cast.echo, stage.cast.ben, amount_minor=5990)
    dispatch.send(str(first.pk))
    build.external_refund("4821", 2000)
    stage.provider.fault("drop_after_commit", times=1)
    lost = build.authorized(
        stage.cast.echo, stage.cast.ben, stage.cast.cleo, amount_minor=4500, reason_code="other"
    )
    dispatch.send(str(lost.pk))
    assert set(Operation.objects.values_list("state", flat=True)) == {
        states.SUCCEEDED,
        states.UNKNOWN,
    }
    made.refresh_from_db()
    return made


def _several_payments() -> None:
    """Over-refunded, open, and disputed; fed three hours ago."""
    now = timezone.now()
    payments = [("pi_1", "captured", 5000), ("pi_2", "captured", 9000), ("pi_3", "disputed", 7000)]
    feed.upsert(
        feed.OrderSnapshot(
            ref="many/1",
            currency="EUR",
            facts_as_of=now - timedelta(hours=3),
            payments=tuple(
                feed.PaymentSnapshot(
                    ref=ref,
                    provider_account="plain-main",
                    state=state,
                    captured_minor=minor,
                    captured_at=now - timedelta(days=3),
                )
                for ref, state, minor in payments
            ),
            external_refunds=(
                feed.ExternalRefund(
                    payment_ref="pi_1",
                    provider_refund_ref="rf_over",
                    amount_minor=7000,
                    provider_status="succeeded",
                ),
            ),
        ),
        by="shop",
    )


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_order_pages_in_every_state(
    visitors: Visitors, stage: Stage, order: Order, width: int
) -> None:
    page = visitors.sign_in("cleo", width=width)
    page.goto("/orders?q=nothing-like-it")
    look(page, "Nothing begins with or is called")
    _several_payments()
    for url, subject in {
        "/orders": "1 not known yet",
        "/orders/4821": "Counted as spent until we know.",
        "/orders/4821?show=unknown": "refunds whose outcome is unknown",
        "/orders/many/1": "Over-refunded.",
    }.items():
        page.goto(url)
        look(page, subject)
    page.goto("/orders/4821")
    page.locator("#amount").fill("59.90")
    page.get_by_label("Reason").select_option("goodwill")
    page.get_by_role("button", name="Propose this refund").click()
    expect(page.locator("#separate_from")).to_be_visible()
    look(page, "Nothing was created")
    ines = visitors.sign_in("ines", width=width)
    ines.goto("/orders/4821")
    ines.locator("summary", has_text="Freeze refunds").click()
    look(ines, "until someone lifts this")
    freezing.freeze("4821", stage.cast.ines, reason="Two parcels, one number.", version=_version())
    ines.goto("/orders/4821")
    look(ines, "Lift the freeze")


def _version() -> int:
    return Order.objects.values_list("version", flat=True).get(ref="4821")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_pages_of_a_rep_in_every_state(visitors: Visitors, order: Order, width: int) -> None:
    build.order("empty-1")
    page = visitors.sign_in("rosa", width=width)
    for url, subject in {
        "/status": "as the customer has it",
        "/status?order=nowhere": "there is no refund for it",
        "/status/empty-1": "No refund for this order.",
        "/status/4821": "we are checking it with the payment company",
        "/orders/4821": "Not while it is open whether",
        "/orders/empty-1": "Propose this refund",
    }.items():
        page.goto(url)
        look(page, subject)


def test_the_sum_and_the_words_keep_their_lines_in_forced_colours(
    visitors: Visitors, order: Order
) -> None:
    page = visitors.sign_in("cleo", forced_colors=True)
    page.goto("/orders/4821")
    total = page.locator(".sum .total dd").evaluate("e => getComputedStyle(e).borderBottomStyle")
    assert total == "double"
    look(page, "Refundable now")
    page.goto("/status/4821")
    look(page, "Say this")


def test_p_goes_to_the_amount_and_enter_in_it_sends_nothing(
    visitors: Visitors, order: Order
) -> None:
    page = visitors.sign_in("cleo")
    page.goto("/orders/4821")
    page.keyboard.press("p")
    assert page.evaluate("document.activeElement.id") == "amount"
    page.keyboard.type("12.50")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("g")  # in a list of choices a letter chooses
    for _ in range(4):
        page.keyboard.press("Tab")
    assert _focused(page) == "Propose this refund"
    assert Operation.objects.count() == 2
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_contain_text("Nothing is sent until it is approved.")
    expect(page.locator("body :focus")).to_contain_text("Proposed at")
    made = Operation.objects.order_by("-pk")[0]
    assert (made.amount_minor, made.reason_code) == (1250, "goodwill")


def test_without_scripts_a_rep_looks_up_proposes_and_keeps_what_was_typed(
    visitors: Visitors, stage: Stage
) -> None:
    build.order("A-1")
    page = visitors.sign_in("rosa", scripts=False)
    page.goto("/status")
    page.locator("#status-order").fill("A-1")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="Propose a refund").click()
    page.locator("#amount").fill("9999")
    page.get_by_label("Reason").select_option("damaged_item")
    page.get_by_label("What happened").fill("The jug is cracked.")
    page.get_by_role("button", name="Propose this refund").click()
    expect(page.locator("#result")).to_contain_text("still refundable")
    expect(page.get_by_label("What happened")).to_have_value("The jug is cracked.")
    page.locator("#amount").fill("10.00")
    page.get_by_role("button", name="Propose this refund").dblclick()
    expect(page.locator("#result")).to_be_visible()
    assert Operation.objects.get().amount_minor == 1000
    page.get_by_role("link", name="What to say to the customer").first.click()
    expect(page.locator("#status-panel")).to_contain_text("is being reviewed")


def test_a_balance_that_moves_under_an_open_form_is_said_and_takes_nothing_away(
    visitors: Visitors, order: Order
) -> None:
    page = visitors.sign_in("cleo")
    page.goto("/orders/4821")
    page.locator("#amount").fill("275.10")
    page.get_by_label("Reason").select_option("goodwill")
    text = page.get_by_label("What happened")
    text.fill("Half of it came late.")
    build.external_refund("4821", 1000, ref="rf_by_hand")
    expect(page.locator("#propose-moved")).to_contain_text(
        "while this form was open", timeout=15000
    )
    expect(page.locator("#balance")).to_contain_text("265.10")
    expect(text).to_be_focused()
    expect(text).to_have_value("Half of it came late.")
    page.get_by_role("button", name="Propose this refund").click()
    expect(page.locator("#result")).to_contain_text("Adjust the amount or close the form.")
    expect(page.locator("body :focus")).to_contain_text("The refundable amount changed")
    expect(page.get_by_label("What happened")).to_have_value("Half of it came late.")
    assert Operation.objects.count() == 2
    page.locator("#amount").fill("265.10")
    page.get_by_role("button", name="Propose this refund").click()
    expect(page.locator("#result")).to_contain_text("Nothing is sent until it is approved.")
    assert Operation.objects.count() == 3


def test_a_term_of_the_sum_leads_to_its_refunds(visitors: Visitors, order: Order) -> None:
    page = visitors.sign_in("mia")
    page.goto("/orders/4821")
    page.get_by_role("link", name="Unknown (held)").click()
    expect(page.locator("#refunds tbody tr")).to_have_count(1)
    expect(page.locator("#refunds")).to_contain_text("45.00")
    page.get_by_role("link", name="All refunds of this order").click()
    expect(page.locator("#refunds tbody tr")).to_have_count(3)


def test_the_words_for_the_customer_are_copied_and_that_is_said(
    visitors: Visitors, order: Order
) -> None:
    page = visitors.sign_in("rosa")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/status/4821")
    words = page.locator(".told").first.inner_text()
    page.keyboard.press("y")
    expect(page.locator("#said")).to_have_text("Copied the words for the customer")
    assert page.evaluate("navigator.clipboard.readText()") == words
