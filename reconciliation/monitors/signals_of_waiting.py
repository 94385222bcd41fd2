"""Signals about time: what waits longer than it should."""

from __future__ import annotations

from typing import Final

from reconciliation.monitors import waiting
from reconciliation.monitors.signal import HOUR, MINUTE, Monitor

WAITING: Final = (
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
        name="lists_old",
        says="The account's own lists have not been read to their end.",
        warn=15 * MINUTE,
        page=2 * HOUR,
        unit="s since what is covered",
        why="lists are the source of truth for refunds made elsewhere and for money that comes back",
        act="Read on Providers why the list stops: credential, rate, outage.",
        read=waiting.lists_old,
    ),
    Monitor(
        name="weeks_old",
        says="The last weeks of an account have not been read again.",
        warn=30 * HOUR,
        page=72 * HOUR,
        unit="s since what is covered",
        why="what changes late, and what vanishes, shows only there",
        act="As for lists_old.",
        read=waiting.weeks_old,
    ),
)
