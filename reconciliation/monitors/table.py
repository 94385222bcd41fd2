"""Every signal with its thresholds, as data. docs/operating.md shows it, and a test holds both equal.

A signal fires at `warn` when a reading is above it, at `page` above that: a page wakes somebody.
Figures of seconds and shares are those of the operating rules; what must never be is above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from reconciliation.monitors import machinery, money, notices, traffic, waiting
from reconciliation.monitors.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One thing that can be wrong. `says` is the rule in a sentence, `why` where it comes from;
    None for a threshold: it never fires at that level. `act` is what to do first."""

    name: str
    says: str
    warn: float | None
    page: float | None
    unit: str
    why: str
    act: str

    def level(self, value: float) -> str:
        """page, warn or nothing."""
        if self.page is not None and value > self.page:
            return "page"
        return "warn" if self.warn is not None and value > self.warn else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor(Signal):
    """A signal that is read from the database each minute."""

    read: Callable[[], list[Reading]]


MINUTE, HOUR = 60.0, 3600.0
MONITORS: Final = (
    Monitor(
        name="duplicates",
        says="One operation was refunded more than once at the provider.",
        warn=None,
        page=0,
        unit="payments",
        why="rule 8: at most one refund per request",
        act="Open the case, compare both refunds with the provider, and recover one of them. Look"
        " for a cause before anything else is sent to this account.",
        read=money.duplicates,
    ),
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
        name="unknown_past_target",
        says="A refund is unknown for longer than its account's target.",
        warn=None,
        page=0,
        unit="s over the target",
        why="R40: the alert that matters",
        act="Open Unknown, oldest first; see on Providers whether the account answers lookups.",
        read=waiting.unknown_past_target,
    ),
    Monitor(
        name="unknown_past_quiet",
        says="A refund is unknown although nothing of it can land any more.",
        warn=30 * MINUTE,
        page=4 * HOUR,
        unit="s after the quiet period",
        why="rule 15",
        act="A complete lookup now could end it: press Check now, and read why the last ones could"
        " not tell.",
        read=waiting.unknown_past_quiet,
    ),
    Monitor(
        name="unknown_share",
        says="More than one in a hundred of a day's refunds is unknown.",
        warn=None,
        page=1,
        unit="% of the day",
        why="rule 15",
        act="Something is wrong with the account or the way to it: think of pausing it.",
        read=waiting.unknown_share,
    ),
    Monitor(
        name="key_window",
        says="The provider will soon forget the key of a refund that is unknown.",
        warn=50,
        page=75,
        unit="% of the key's life",
        why="rule 18: the last time in which sending again cannot pay twice",
        act="See what keeps it: a pause, a case, an account without answers.",
        read=waiting.key_window,
    ),
    Monitor(
        name="submitting_late",
        says="A refund is being sent although the lease of its worker ended.",
        warn=1 * MINUTE,
        page=6 * MINUTE,
        unit="s after the lease",
        why="rule 14: the sweeper ends leases",
        act="Start the lookup workers and the beat again; do not touch the rows.",
        read=waiting.submitting_late,
    ),
    Monitor(
        name="authorized_waiting",
        says="Approved refunds wait for a worker.",
        warn=1 * MINUTE,
        page=10 * MINUTE,
        unit="s, 95th percentile",
        why="approval to send within 5 s",
        act="Look at the money workers and the queue.",
        read=waiting.authorized_waiting,
    ),
    Monitor(
        name="cases_without_owner",
        says="A case has nobody.",
        warn=15 * MINUTE,
        page=2 * HOUR,
        unit="s",
        why="every escalation has an owner in an hour",
        act="Claim it, or assign it.",
        read=waiting.cases_without_owner,
    ),
    Monitor(
        name="not_looked_at",
        says="A refund is uncertain and no sweep will find it.",
        warn=None,
        page=0,
        unit="refunds",
        why="nothing that arrives is left unread",
        act="Press Check now on the operation. It is a fault of the program: report it.",
        read=waiting.not_looked_at,
    ),
    Monitor(
        name="ambiguous_answers",
        says="Of 20 sends to an account or more, too many get no answer that can be trusted.",
        warn=1,
        page=5,
        unit="% of the sends in 15 min",
        why="breaker: half rate, then stop",
        act="Ask the provider. Pause the account if it goes on.",
        read=traffic.ambiguous_answers,
    ),
    Monitor(
        name="lookups_failing",
        says="Of 20 lookups at an account or more, too many cannot tell.",
        warn=20,
        page=50,
        unit="% of the lookups in 15 min",
        why="R40: the share of inconclusive lookups",
        act="Read on Providers what the last answers were: credential, mode, rate, outage.",
        read=traffic.lookups_failing,
    ),
    Monitor(
        name="late_landing",
        says="A refund was made later than the account's flight bound allows.",
        warn=None,
        page=0,
        unit="s later than D and the skew",
        why="rule 44: D is wrong, absence proves nothing there",
        act="Withdraw the accepted bound on Providers, or correct the contract; look again at"
        " everything that was ended as not executed.",
        read=traffic.late_landings,
    ),
    Monitor(
        name="lookup_lag",
        says="A complete list did not show a refund that existed.",
        warn=50,
        page=100,
        unit="% of the account's lag bound V",
        why="rule 15: V is wrong",
        act="As for a late landing.",
        read=traffic.lookup_lag,
    ),
    Monitor(
        name="stale_decisions",
        says="Answers come after their lease has ended.",
        warn=10,
        page=100,
        unit="in an hour",
        why="rule 21: leases too short, or workers paused",
        act="Look for overload or suspended machines. Nothing is wrong with the money.",
        read=traffic.stale_decisions,
    ),
    Monitor(
        name="deadline_missed",
        says="Of 20 sends or more, too many are given up because they came too late to leave.",
        warn=1,
        page=10,
        unit="% of the sends in an hour",
        why="rule 7: overload",
        act="Fewer children per money worker, or more machines.",
        read=traffic.deadline_missed,
    ),
    Monitor(
        name="notices_refused",
        says="Notices come in with a wrong signature or time.",
        warn=5,
        page=50,
        unit="in 5 min",
        why="an attack, or a secret that was rotated at one end only",
        act="Compare the account's webhook secret with the provider's. Nothing of it was stored.",
        read=notices.refused,
    ),
    Monitor(
        name="notices_waiting",
        says="A notice is stored and not applied.",
        warn=10 * MINUTE,
        page=2 * HOUR,
        unit="s",
        why="rule 27: parked, never forgotten",
        act="Look at the lookup workers. Lists and lookups find the same without notices.",
        read=notices.backlog,
    ),
    Monitor(
        name="notices_silent",
        says="Refunds succeed at an account, and it tells us nothing any more.",
        warn=6 * HOUR,
        page=24 * HOUR,
        unit="s",
        why="the subscription was switched off",
        act="Switch it on again at the provider. Nothing is lost: lists and lookups go on.",
        read=notices.silence,
    ),
    Monitor(
        name="own_acts_refused",
        says="Somebody keeps trying to decide about their own.",
        warn=2,
        page=9,
        unit="in a day",
        why="R12: fraud looks like this",
        act="Talk to them, and to whoever owns their agents.",
        read=traffic.own_acts,
    ),
    Monitor(
        name="database_clock",
        says="The database's clock and a worker's are apart.",
        warn=1,
        page=5,
        unit="s",
        why="rule 15: the skew that the quiet period allows for",
        act="Set the clocks; stop sending from the worker that is off.",
        read=machinery.database_clock,
    ),
    Monitor(
        name="worker_clock",
        says="A sender's clock cannot be the database's.",
        warn=1,
        page=5,
        unit="s",
        why="rule 15: the skew that the quiet period allows for",
        act="Set the clocks; stop sending from the worker that is off.",
        read=machinery.worker_clocks,
    ),
    Monitor(
        name="account_paused",
        says="An account is paused, and nobody pressed it.",
        warn=None,
        page=0,
        unit="s",
        why="a stop that nobody sees is a queue that nobody sends",
        act="Read its cause on Providers.",
        read=machinery.paused_accounts,
    ),
    Monitor(
        name="sending_stopped",
        says="All sending is stopped.",
        warn=None,
        page=0,
        unit="s",
        why="rule 3, or a person",
        act="Read the cause on Providers: it also says what is missing before a quarantine ends.",
        read=machinery.stopped,
    ),
    Monitor(
        name="account_gone",
        says="Refunds have not ended at an account that is configured no more.",
        warn=None,
        page=0,
        unit="refunds",
        why="an account with open refunds is never removed",
        act="Put the account and its key back.",
        read=machinery.accounts_gone,
    ),
)
# Read elsewhere: by the schedule, by the verifiers, and by whoever watches the monitors.
SCHEDULE_SILENT: Final = Signal(
    name="schedule_silent",
    says="A task of the schedule does not come to its end.",
    warn=1 * MINUTE,
    page=5 * MINUTE,
    unit="s beyond its interval",
    why="the sweeps find all due work",
    act="Start the beat and the lookup workers again; the task's own error is in the log.",
)
MONITORS_SILENT: Final = Signal(
    name="monitors_silent",
    says="The monitors themselves have not run.",
    warn=None,
    page=5 * MINUTE,
    unit="s since the last run",
    why="quiet alarms must mean that all is well",
    act="Start the beat and the lookup workers again. Do not read the list as all clear.",
)
NO_DATA: Final = Signal(
    name="no_data",
    says="A signal cannot be computed.",
    warn=0,
    page=15 * MINUTE,
    unit="s",
    why="no answer is no good answer",
    act="Its error is on the page Alerts and in the log.",
)
TABLES_DISAGREE: Final = Signal(
    name="tables_disagree",
    says="The verifier of the tables found an order whose rows contradict each other.",
    warn=None,
    page=0,
    unit="findings",
    why="the first standing check; the account's sending was stopped",
    act="Do not repair by hand. Compare the order with the provider and with the event trail, and"
    " let two people resume the account when the cause is known.",
)
LOOKUPS_DISAGREE: Final = Signal(
    name="lookups_disagree",
    says="The verifier of the lookups found a state that its own newest finding contradicts.",
    warn=None,
    page=0,
    unit="findings",
    why="the second standing check; the account's sending was stopped",
    act="Press Check now on the operation. If the finding stays, the case says what to do; resume"
    " the account when the cause is known.",
)
SIGNALS: Final[Mapping[str, Signal]] = {
    each.name: each
    for each in (
        *MONITORS,
        SCHEDULE_SILENT,
        MONITORS_SILENT,
        NO_DATA,
        TABLES_DISAGREE,
        LOOKUPS_DISAGREE,
    )
}


def markdown_table() -> str:
    """The table of docs/operating.md: one line per signal, thresholds in their unit."""
    lines = [
        "| signal | fires when | warns above | pages above | unit | first thing to do |",
        "|---|---|---|---|---|---|",
    ]
    for each in SIGNALS.values():
        warn, page = _figure(each.warn), _figure(each.page)
        lines.append(
            f"| `{each.name}` | {each.says} ({each.why}) | {warn} | {page} | {each.unit} | {each.act} |"
        )
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
