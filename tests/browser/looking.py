"""Looking at one state of a page: its subject is there, axe finds nothing in any colours, and
nothing scrolls sideways."""

from __future__ import annotations

from typing import Final, Literal

from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

WIDE: Final = 1440
NARROW: Final = 390
_Scheme = Literal["light", "dark"]
_Forced = Literal["active", "none"]
_WHOLE: Final = {"resultTypes": ["violations"]}
# Only these rules can find something else in other colours. They do not depend on the width, and
# take most of axe's time: a narrow page is looked at without them.
_OF_COLOURS: Final = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
_OF_FORM: Final = _WHOLE | {
    "rules": {name: {"enabled": False} for name in ("color-contrast", "link-in-text-block")}
}
_OTHER_COLOURS: Final[tuple[tuple[_Scheme, _Forced], ...]] = (("dark", "none"), ("light", "active"))
_axe = Axe()


def look(page: Page, subject: str) -> None:
    """The state must be the one that is meant before its accessibility says anything."""
    expect(page.get_by_text(subject).locator("visible=true").first).to_be_visible()
    wide = page.viewport_size is not None and page.viewport_size["width"] >= WIDE
    found = _axe.run(page, options=_WHOLE if wide else _OF_FORM)
    assert found.violations_count == 0, found.generate_report()
    beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert beyond <= 0, f"{page.url} is {beyond} px wider than the screen"
    if wide:
        for scheme, forced in _OTHER_COLOURS:
            page.emulate_media(color_scheme=scheme, forced_colors=forced)
            found = AxeResults(page.evaluate("options => axe.run(options)", _OF_COLOURS))
            where = f"{page.url}, {scheme}, forced colours {forced}:\n"
            assert found.violations_count == 0, where + found.generate_report()
        page.emulate_media(color_scheme="light", forced_colors="none")
