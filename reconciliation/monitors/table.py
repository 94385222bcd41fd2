"""Every signal with its thresholds, as data. docs/operating.md shows it, and a test holds both equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciliation.monitors.signal import Signal
from reconciliation.monitors.signals_of_machinery import (
    LOOKUPS_DISAGREE,
    MACHINERY,
    MONITORS_SILENT,
    NO_DATA,
    SCHEDULE_SILENT,
    SETTLEMENT_DISAGREES,
    TABLES_DISAGREE,
)
from reconciliation.monitors.signals_of_money import MONEY
from reconciliation.monitors.signals_of_traffic import TRAFFIC
from reconciliation.monitors.signals_of_waiting import WAITING

MONITORS: Final = (*MONEY, *WAITING, *TRAFFIC, *MACHINERY)
SIGNALS: Final[Mapping[str, Signal]] = {
    each.name: each
    for each in (
        *MONITORS,
        SCHEDULE_SILENT,
        MONITORS_SILENT,
        NO_DATA,
        TABLES_DISAGREE,
        LOOKUPS_DISAGREE,
        SETTLEMENT_DISAGREES,
    )
}


def markdown_table() -> str:
    """The table of docs/operating.md: one line per signal, thresholds in their unit."""
    lines = [
        "| signal | fires when | warns | pages | unit | first thing to do |",
        "|---|---|---|---|---|---|",
    ]
    for each in SIGNALS.values():
        than = "below" if each.falling else "above"
        warn, page = _figure(than, each.warn), _figure(than, each.page)
        lines.append(
            f"| `{each.name}` | {each.says} ({each.why}) | {warn} | {page} | {each.unit} | {each.act} |"
        )
    return "\n".join(lines)


def _figure(than: str, value: float | None) -> str:
    return "" if value is None else f"{than} {value:g}"
