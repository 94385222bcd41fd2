"""The keyboard: keys move, open, show and copy; no key decides anything."""

from __future__ import annotations

import string
from urllib.parse import urlsplit

import pytest
from django.db import connection
from playwright.sync_api import Page, Route, expect

from refunds.domain.roles import LEAD
from refunds.models import Operation
from review import keys
from review.models import Preference
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
# Reading stores a session, and what keys type into a form that one of them opened is a draft;
# nothing else may differ.
_MAY_DIFFER = frozenset({"django_session", "draft"})
_ROWS = "[data-row], .rows > tbody > tr:not(.slip)"
_ALL_KEYS = [*string.ascii_letters, *string.digits, *string.punctuation, "Escape", "Enter", "Space"]


def _everything(provider: SandboxProcess) -> dict[str, object]:
    """A digest of every table, and the sandbox's whole book."""
    found: dict[str, object] = {"book": provider.book()["payments"]}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        for (table,) in cursor.fetchall():
            if table not in _MAY_DIFFER:
                cursor.execute(
                    f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t"
                )
                found[table] = cursor.fetchone()
    return found


def _focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.textContent.trim()"))


def _typed(page: Page, *pressed: str) -> None:
    for key in pressed:
        page.keyboard.press(key)


class _Held:
    """A page that may ask and stays where it is: a way that a key begins ends before it leaves.

    A key that meets a page which is just being left is never answered by Chromium.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.posted: list[str] = []
        self._goes = False
        page.route("**/*", self._asked)

    def _asked(self, route: Route) -> None:
        asked = route.request
        if asked.method != "GET" and urlsplit(asked.url).path != "/drafts":
            self.posted.append(f"{asked.method} {asked.url}")
        if asked.method == "GET" and asked.is_navigation_request() and not self._goes:
            route.abort("aborted")
        else:
            route.continue_()

    def open(self, path: str) -> None:
        self._goes = True
        self.page.goto(path)
        self._goes = False


def test_no_key_on_any_page_changes_anything(
    visitors: Visitors, stage: Stage, provider: SandboxProcess
) -> None:
    stage.waiting()
    stage.stale()
    ids = {name: operation.pk for name, operation in stage.by_name.items()}
    lead, admin, ops_lead = (_Held(visitors.sign_in(each)) for each in ("cleo", "adam", "ines"))
    pages = [
        *[(lead, path) for path in ("/", "/approvals", "/approvals?tab=stale", "/unknown")],
        (lead, f"/approvals?open={ids['open']}"),
        (lead, f"/operations/{ids['delayed']}"),
        (lead, "/search?q=A-1"),
        (lead, "/profile"),
        (lead, "/orders/A-10511"),
        (ops_lead, "/sending"),
        (admin, "/agents"),
        (admin, f"/agents/{stage.cast.echo.pk}"),
    ]
    before = _everything(provider)
    for held, path in pages:
        page = held.page
        # From the page itself, with the focus in a row, and as the second key of a way to a page.
        for begin, lead_in in (("", ""), ("j", ""), ("", "g")):
            held.open(path)
            if begin and not page.locator(_ROWS).count():
                continue  # without rows it is the first turn again
            _typed(page, *begin)
            for key in _ALL_KEYS if not lead_in else string.ascii_lowercase:
                _typed(page, *lead_in, key, *(["Escape"] if key == "?" else []))
                if page.url != f"{visitors.base}{path}":
                    held.open(path)
                    _typed(page, *begin)
        assert held.posted == []
    assert _everything(provider) == before


def test_the_help_lists_the_keys_and_closes_again(visitors: Visitors) -> None:
    page = visitors.sign_in("cleo")
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Keyboard")
    expect(help_).to_contain_text("No key approves, rejects, resolves, sends or signs")
    expect(help_).to_contain_text("then a page: h my work, a approvals, u unknown, o orders")
    for line in keys.HELP:
        if line.act is not None and LEAD not in line.act.roles:
            expect(help_).not_to_contain_text(line.words)
            continue
        expect(help_).to_contain_text(line.words)
        for key in line.keys:
            expect(help_.locator("kbd", has_text=key).first).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page).to_have_url(f"{visitors.base}/")
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()


def test_keys_go_to_pages_to_rows_and_into_them(visitors: Visitors, stage: Stage) -> None:
    stage.proposed("one", "A-1", 1000, by="foxtrot")
    stage.proposed("two", "A-2", 1100, by="foxtrot")
    page = visitors.sign_in("cleo")
    for key, path in (("a", "/approvals"), ("u", "/unknown"), ("s", "/sending"), ("h", "/")):
        _typed(page, "g", key)
        expect(page).to_have_url(f"{visitors.base}{path}")
    _typed(page, "g", "a")
    expect(page).to_have_url(f"{visitors.base}/approvals")
    _typed(page, "j", "j")
    assert "A-2" in page.evaluate("document.activeElement.closest('tr').textContent")
    _typed(page, "k")
    assert "A-1" in page.evaluate("document.activeElement.closest('tr').textContent")
    page.keyboard.press("x")
    expect(page.locator("[data-tick]").first).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.locator("#ap-h")).to_contain_text("A-1")
    page.keyboard.press("Escape")
    expect(page.locator("#ap-h")).to_have_count(0)


def test_evidence_timeline_copy_and_times_by_key(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    page = visitors.sign_in("cleo")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/operations/{operation.pk}")
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.id") == "evidence"
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.id") == "timeline"
    page.keyboard.press("y")
    expect(page.locator("#said")).to_have_text("Copied operation id")
    assert page.evaluate("navigator.clipboard.readText()") == str(operation.pk)
    page.keyboard.press("t")
    expect(page.locator("time[data-utc]").first).to_contain_text("UTC,")
    page.keyboard.press("t")
    expect(page.locator("time[data-utc]").first).not_to_contain_text("UTC,")


def test_search_by_key_opens_an_exact_id(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000)
    page = visitors.sign_in("cleo")
    page.keyboard.press("/")
    page.keyboard.insert_text(str(operation.pk))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visitors.base}/operations/{operation.pk}")
    page.keyboard.press("Control+k")
    assert page.evaluate("document.activeElement.id") == "q"


def test_what_is_typed_into_a_field_is_no_shortcut(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000, by="foxtrot")
    page = visitors.sign_in("cleo")
    page.goto(f"/approvals?open={operation.pk}")
    page.locator("summary", has_text="Reject").click()
    reason = page.get_by_label("Why it is not owed")
    reason.press_sequentially("ga/j?x")
    expect(reason).to_have_value("ga/j?x")
    assert page.url.endswith(f"open={operation.pk}")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_somebody_who_switched_single_keys_off_is_left_alone(
    visitors: Visitors, stage: Stage
) -> None:
    Preference.objects.create(person=stage.cast.cleo, shortcuts=False)
    page = visitors.sign_in("cleo")
    _typed(page, "g", "a", "?", "/")
    expect(page).to_have_url(f"{visitors.base}/")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Keyboard").click()
    expect(page.get_by_role("dialog")).to_contain_text("Single keys are off")


def test_a_focused_button_is_not_pressed_by_a_letter(visitors: Visitors, stage: Stage) -> None:
    operation = stage.proposed("one", "A-1", 1000, by="foxtrot")
    page = visitors.sign_in("cleo")
    page.goto(f"/approvals?open={operation.pk}")
    page.get_by_role("button", name="Approve refund of").focus()
    _typed(page, "a", "y", "x", "n", "p", "r")
    assert Operation.objects.get(pk=operation.pk).state == "awaiting_approval"
    assert _focused(page).startswith("Approve refund of")
