"""A real Chromium on a live server; every page is watched for console errors and CSP reports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")

playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: no browser to look with"
)

from tests.browser.stage import Stage  # noqa: E402
from tests.browser.visitor import Visitors  # noqa: E402
from tests.cast import Cast  # noqa: E402
from tests.provider_process import SandboxProcess  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _browser_tests_may_mix() -> Iterator[None]:
    """Playwright's loop runs in this thread; Django must not take that for asynchronous code."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    yield
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """One browser a module: its loop must be gone before a test that runs a loop of its own."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: these tests need a browser")
    with playwright_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def visitors(
    transactional_db: None, cast: Cast, browser: object, live_server: object
) -> Iterator[Visitors]:
    """People at their own browsers; the test fails for any console error they saw."""
    made = Visitors(browser, str(live_server.url))  # type: ignore[attr-defined]
    yield made
    made.close()
    assert made.complaints == []


@pytest.fixture
def stage(visitors: Visitors, cast: Cast, provider: SandboxProcess) -> Stage:
    return Stage(cast, provider)
