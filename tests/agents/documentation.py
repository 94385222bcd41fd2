"""The generated parts of docs/agents.md: `python -m tests.agents.documentation` writes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

import django

if __name__ == "__main__":
    os.environ.setdefault("AFTERSEND_ENV", "test")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from refunds.api import codes  # noqa: E402
from refunds.domain import sameness, states  # noqa: E402
from refunds.domain.judging import CORRECTABLE_CHECKS  # noqa: E402
from refunds.domain.limits import Limits  # noqa: E402
from refunds.proposal import REASON_CODES  # noqa: E402
from refunds.queries import results  # noqa: E402
from review.demo import scenarios  # noqa: E402
from tests.provider_process import ROOT  # noqa: E402

FILE: Final = ROOT / "docs/agents.md"
_PART = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
# Beside one line for each state: what the call met, instead of where the operation stands.
_MET = (
    "| `stale` | an approval lapsed because the facts moved; `reasons` says which | no | yes |"
    " `ask_status` | 60 |",
    "| `already_done` | an equal refund has ended lately; nothing was created, and this is it: read"
    " `state`, which may also be `rejected` or `failed` |"
    " as it stands | yes | as it stands | |",
    "| `conflict` | the call met an equal refund that is open, or one that cannot be withdrawn any"
    " more (409); this is it | as it stands | yes | as it stands | |",
    "| `conflict` with `tool_call_reused` or `request_ref_reused` | the id or name was used for"
    " something else (409); this wish was not recorded, and only the `operation_id` of the other is"
    " told | | | `correct_and_propose` | |",
)


def outcomes() -> str:
    """The outcome table, one line for each state."""
    lines = [
        "| outcome | state | money may have moved | do not repeat | next_action | ask again after, s |",
        "|---|---|---|---|---|---|",
    ]
    for state, advice in results.ADVICE.items():
        again = "" if advice.ask_after_seconds is None else f"{advice.ask_after_seconds}"
        repeat = "yes" if advice.do_not_repeat else "no"
        action = f"`{advice.next_action}`{_CORRECTABLE.get(state, '')}"
        lines.append(
            f"| `{advice.outcome}` | `{state}` | {advice.money_may_have_moved} | {repeat} |"
            f" {action} | {again} |"
        )
    return "\n".join([*lines, *_MET])


def budget() -> str:
    """How many status calls a session has."""
    limits = Limits()
    return (
        f"A session may ask {limits.status_calls_max} times within"
        f" {limits.status_calls_seconds // 60} minutes for one refund that has not ended (send"
        " `session_id`; without it the key counts).\nRepeating a proposal whose refund has not ended"
        " counts too; an order's list does not.\nAfter that the answer is as true, comes at"
        " once, and says `stop_and_tell_customer`."
    )


def next_actions() -> str:
    """What every advice means, also the one that only `aftersend-mcp` gives."""
    rows = [f"| `{name}` | {means} |" for name, means in codes.STDIO_ACTIONS.items()]
    return "\n".join([results.next_actions_table(), *rows])


def reason_codes() -> str:
    """Every reason a wish may have."""
    return ", ".join(f"`{code}`" for code in REASON_CODES) + "."


def _names(codes: frozenset[str]) -> str:
    return ", ".join(f"`{code}`" for code in sorted(codes))


# Where the wish itself was wrong, another one in its place is welcome.
_CORRECTABLE: Final = {
    states.DENIED: f"; `{results.CORRECT}` where nothing else failed than"
    f" {_names(CORRECTABLE_CHECKS)}",
    states.REJECTED: f"; `{results.CORRECT}` where the lead's reason is"
    f" {_names(results.CORRECTABLE_REJECTIONS)}",
}
PARTS: Final[dict[str, Callable[[], str]]] = {
    "same": sameness.markdown_table,
    "outcomes": outcomes,
    "next": next_actions,
    "reasons": reason_codes,
    "codes": codes.codes_table,
    "budget": budget,
    "scenarios": scenarios.markdown_table,
}


def written(text: str) -> str:
    """The text with every generated part as it should be. Raises KeyError for an unknown part."""
    return _PART.sub(
        lambda found: f"<!-- generated: {found[1]} -->\n{PARTS[found[1]]().strip()}\n<!-- end -->",
        text,
    )


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))
