"""The keyboard as data: what the help shows is what the keys do. No key decides anything.

`GO` are the second keys after `g`, by the name of their page; `review/static/review/keys.js`
holds the acts of the others, and `data-key` in a template gives a key to one link of a page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from review import roles
from review.roles import Act

GO: Final = {
    "home": "h",
    "approvals": "a",
    "unknown": "u",
    "orders": "o",
    "sending": "s",
    "alerts": "l",
    "deliveries": "d",
    "status": "r",
    "agents": "k",
    "profile": "p",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A line of the help. `act`: what a reader must be allowed to for the key to do anything."""

    keys: tuple[str, ...]
    words: str
    act: Act | None = None


HELP: Final = (
    Key(("?",), "this help"),
    Key(("/", "Ctrl K"), "search"),
    Key(("j", "k"), "next and previous row"),
    Key(("Enter",), "open the row"),
    Key(("x",), "tick the row", roles.APPROVE),
    Key(("e", "l"), "evidence, timeline", roles.SEE),
    Key(("c", "r", "i"), "go to claim, check now, note of a case", roles.CLAIM),
    Key(("y",), "copy the id of the row, or of the page"),
    Key(("n",), "show new rows"),
    Key(("p",), "open the form that proposes a refund", roles.PROPOSE),
    Key(("t",), "times in UTC with their age"),
    Key(("Esc",), "close"),
)


def help_of(holds: Collection[str], pages: Mapping[str, str]) -> list[Key]:
    """The help of a reader with these roles; `pages` are the second keys after `g` that lead
    anywhere for them, with the words of their page."""
    ways = ", ".join(f"{key} {words}" for key, words in pages.items())
    return [
        Key(("g",), f"then a page: {ways}"),
        *(line for line in HELP if line.act is None or roles.may(holds, line.act)),
    ]
