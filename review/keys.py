"""The keyboard as data: what the help shows is what the keys do. No key decides anything.

`GO` are the second keys after `g`, by the name of their page; `review/static/review/keys.js`
holds the acts of the others, and `data-key` in a template gives a key to one link of a page.
"""

from __future__ import annotations

from typing import Final

GO: Final = {
    "home": "h",
    "approvals": "a",
    "unknown": "u",
    "orders": "o",
    "sending": "s",
    "status": "r",
    "agents": "k",
    "profile": "p",
}

HELP: Final = (
    (("?",), "this help"),
    (("/", "Ctrl K"), "search"),
    (
        ("g",),
        "then a page: h my work, a approvals, u unknown, o orders, r status, s providers, k agents, p profile",
    ),
    (("j", "k"), "next and previous row"),
    (("Enter",), "open the row"),
    (("[", "]"), "previous and next of the queue"),
    (("x",), "tick the row"),
    (("e", "l"), "evidence, timeline"),
    (("y",), "copy the id of the row, or of the page"),
    (("n",), "show new rows"),
    (("p",), "open the form that proposes a refund"),
    (("t",), "times in UTC with their age"),
    (("Esc",), "close"),
)
