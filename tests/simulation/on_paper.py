"""One refund on paper: the ledger of a schedule without a database, and what `decide` sees of it.

Seconds are those of the schedule.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from reconciliation.known import AttemptView, View
from refunds.domain import states
from refunds.domain.limits import Limits
from refunds.domain.outcome import Expected, RefundRecord
from tests.simulation.hearsay import Paid

LIMITS: Final = Limits()
EXPECTED: Final = Expected(marker="m-1", payment_ref="pi_1", amount_minor=4000, currency="USD")
_BEGAN: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass
class Agenda:
    """What happens when; `now` is when the last of it did."""

    now: float = 0.0
    _waiting: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _made: int = 0

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        """In so many seconds; of two at one instant the first that was said comes first."""
        self._made += 1
        heapq.heappush(self._waiting, (self.now + seconds, self._made, act))

    def next(self, end: float) -> Callable[[], None] | None:
        """The next act, at its time; None when nothing is left before the end."""
        if not self._waiting or self._waiting[0][0] > end:
            return None
        self.now, _, act = heapq.heappop(self._waiting)
        return act


@dataclass
class Try:
    """One attempt."""

    no: int
    recorded: float
    outcome: str | None = None
    stopped: float | None = None
    settled: bool = False
    told: Paid | None = None


@dataclass
class Refund:
    """`expires` is when its approval does; `looks` are the starts of lookups that showed nothing."""

    expires: float
    state: str = states.AUTHORIZED
    entered: float = 0.0
    unknown_since: float | None = None
    tries: list[Try] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    has_case: bool = False
    booked: str | None = None

    def moves(self, event: str, by: Literal["dispatcher", "reconciler"], now: float) -> None:
        """By the table of states; raises what that raises where there is no such move."""
        self.state = states.rule_for(event, self.state, by).target
        self.entered = now
        if self.state == states.UNKNOWN and self.unknown_since is None:
            self.unknown_since = now

    def tried(self, now: float) -> Try:
        """One more attempt, recorded now."""
        self.tries.append(Try(len(self.tries) + 1, now))
        return self.tries[-1]

    def is_out_with(self, attempt: Try) -> bool:
        """Whether it is being sent, and by this very attempt."""
        return self.state == states.SUBMITTING and attempt is self.tries[-1]

    def view(self, now: float) -> View:
        """As the reconciler would read it from the database."""
        return View(
            state=self.state,
            entered_at=when(self.entered),
            unknown_since=None if self.unknown_since is None else when(self.unknown_since),
            attempts=tuple(map(_seen, self.tries)),
            has_case=self.has_case,
            inconclusive_at=tuple(when(each) for each in self.looks),
            booked_ref=self.booked,
            booked_minor=EXPECTED.amount_minor if self.booked else None,
            sendable_until=when(self.expires) if now < self.expires else None,
        )


def _seen(attempt: Try) -> AttemptView:
    return AttemptView(
        no=attempt.no,
        outcome=attempt.outcome,
        recorded_at=when(attempt.recorded),
        send_deadline=when(attempt.recorded + LIMITS.send_deadline_seconds),
        stop_proof_at=None if attempt.stopped is None else when(attempt.stopped),
        settled_by_evidence=attempt.settled,
    )


def when(seconds: float) -> datetime:
    """An instant of the schedule as the engine knows instants."""
    return _BEGAN + timedelta(seconds=seconds)


def shown(paid: Paid) -> RefundRecord:
    """A refund as a list shows it."""
    return RefundRecord(
        ref=paid.ref,
        payment_ref=EXPECTED.payment_ref,
        amount_minor=EXPECTED.amount_minor,
        currency=EXPECTED.currency,
        provider_status="succeeded",
        marker=EXPECTED.marker,
        created_at=when(paid.at),
    )
