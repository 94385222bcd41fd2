"""A day with the keyboard alone: Tab, Enter, Space, arrows and what is typed; nothing is clicked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings
from playwright.sync_api import Page, expect

from refunds.domain import states
from refunds.models import Operation
from tests import build
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.cast import PASSWORD

DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))
_STOPS_MAX = 90
# Where the focus stands: what it says, and whether a reader sees it there.
_STOP = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const label = at.labels?.[0]?.textContent ?? at.getAttribute('aria-label') ?? at.textContent;
  return {
    words: label.replace(/\\s+/g, ' ').trim(),
    lost: at === document.body || at === document.documentElement,
    ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
  };
}"""


class Keys:
    """Somebody's hands: moves by Tab, and looks at every stop whether the focus can be seen."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def to(self, words: str, *, back: bool = False) -> None:
        """Tab on until the focus stands on something that begins with these words."""
        passed: list[str] = []
        for _ in range(_STOPS_MAX):
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            stop = self.page.evaluate(_STOP)
            assert not stop["lost"], f"the focus is lost after {passed}"
            assert stop["ring"], f"no line around {stop['words']!r}"
            assert stop["seen"], f"{stop['words']!r} is not on the screen"
            if stop["words"].startswith(words):
                return
            passed.append(stop["words"][:40])
        raise AssertionError(f"{words!r} is not reached; there is {passed}")

    def press(self, key: str = "Enter") -> None:
        self.page.keyboard.press(key)

    def type(self, words: str) -> None:
        self.page.keyboard.type(words)

    def stands_on(self, words: str) -> None:
        """After a swap: the focus is on the answer and not lost to the page."""
        expect(self.page.locator("#main :focus")).to_contain_text(words)

    def sign_in(self, name: str) -> None:
        self.page.goto("/sign-in")
        self.to("Name")
        self.type(name)
        self.to("Password")
        self.type(PASSWORD)
        self.to("Sign in")
        self.press("Space")
        expect(self.page.get_by_role("heading", name="My work")).to_be_visible()


@pytest.fixture
def waiting(stage: Stage) -> Operation:
    return stage.proposed("one", "A-1", 1000, by="foxtrot", captured_minor=5000)


def _state(operation: Operation) -> str:
    return Operation.objects.values_list("state", flat=True).get(pk=operation.pk)


@DELAYED
def test_a_lead_decides_and_proposes_by_the_keyboard_alone(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.page()
    keys = Keys(page)
    keys.sign_in("cleo")
    keys.to("Skip to the content")
    keys.to("Approvals")
    keys.press()
    expect(page.get_by_role("heading", name="Approvals")).to_be_visible()
    keys.to("Open the refund on order A-1")
    keys.press()
    expect(page.locator("#approval-form")).to_be_visible()
    keys.to("Approve refund of")
    described = page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-describedby')).innerText"
    )
    assert "If you approve: 10.00 USD" in described
    assert "Once sent it cannot be called back" in described
    keys.press()
    keys.stands_on("Approved at")
    assert _state(waiting) == states.AUTHORIZED
    keys.to("Take the approval back")
    keys.press("Space")
    keys.stands_on("Taken back. Nothing was sent.")
    assert _state(waiting) == states.AWAITING_APPROVAL
    keys.to("Reject")
    keys.press()
    keys.to("What kind of reason")
    keys.press("ArrowDown")
    keys.to("Why it is not owed")
    keys.type("short")
    keys.to("Reject refund of")
    keys.press()
    keys.stands_on("The reason needs 10 characters or more")
    keys.to("Why it is not owed")
    keys.press("End")
    keys.type(": the parcel came back to us.")
    keys.to("Reject refund of")
    keys.press()
    keys.stands_on("Rejected. Nothing was sent.")
    assert _state(waiting) == states.REJECTED
    # From the order the next one is asked for.
    keys.to("A-1", back=True)
    keys.press()
    expect(page.locator("#propose")).to_be_visible()
    keys.to("Amount")
    keys.type("12.50")
    keys.to("Reason")
    keys.type("goodwill")
    keys.to("What happened")
    keys.type("Came late.")
    keys.to("Propose this refund")
    keys.press()
    keys.stands_on("Proposed at")
    made = Operation.objects.exclude(pk=waiting.pk).get()
    assert (made.amount_minor, made.state) == (1250, states.AWAITING_APPROVAL)


def test_a_rep_looks_up_what_to_say_and_copies_it_by_the_keyboard_alone(
    visitors: Visitors, stage: Stage
) -> None:
    build.order("A-1")
    build.proposed(stage.cast.foxtrot, "A-1")
    page = visitors.page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    keys = Keys(page)
    keys.sign_in("rosa")
    keys.to("Status")
    keys.press()
    expect(page.get_by_role("heading", name="Status of an order")).to_be_visible()
    keys.to("Order")
    keys.type("A-1")
    keys.press()
    expect(page.locator("#status-panel")).to_contain_text("is being reviewed")
    keys.to("Copy these words")
    keys.press("Space")
    expect(page.locator("#said")).to_have_text("Copied the words for the customer")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator(".told").first.inner_text()
    assert page.evaluate("document.activeElement.textContent") == "Copy these words"
