"""Every page state in light and dark: its subject is there, axe finds nothing, nothing scrolls
sideways."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage
from tests.browser.visitor import Theme, Visitors

THEMES: tuple[Theme, ...] = ("light", "dark")
axe = Axe()


def _look(page: Page, subject: str) -> None:
    """The state must be the one that is meant before its accessibility says anything."""
    expect(page.get_by_text(subject).first).to_be_visible()
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{page.url} is {wide} px wider than the screen"


@pytest.mark.parametrize("theme", THEMES)
def test_signed_out_and_empty_pages(visitors: Visitors, theme: Theme) -> None:
    outside = visitors.page(theme=theme)
    outside.goto("/sign-in")
    _look(outside, "Agents do not sign in here")
    outside.get_by_label("Name").fill("ada")
    outside.get_by_label("Password").fill("wrong")
    outside.get_by_role("button", name="Sign in").click()
    _look(outside, "do not fit together")
    page = visitors.sign_in("ben", theme=theme)
    for url, subject in {
        "/": "Nothing needs you",
        "/approvals": "No proposals wait for approval",
        "/approvals?tab=stale": "No approval has gone stale",
        "/approvals?tab=all": "No refund was ever asked for",
        "/unknown": "Do not read this as all clear",
        "/sending": "Stop all sending",
        "/operations/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a": "There is no such page",
        "/recorded/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a": "Nothing is recorded under this press",
    }.items():
        page.goto(url)
        _look(page, subject)
    stranger = visitors.sign_in("dora", theme=theme)
    _look(stranger, "you have no role here")
    stranger.goto("/approvals")
    _look(stranger, "Not for your role")


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_full_pages(visitors: Visitors, stage: Stage, theme: Theme, width: int) -> None:
    stage.full()
    ids = {name: operation.pk for name, operation in stage.by_name.items()}
    page = visitors.sign_in("cleo", theme=theme, width=width)
    for url, subject in {
        "/": "Waiting for my approval",
        "/approvals": "Returned item",
        f"/approvals?open={ids['open']}": "The agent states 159.00 USD",
        f"/approvals?open={ids['repeat']}": "This is a separate refund",
        f"/approvals?open={ids['two_leads']}": "Yours would be the last of 2",
        f"/approvals?tab=stale&open={ids['stale']}": "The approval no longer applies",
        f"/approvals?tab=all&open={ids['delayed']}": "Take the approval back",
        "/approvals?tab=all": "withdrawn",
        "/unknown": "Checked automatically",
        "/sending": "plain-unbounded",
    }.items():
        page.goto(url)
        _look(page, subject)
    for name, subject in {
        "unknown": "no answer after",
        "looked": "Cannot tell",
        "needs_person": "A person must find out",
        "twice": "More than one refund of this operation",
        "pending": "is working on it",
        "submitting": "Until the answer is in, treat it as possibly done",
        "succeeded": "Match: the provider holds this refund",
        "failed": "Refused: the provider says no money moved",
        "denied": "Policy refused it",
        "rejected": "The item never came back to us",
        "delayed": "Nothing was sent, so the provider was not asked",
    }.items():
        page.goto(f"/operations/{ids[name]}")
        _look(page, subject)


@pytest.mark.parametrize("theme", THEMES)
def test_failing_pages(visitors: Visitors, stage: Stage, theme: Theme) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    page = visitors.sign_in("cleo", theme=theme)
    page.goto(f"/approvals?open={operation.pk}")
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why it is not owed").fill("short")
    page.get_by_role("button", name="Reject refund of").click()
    _look(page, "The reason needs 10 characters or more")
    stage.failing()
    ines = visitors.sign_in("ines", theme=theme)
    _look(ines, "All sending is stopped")
    ines.goto("/sending")
    _look(ines, "Start sending again")


def test_pills_keep_their_borders_in_forced_colours(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    page = visitors.sign_in("cleo", forced_colors=True)
    page.goto(f"/operations/{operation.pk}")
    border = page.locator(".pill").first.evaluate("e => getComputedStyle(e).borderTopWidth")
    assert border != "0px"
    _look(page, "awaiting approval")


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_agents_keys_profile_search_and_the_help(
    visitors: Visitors, stage: Stage, theme: Theme, width: int
) -> None:
    stage.proposed("one", "A-1", 1000, by="echo")
    admin = visitors.sign_in("adam", theme=theme, width=width)
    admin.goto("/agents")
    _look(admin, "What an agent is told")
    admin.goto(f"/agents/{stage.cast.echo.pk}")
    admin.get_by_label("refund:read").check()
    admin.get_by_role("button", name="Create key").click()
    _look(admin, "It is shown this once and stored nowhere here")
    admin.get_by_role("button", name="Copy key", exact=True).wait_for()
    admin.locator("summary", has_text="Revoke now").first.click()
    _look(admin, "stop working within 25 seconds")
    lead = visitors.sign_in("cleo", theme=theme, width=width)
    for url, subject in {
        "/profile": "Single-key shortcuts",
        "/search": "Give an identifier",
        "/search?q=nothing": "Capital letters count",
        "/search?q=pi_A": "Payments",
    }.items():
        lead.goto(url)
        _look(lead, subject)
    lead.keyboard.press("?")
    _look(lead, "No key approves, rejects, resolves, sends or signs")
