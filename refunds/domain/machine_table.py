"""The state machine as text, for the README and `manage.py show_machine`."""

from __future__ import annotations

from refunds.domain.states import MONEY, RULES


def table() -> str:
    """Two Markdown tables: the states with what they say about money, and the moves."""
    lines = ["| state | may money have moved? |", "|---|---|"]
    lines += [f"| `{state}` | {money} |" for state, money in MONEY.items()]
    lines += ["", "| event | from | to | by | requires |", "|---|---|---|---|---|"]
    for rule in RULES:
        sources = ", ".join(f"`{source}`" for source in rule.sources)
        by = " or ".join(rule.by)
        lines.append(f"| {rule.event} | {sources} | `{rule.target}` | {by} | {rule.requires} |")
    return "\n".join(lines)
