"""Schedules of what decides, without a database: thousands in a minute, one refund in each.

`decide`, its proofs and its patience are the product's own; claims, answers and the clock are
written here, as little as they need. What stands in the provider's book judges.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, Literal

from reconciliation import decide as decisions
from reconciliation import proof
from reconciliation.known import AttemptView, View
from reconciliation.matching import Finding, Verdict, match
from refunds.domain import states
from refunds.domain.contract import Accepted, Scope, allowed
from refunds.domain.limits import Limits
from refunds.domain.outcome import Expected, RefundRecord
from refunds.providers.base import StatusWords
from tests.simulation.hearsay import CONTRACTS, Paid, Paper

LIMITS: Final = Limits()
WORDS: Final = StatusWords(
    succeeded=frozenset({"succeeded"}), pending=frozenset(), failed=frozenset()
)
_BEGAN: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
_EXPECTED: Final = Expected(marker="m-1", payment_ref="pi_1", amount_minor=4000, currency="USD")
_WEATHER_SECONDS: Final = (30, 300, 1800, 5400)
_END_SECONDS: Final = 3 * 86_400
_STEPS_MAX: Final = 3000
# What two people may have accepted where no flight is stated: as long as lists lag, and then some.
_ACCEPTED_SECONDS: Final = 40
_SENDS: Final = ("not_sent", "turned_away", "killed", "slept", "lost", "late", "answer_lost")
_READS: Final = ("cannot_tell", "slow", "lost")
_INCONCLUSIVE: Final = (Verdict.ABSENT, Verdict.CANNOT_TELL)


@dataclass
class Try:
    """One attempt; seconds of the schedule."""

    no: int
    recorded: float
    outcome: str | None = None
    stopped: float | None = None
    settled: bool = False
    told: Paid | None = None


@dataclass
class Schedule:
    """One refund under one contract in one weather; `run` returns what was wrong."""

    seed: int
    step: int = 0
    now: float = 0.0
    state: str = states.AUTHORIZED
    entered: float = 0.0
    unknown_since: float | None = None
    tries: list[Try] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    finding: Finding | None = None
    looked: float | None = None
    asked: int = 0
    applied: int = 0
    has_case: bool = False
    booked: str | None = None
    wrong: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    accepted: tuple[Accepted, ...] = ()
    # Two people said that nothing comes later, and it does: what ended on their word may be false.
    bet_is_lost: bool = False
    ended_on_it: bool = False
    may_pay_twice: bool = False
    _agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.contract = CONTRACTS[self.seed % len(CONTRACTS)]
        self.provider = Paper(self.contract, self.dice, self.dice.choice((0, 0, 0.3)))
        if self.contract.flight_max.seconds is None and self.dice.random() < 0.5:
            self._accepts()
        self.calm_from = self.dice.choice(_WEATHER_SECONDS)
        self.expires = float(self.dice.choice((600, 3600, 86_400)))
        weigh = {"good": 2} | {each: self.dice.choice((0, 0, 1, 4)) for each in (*_SENDS, *_READS)}
        self.weights = weigh

    def _accepts(self) -> None:
        """The figure may turn out to be false: then what it was accepted for may go wrong, and
        nothing else may."""
        scope: Scope = self.dice.choice(("resend", "absence"))
        self.bet_is_lost = self.dice.random() < 0.5
        self.may_pay_twice = self.bet_is_lost and scope == "resend"
        self.accepted = (Accepted(1, "flight_max", _ACCEPTED_SECONDS, scope),)
        if not self.bet_is_lost:
            self.provider.flight_max = _ACCEPTED_SECONDS

    def run(self) -> list[str]:
        self._at(0, self._claim)
        for self.step in range(1, _STEPS_MAX + 1):
            if not self._agenda or self.wrong:
                break
            at, _, act = heapq.heappop(self._agenda)
            if at > _END_SECONDS:
                break
            self.now = at
            act()
            self._compare()
        if not self.wrong:
            self._judge()
        return [f"step {self.step}, {self.contract.name}: {each}" for each in self.wrong]

    # The clock and the dice

    def _at(self, seconds: float, act: Callable[[], None]) -> None:
        self._made += 1
        heapq.heappush(self._agenda, (self.now + seconds, self._made, act))

    def _fate(self, of: tuple[str, ...]) -> str:
        if self.now >= self.calm_from:
            return "good"
        names = ("good", *of)
        return self.dice.choices(names, [self.weights[each] for each in names])[0]

    # Sending

    def _claim(self) -> None:
        if self.state == states.AUTHORIZED and self.now < self.expires:
            self._submit("submission_started")

    def _resend(self) -> None:
        """Everything is compared again, on the newest lookup, as the statement does it."""
        fresh = self.looked is not None and self.now - self.looked <= LIMITS.lookup_fresh_seconds
        if self.state != states.UNKNOWN or not fresh or self.finding is None:
            return
        if self.finding.verdict in _INCONCLUSIVE and proof.may_resend(
            self._view(),
            self.finding,
            self._when(self.looked),
            self.contract,
            self.accepted,
            LIMITS,
            self._when(self.now),
        ):
            self._submit("resubmitted")

    def _submit(self, event: str) -> None:
        self._move(event, "dispatcher")
        attempt = Try(len(self.tries) + 1, self.now)
        self.tries.append(attempt)
        self._at(LIMITS.lease_seconds, lambda: self._lease_ends(attempt))
        fate = self._fate(_SENDS)
        self.seen[f"send {fate}"] += 1
        match fate:
            case "not_sent" | "turned_away":
                self._at(0.2, lambda: self._answers(attempt, fate))
            case "killed":
                if self.dice.random() < 0.5:
                    self._writes(attempt, late=self.dice.random() < 0.5, heard=False)
            case "slept":
                self._sleeps(attempt)
            case "lost":
                self._at(self.dice.choice((0.2, 30)), lambda: self._answers(attempt, "unanswered"))
            case _:
                self._writes(attempt, late=fate == "late", heard=fate == "good")

    def _sleeps(self, attempt: Try) -> None:
        """Between the last look at the clock and the first byte: the check was passed in time."""
        checked = self.dice.uniform(0, LIMITS.send_deadline_seconds)
        slept = self.dice.choice((1.0, 14.0, 16.0, 70.0, 400.0, 2000.0))

        closed = self.provider.closes_before(slept)

        def wakes() -> None:
            if closed:
                self._answers(attempt, "unanswered")
                return
            self.provider.flying -= 1
            self._writes(attempt, late=self.dice.random() < 0.5, heard=True)

        self.provider.flying += not closed  # it may still write
        self._at(checked + slept, wakes)

    def _writes(self, attempt: Try, *, late: bool, heard: bool) -> None:
        self.provider.flying += 1
        flight = self.provider.flight_seconds(late=late)
        gives_up = LIMITS.call_total_seconds
        in_time = heard and flight < gives_up

        def lands() -> None:
            made = self.provider.lands(self.now)
            if in_time:
                attempt.told = made
                self._answers(attempt, "refused" if made is None else "confirmed")

        self._at(flight, lands)
        if not in_time and (heard or self.dice.random() < 0.5):
            soon = gives_up if late or heard else 0.2
            self._at(soon, lambda: self._answers(attempt, "unanswered"))

    def _answers(self, attempt: Try, outcome: str) -> None:
        """Its own sender says what became of it, however late."""
        attempt.outcome, attempt.stopped = outcome, self.now
        if self.state == states.SUBMITTING and attempt is self.tries[-1]:
            if outcome == "confirmed" and attempt.told is not None:
                self.booked = attempt.told.ref
                self._move("confirmed", "dispatcher")
                return
            self._move("unanswered", "dispatcher")
            self._decide(None, None)
        else:
            self._at(0, self._look)

    def _lease_ends(self, attempt: Try) -> None:
        if self.state == states.SUBMITTING and attempt is self.tries[-1]:
            self._move("lease_ended", "reconciler")
            self._at(self.contract.lookup_schedule[0], self._look)

    # Finding out

    def _look(self) -> None:
        self.asked += 1
        number, started, fate = self.asked, self.now, self._fate(_READS)
        self.seen[f"read {fate}"] += 1
        if fate == "lost":
            self._at(60, self._look)
            return
        read = self.contract.lookup != "none" and fate != "cannot_tell"
        shown = self.provider.shown(started) if read else []
        told = [each.told for each in self.tries if each.told is not None]
        finding = match(
            [_record(each) for each in dict.fromkeys([*shown, *(told if not read else [])])],
            _EXPECTED,
            complete=read,
            why_incomplete="it said nothing",
            known_refs=frozenset(each.ref for each in told),
            first_recorded_at=self._when(0),
        )
        self._at(
            self.dice.choice((5.0, 70.0)) if fate == "slow" else 0.1,
            lambda: self._concludes(number, started, finding),
        )

    def _concludes(self, number: int, started: float, finding: Finding) -> None:
        if finding.verdict in _INCONCLUSIVE:
            self.looks.append(started)
        if number == self.asked:
            self.finding, self.looked = finding, started
        if number > self.applied:
            self._decide(finding, started, number)

    def _decide(self, finding: Finding | None, started: float | None, number: int = 0) -> None:
        decision = decisions.decide(
            self._view(),
            finding,
            contract=self.contract,
            words=WORDS,
            limits=LIMITS,
            now=self._when(self.now),
            looked_at=None if started is None else self._when(started),
            accepted=self.accepted,
        )
        self.seen[type(decision).__name__] += 1
        match decision:
            case decisions.Settle():
                self.applied = max(self.applied, number)
                self._settle(decision)
            case decisions.Resend():
                self._at(self.dice.choice((0.05, 20.0)), self._resend)
                self._at(self._next_look(), self._look)
            case decisions.OpenCase():
                self.has_case = True
                self.seen[f"case {decision.reason}"] += 1
                self._at(self._next_look(), self._look)
            case decisions.LookUpAgain(at):
                self._at(max(0.05, (at - self._when(self.now)).total_seconds()), self._look)
            case decisions.Rest():
                self.has_case = False

    def _next_look(self) -> float:
        at = decisions.next_look(self._view(), self.contract, LIMITS, self._when(self.now))
        return max(0.05, (at - self._when(self.now)).total_seconds())

    def _settle(self, decision: decisions.Settle) -> None:
        event = decision.event
        on_a_lost_bet = bool(decision.accepted) and self.bet_is_lost
        self.ended_on_it = self.ended_on_it or on_a_lost_bet
        if (
            not on_a_lost_bet
            and event in {"proved_absent", "proved_not_executed", "found_failed"}
            and (self.provider.book or self.provider.may_still_pay(self.now))
        ):
            self.wrong.append(f"{event} at {self.now:.1f}, and it was paid or may still be")
        if decision.covers:
            for each in self.tries:
                each.settled = each.settled or each.outcome in (None, "unanswered")
        if decision.record is not None:
            self.booked = decision.record.ref
        self._move(event, "reconciler")
        if event == "contradicted":
            self.has_case = True
        if event == "proved_absent":
            self._at(0.05, self._claim)

    def _move(self, event: str, by: Literal["dispatcher", "reconciler"]) -> None:
        self.seen[f"event {event}"] += 1
        self.state = states.rule_for(event, self.state, by).target
        self.entered = self.now
        if self.state == states.UNKNOWN and self.unknown_since is None:
            self.unknown_since = self.now

    # What decide sees

    def _when(self, seconds: float | None) -> datetime:
        return _BEGAN + timedelta(seconds=seconds or 0)

    def _view(self) -> View:
        deadline = LIMITS.send_deadline_seconds
        return View(
            state=self.state,
            entered_at=self._when(self.entered),
            unknown_since=None if self.unknown_since is None else self._when(self.unknown_since),
            attempts=tuple(
                AttemptView(
                    no=each.no,
                    outcome=each.outcome,
                    recorded_at=self._when(each.recorded),
                    send_deadline=self._when(each.recorded + deadline),
                    stop_proof_at=None if each.stopped is None else self._when(each.stopped),
                    settled_by_evidence=each.settled,
                )
                for each in self.tries
            ),
            has_case=self.has_case,
            inconclusive_at=tuple(self._when(each) for each in self.looks),
            booked_ref=self.booked,
            booked_minor=4000 if self.booked else None,
            sendable_until=self._when(self.expires) if self.now < self.expires else None,
        )

    # The judge

    def _compare(self) -> None:
        """Book against state, at every step."""
        paid = len(self.provider.book)
        if paid > 1 and not self.may_pay_twice:
            self.wrong.append(f"{paid} refunds of one operation in the book")
        if self.state == states.SUCCEEDED and not paid:
            self.wrong.append("succeeded, and the book has none")
        if self.state == states.FAILED and paid and not self.ended_on_it:
            self.wrong.append("failed, and the book has it")

    def _judge(self) -> None:
        may = allowed(self.contract, accepted=self.accepted)
        ends = may.absence and not may.needs_stop_proof
        if self.state in states.UNCERTAIN and (ends or not self.has_case):
            self.wrong.append(
                f"{self.state} in the end, {'with' if self.has_case else 'without'} a case"
            )


def _record(paid: Paid) -> RefundRecord:
    return RefundRecord(
        ref=paid.ref,
        payment_ref="pi_1",
        amount_minor=4000,
        currency="USD",
        provider_status="succeeded",
        marker="m-1",
        created_at=_BEGAN + timedelta(seconds=paid.at),
    )


def played(seed: int) -> tuple[list[str], Counter[str]]:
    """What was wrong in the schedule of this seed, and what happened in it."""
    schedule = Schedule(seed)
    return schedule.run(), schedule.seen
