"""Where one sees what a recorded press led to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.urls import reverse

from review.models import Intent


def _named(name: str) -> Callable[[Intent], str]:
    return lambda press: reverse(name)


def _of_object(name: str) -> Callable[[Intent], str]:
    return lambda press: reverse(name, args=[press.object_ref])


_OF_A_CASE: Final = (
    "resolve",
    *(
        f"case_{act}"
        for act in (
            "sign",
            "decline",
            "claim",
            "release",
            "take_over",
            "note",
            "check",
            "snooze",
            "assign",
            "escalate",
            "attach",
        )
    ),
)
_PAGES: Final[dict[str, Callable[[Intent], str]]] = {
    **dict.fromkeys(("approve", "reject", "take_back", "withdraw"), _of_object("operation")),
    **dict.fromkeys(("propose", "freeze", "unfreeze"), _of_object("order")),
    **dict.fromkeys(("stop", "start", "pause", "resume"), _named("sending")),
    **dict.fromkeys(("people_add", "people_change", "people_decide"), _named("people")),
    **dict.fromkeys(_OF_A_CASE, _of_object("case")),
    "together": _named("unknown"),
    "approve_ticked": lambda press: reverse("ticked_result", args=[press.pk]),
    "profile": _named("profile"),
}


def page_of(press: Intent) -> str:
    """An address of the console; the first page for a form that has no page of its own."""
    if press.form.startswith(("agent_", "key_")):
        return reverse("agents")
    found = _PAGES.get(press.form)
    return found(press) if found else reverse("home")
