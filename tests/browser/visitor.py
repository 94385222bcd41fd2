"""A person at a browser: signs in, looks, presses; what the browser complains of is kept."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.cast import PASSWORD

# Chromium reports every answer of 400 and above as an error of its own; our pages say those.
_ANSWERED = "Failed to load resource: the server responded with a status of"


class Visitors:
    """Browsers of several people on one live server."""

    def __init__(self, browser: Any, base: str) -> None:
        self._browser: Browser = browser
        self.base = base
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []

    def page(
        self,
        *,
        scripts: bool = True,
        width: int = 1440,
        forced_colors: bool = False,
    ) -> Page:
        """A browser of its own, without anybody signed in."""
        context = self._browser.new_context(
            base_url=self.base,
            java_script_enabled=scripts,
            viewport={"width": width, "height": 900},
            forced_colors="active" if forced_colors else "none",
        )
        self._contexts.append(context)
        return self._watched(context)

    def another_tab(self, page: Page) -> Page:
        """Beside this one in the same browser, so of the same person."""
        return self._watched(page.context)

    def _watched(self, context: BrowserContext) -> Page:
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_ANSWERED):
            self.complaints.append(message.text)

    def sign_in(self, name: str, **how: Any) -> Page:
        page = self.page(**how)
        page.goto("/sign-in")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{self.base}/")
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()
