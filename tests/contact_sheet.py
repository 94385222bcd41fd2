"""Pictures of every page, for people: `python -m tests.contact_sheet OUT_DIR [PART_OF_A_NAME]`.

Wide and narrow, light and dark, empty, full and failing: one sheet a page and state, with the
single shots beside it in `single/`. Runs on the embedded
test servers and a sandbox of its own, and leaves nothing but the pictures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import tests.environment  # noqa: F401 - the settings of the tests, before Django is imported

os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

import django  # noqa: E402

tests.environment.pytest_configure()
django.setup()

from django.contrib.staticfiles.handlers import StaticFilesHandler  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.runner import DiscoverRunner  # noqa: E402
from django.test.testcases import LiveServerThread  # noqa: E402
from django.utils import timezone  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from reconciliation.monitors import run  # noqa: E402
from refunds import witness  # noqa: E402
from refunds.ledger.sending import begin_quarantine  # noqa: E402
from refunds.models import Payment  # noqa: E402
from tests import told  # noqa: E402
from tests.browser.case_stage import CaseStage  # noqa: E402
from tests.browser.stage import Stage  # noqa: E402
from tests.cast import PASSWORD, Cast, assemble  # noqa: E402
from tests.provider_process import SandboxProcess  # noqa: E402

SIZES = {"1440": (1440, 900), "1024": (1024, 900), "390": (390, 844)}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHROMIUM = "/usr/bin/chromium"


@contextmanager
def installation() -> Iterator[tuple[str, Cast, SandboxProcess]]:
    """A fresh test database, a web server in a thread, and a sandbox."""
    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    databases = runner.setup_databases()
    witness.forget()  # of an earlier run: this database has lost nothing
    port = urlsplit(os.environ["AFTERSEND_SANDBOX_URL"]).port or 0
    provider = SandboxProcess()
    provider.start(port)
    web = LiveServerThread("localhost", StaticFilesHandler)
    web.daemon = True
    web.start()
    web.is_ready.wait()
    if web.error:
        raise web.error
    try:
        yield f"http://localhost:{web.port}", assemble(), provider
    finally:
        web.terminate()
        provider.stop()
        _end_sessions()
        runner.teardown_databases(databases)
        runner.teardown_test_environment()


def _end_sessions() -> None:
    """A thread of the web server may still be closing its session; the database goes now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def sign_in(
    browser: Browser, base: str, name: str, size: str, theme: Literal["light", "dark"]
) -> Page:
    width, height = SIZES[size]
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=theme, base_url=base
    )
    page.goto("/sign-in")
    if not name:
        return page
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{base}/")
    return page


def shoot(page: Page, url: str, out: Path) -> None:
    page.goto(url)
    page.wait_for_load_state("load")
    if page.url.endswith("#refused"):
        page.locator("summary", has_text="Reject").click()
        page.get_by_label("Why it is not owed").fill("no reason")
        page.get_by_role("button", name="Reject refund of").click()
        page.locator("#result").wait_for()
    chosen = page.locator(f"#c-{page.url.partition('#chosen-')[2]}")
    if "#chosen-" in page.url and chosen.is_visible():
        chosen.check(force=True)  # one that lacks its proof says so, and shows what is missing
    review = page.get_by_role("button", name="Review the ticked")
    if page.url.endswith("#reviewed") and review.is_visible():
        for box in page.locator("tr", has_text="Foxtrot").locator("[data-tick]").all():
            box.check()
        review.click()
        page.locator("#bulk-approve").wait_for()
    page.screenshot(path=out, full_page=True)


def empty_pages() -> dict[str, tuple[str, str]]:
    return {
        "sign-in": ("", "/sign-in?ended=1"),
        "home": ("ben", "/"),
        "home-stranger": ("dora", "/"),
        "approvals": ("ben", "/approvals"),
        "stale": ("ben", "/approvals?tab=stale"),
        "unknown": ("omar", "/unknown"),
        "by-hand": ("mia", "/unknown/by-hand"),
        "orders": ("ben", "/orders"),
        "status": ("rosa", "/status"),
        "alerts": ("omar", "/alerts"),
        "alerts-watched": ("omar", "/alerts?tab=watched"),
    }


def full_pages(stage: Stage) -> dict[str, tuple[str, str]]:
    ids = {name: operation.pk for name, operation in stage.by_name.items()}
    pages = {
        "home": ("ben", "/"),
        "approvals": ("ben", "/approvals"),
        "approvals-open": ("cleo", f"/approvals?open={ids['open']}"),
        "approvals-own": ("ada", f"/approvals?open={ids['own']}"),
        "approvals-two": ("ben", f"/approvals?open={ids['two_leads']}"),
        "approvals-repeat": ("cleo", f"/approvals?open={ids['repeat']}"),
        "approvals-stale": ("cleo", f"/approvals?tab=stale&open={ids['stale']}"),
        "approvals-second": ("ben", "/approvals?tab=second"),
        "approvals-mine": ("ada", "/approvals?tab=mine"),
        "approvals-together": ("cleo", "/approvals#reviewed"),
        "home-ops": ("omar", "/"),
        "home-manager": ("mia", "/"),
        "home-rep": ("rosa", "/"),
        "approvals-delayed": ("cleo", f"/approvals?tab=all&open={ids['delayed']}"),
        "unknown": ("omar", "/unknown"),
        "sending": ("ines", "/sending"),
        "sending-lead": ("ben", "/sending"),
        "sending-account": ("omar", "/sending/plain-main"),
        "sending-accepting": ("ines", "/sending/stripe-main"),
        "alerts": ("omar", "/alerts"),
        "alerts-lead": ("ben", "/alerts"),
        "alerts-ended": ("omar", "/alerts?tab=ended"),
        "alerts-watched": ("omar", "/alerts?tab=watched"),
        "deliveries": ("omar", "/deliveries"),
        "found-lists": ("mia", "/lists"),
        "found-notices": ("mia", "/notices"),
        "found-settlement": ("mia", "/settlement"),
        "missing": ("ben", "/operations/00000000-0000-7000-8000-000000000000"),
        "forbidden": ("rosa", "/approvals"),
        "orders": ("ben", "/orders"),
        "order": ("ben", "/orders/A-10482"),
        "order-over": ("ines", "/orders/B-7702"),
        "order-rep": ("rosa", "/orders/A-10400"),
        "status": ("rosa", "/status/A-10482"),
        "status-case": ("rosa", "/status/J-29904"),
        "status-ended": ("rosa", "/status/A-10401"),
    }
    for name in (
        "unknown",
        "looked",
        "needs_person",
        "twice",
        "pending",
        "submitting",
        "succeeded",
        "failed",
        "denied",
        "rejected",
        "withdrawn",
        "stale",
        "delayed",
    ):
        pages[f"operation-{name}"] = ("omar", f"/operations/{ids[name]}")
    return pages


