"""Signals about our own machinery, and those that others than the monitors read."""

from __future__ import annotations

from typing import Final

from reconciliation.monitors import machinery, standbys
from reconciliation.monitors.signal import MINUTE, Monitor, Signal

MACHINERY: Final = (
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
    Monitor(
        name="standby_missing",
        says="The database names synchronous standbys, and none of them is there.",
        warn=None,
        page=1 * MINUTE,
        unit="s",
        why="rule 3: a commit that only one machine has may be lost, and its send made twice",
        act="Bring the standby back. Do not take its name out of the settings to make commits go on.",
        read=standbys.missing,
    ),
    Monitor(
        name="replication_lag",
        says="A standby is behind.",
        warn=10,
        page=1 * MINUTE,
        unit="s",
        why="rule 3: what it lacks is lost with the first machine",
        act="Look at its disk and the network. If it is promoted now, sending is quarantined.",
        read=standbys.lag,
    ),
    Monitor(
        name="credential_expires",
        says="The key of an account ends soon.",
        warn=21,
        page=3,
        falling=True,
        unit="days left",
        why="an ended key makes every send a refusal and every lookup a cannot tell",
        act="Get a new key, set it, and write its end into the file of the accounts.",
        read=machinery.credentials,
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
SETTLEMENT_DISAGREES: Final = Signal(
    name="settlement_disagrees",
    says="The verifier of the settlement found a refund that our books and a report do not share.",
    warn=None,
    page=0,
    unit="findings",
    why="the third standing check; the account's sending was stopped",
    act="Compare the report with the provider's own page of the refund. Do not repair by hand;"
    " resume the account when the cause is known.",
)
