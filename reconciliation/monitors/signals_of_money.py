"""Signals about money: what must never be, and is not silent when it is."""

from __future__ import annotations

from typing import Final

from reconciliation.monitors import money
from reconciliation.monitors.signal import DAY, Monitor

DUPLICATES: Final = Monitor(
    name="duplicates",
    says="One operation was refunded more than once at the provider.",
    warn=None,
    page=0,
    unit="payments",
    why="rule 8: at most one refund per request; the account's sending was stopped",
    act="Open the case, compare both refunds with the provider, and recover one of them. Find the"
    " cause, and only then resume the account on Providers.",
    read=money.duplicates,
)

MONEY: Final = (
    DUPLICATES,
    Monitor(
        name="paid_after_no",
        says="The provider shows a refund of ours that our books say did not happen.",
        warn=None,
        page=0,
        unit="payments",
        why="rules 11 and 12: a false end",
        act="Open the case. Stop whatever replaces this refund before it is sent.",
        read=money.contradictions,
    ),
    Monitor(
        name="refund_differs",
        says="A refund of ours at the provider is not as we asked for it.",
        warn=None,
        page=0,
        unit="payments",
        why="rule 20: a person decides",
        act="Open the case and compare the fields; nothing more is sent on the operation.",
        read=money.mismatches,
    ),
    Monitor(
        name="equal_refunds",
        says="Two equal refunds of a payment within a minute, which no two operations explain.",
        warn=0,
        page=None,
        unit="payments",
        why="R41",
        act="Ask who made the second one, at the provider or here.",
        read=money.twins,
    ),
    Monitor(
        name="captured_twice",
        says="An order was captured twice with the same amount within a day, and nothing went back.",
        warn=0,
        page=None,
        unit="orders",
        why="R30: two captures for one purpose",
        act="Ask the shop whether both are wanted. If not, propose the refund of one with the reason"
        " duplicate payment; it needs approval as every refund does.",
        read=money.captured_twice,
    ),
    Monitor(
        name="settlement_silent",
        says="An account whose settlement reports were imported has no new one.",
        warn=2 * DAY,
        page=5 * DAY,
        unit="s since the last import",
        why="the third standing check sees only what is imported",
        act="Import the reports that are missing: manage.py import_settlement.",
        read=money.settlement_silent,
    ),
)