def case_pages(stage: Stage) -> dict[str, tuple[str, str]]:
    made = CaseStage(stage).full()
    ids = {name: operation.pk for name, operation in stage.by_name.items()}
    assert made.payment_case is not None
    return {
        "cases-list": ("omar", "/unknown"),
        "cases-second": ("ines", "/unknown?tab=second"),
        "cases-owed": ("ben", "/unknown?tab=owed"),
        "cases-lost": ("omar", f"/operations/{ids['lost']}#chosen-not_happened"),
        "cases-equal": ("omar", f"/operations/{ids['equal']}#chosen-happened"),
        "cases-smaller": ("ines", f"/operations/{ids['smaller']}#chosen-different"),
        "cases-testimony": ("omar", f"/operations/{ids['blind_case']}#chosen-happened"),
        "cases-first-signer": ("omar", f"/operations/{ids['waiting']}"),
        "cases-second-signer": ("ines", f"/operations/{ids['waiting']}"),
        "cases-remedy": ("ben", f"/operations/{ids['owed']}#chosen-remedy"),
        "cases-propose-remedy": ("ben", f"/orders/C-20015?remedy_of={ids['owed']}"),
        "cases-made-good": ("ben", f"/operations/{ids['made_good']}"),
        "cases-approve-remedy": ("ben", f"/approvals?open={ids['made_good_remedy']}"),
        "cases-payment": ("omar", f"/cases/{made.payment_case.pk}#chosen-not_ours"),
        "cases-as-seen": ("mia", f"/operations/{ids['owed']}?at=5"),
    }


def _widest_first(path: Path) -> tuple[int, str]:
    width, theme = path.stem.rsplit("-", 2)[1:]
    return -int(width), theme


def sheet(browser: Browser, single: Path, name: str, state: str) -> None:
    """One picture of all sizes and themes of a page, side by side."""
    shots = sorted(single.glob(f"{name}-{state}-[0-9]*.png"), key=_widest_first)
    images = "".join(
        f'<figure><figcaption>{path.stem}</figcaption><img src="{path.as_uri()}"></figure>'
        for path in shots
    )
    board = single / "board.html"
    board.write_text(
        "<!doctype html><style>body{margin:16px;background:#8a8a8a;display:flex;gap:16px;"
        "align-items:start;width:max-content;font:13px sans-serif}figure{margin:0}"
        f"img{{display:block;zoom:.6}}</style>{images}"
    )
    page = browser.new_page()
    page.goto(board.as_uri())
    page.screenshot(path=single.parent / f"{name}-{state}.png", full_page=True)
    page.close()
    board.unlink()


def shoot_all(
    browser: Browser, base: str, state: str, pages: dict[str, tuple[str, str]], out: Path, only: str
) -> None:
    single = out / "single"
    single.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        for theme in THEMES:
            signed_in: dict[str, Page] = {}
            for name, (person, url) in pages.items():
                if only and only not in name:
                    continue
                if person not in signed_in:
                    signed_in[person] = sign_in(browser, base, person, size, theme)
                shoot(signed_in[person], url, single / f"{name}-{state}-{size}-{theme}.png")
            for page in signed_in.values():
                page.close()
    for name in pages:
        if not only or only in name:
            sheet(browser, single, name, state)


def main(out: Path, only: str = "") -> None:
    """`only`: a part of a page's name, to look at a few."""
    out = out.resolve()
    with installation() as (base, cast, provider), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        shoot_all(browser, base, "empty", empty_pages(), out, only)
        stage = Stage(cast, provider).full()
        stage.alarms()
        told.everything(Payment.objects.filter(provider_account="plain-main").earliest("pk"))
        shoot_all(browser, base, "full", full_pages(stage), out, only)
        if not only or only.startswith("cases"):
            shoot_all(browser, base, "full", case_pages(stage), out, only)
        stage.failing()
        begin_quarantine("The database does not know a send that it permitted.", {})
        run.read_all({}, timezone.now())
        failing = {
            "alerts": ("omar", "/alerts"),
            "home": ("ben", "/"),
            "approvals": ("cleo", f"/approvals?open={stage.by_name['dinar'].pk}#refused"),
            "sending": ("ines", "/sending"),
            "sending-who-stopped": ("omar", "/sending"),
        }
        shoot_all(browser, base, "failing", failing, out, only)
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("python -m tests.contact_sheet OUT_DIR [PART_OF_A_NAME]")
    main(Path(sys.argv[1]), *sys.argv[2:])
