"""Every page state in light, dark and forced colours, wide and narrow (see looking.py)."""

from __future__ import annotations

import pytest

from refunds.ledger.sending import begin_quarantine
from refunds.models import Payment
from tests import told
from tests.browser.looking import NARROW, WIDE, look
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors


def test_signed_out_and_empty_pages(visitors: Visitors) -> None:
    outside = visitors.page()
    outside.goto("/sign-in")
    look(outside, "Agents do not sign in here")
    outside.get_by_label("Name").fill("ada")
    outside.get_by_label("Password").fill("wrong")
    outside.get_by_role("button", name="Sign in").click()
    look(outside, "do not fit together")
    page = visitors.sign_in("ben")
    for url, subject in {
        "/": "Nothing needs you",
        "/approvals": "No proposals wait for approval",
        "/approvals?tab=stale": "No approval has gone stale",
        "/approvals?tab=all": "No refund was ever asked for",
        "/unknown": "Do not read this as all clear",
        "/sending": "Stop all sending",
        "/lists": "No list was read yet",
        "/notices": "No notice is parked",
        "/settlement": "No line needs a look",
        "/operations/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a": "There is no such page",
        "/recorded/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a": "Nothing is recorded under this press",
    }.items():
        page.goto(url)
        look(page, subject)
    stranger = visitors.sign_in("dora")
    look(stranger, "you have no role here")
    stranger.goto("/approvals")
    look(stranger, "Not for your role")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_full_pages(visitors: Visitors, stage: Stage, width: int) -> None:
    stage.full()
    ids = {name: operation.pk for name, operation in stage.by_name.items()}
    page = visitors.sign_in("cleo", width=width)
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
        look(page, subject)
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
        look(page, subject)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_alerts_accounts_and_a_quarantine(visitors: Visitors, stage: Stage, width: int) -> None:
    stage.uncertain()
    stage.alarms()
    told.everything(Payment.objects.filter(provider_account="plain-main").earliest("pk"))
    begin_quarantine("The database does not know a send that it permitted.", {})
    page = visitors.sign_in("ines", width=width)
    for url, subject in {
        "/alerts": "Nobody has it",
        "/alerts?tab=ended": "could not tell",
        "/alerts?tab=watched": "They compare, stop an account, and never repair",
        "/sending": "were not listed to the end after",
        "/lists": "rf_made_elsewhere",
        "/notices": "Applying it failed 2 times",
        "/notices?tab=applied": "of another mode or account",
        "/settlement": "31.00 USD instead of 30.00 USD",
        "/sending/plain-main": "How it answers",
        "/sending/stripe-main": "one refund can be paid twice",
    }.items():
        page.goto(url)
        look(page, subject)
    page.locator("summary", has_text="Propose a figure").click()
    look(page, "nothing changes until another ops lead or admin")


def test_failing_pages(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    page = visitors.sign_in("cleo")
    page.goto(f"/approvals?open={operation.pk}")
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why it is not owed").fill("short")
    page.get_by_role("button", name="Reject refund of").click()
    look(page, "The reason needs 10 characters or more")
    stage.failing()
    ines = visitors.sign_in("ines")
    look(ines, "All sending is stopped")
    ines.goto("/sending")
    look(ines, "Start sending again")


def test_pills_keep_their_borders_in_forced_colours(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    page = visitors.sign_in("cleo", forced_colors=True)
    page.goto(f"/operations/{operation.pk}")
    border = page.locator(".pill").first.evaluate("e => getComputedStyle(e).borderTopWidth")
    assert border != "0px"
    look(page, "awaiting approval")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_agents_keys_profile_search_and_the_help(
    visitors: Visitors, stage: Stage, width: int
) -> None:
    stage.proposed("one", "A-1", 1000, by="echo")
    admin = visitors.sign_in("adam", width=width)
    admin.goto("/agents")
    look(admin, "What an agent is told")
    admin.goto(f"/agents/{stage.cast.echo.pk}")
    admin.get_by_label("refund:read").check()
    admin.get_by_role("button", name="Create key").click()
    look(admin, "It is shown this once and stored nowhere here")
    admin.get_by_role("button", name="Copy key", exact=True).wait_for()
    admin.locator("summary", has_text="Revoke now").first.click()
    look(admin, "stop working within 25 seconds")
    lead = visitors.sign_in("cleo", width=width)
    for url, subject in {
        "/profile": "Single-key shortcuts",
        "/search": "Give an identifier",
        "/search?q=nothing": "Capital letters count",
        "/search?q=pi_A": "Payments",
    }.items():
        lead.goto(url)
        look(lead, subject)
    lead.keyboard.press("?")
    look(lead, "No key approves, rejects, resolves, sends or signs")
