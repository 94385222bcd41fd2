"""Schedules of what decides, without a database: thousands in a minute, one refund in each.

`decide`, its proofs and its patience are the product's own; claims, answers and the clock are
written here, as little as they need. What stands in the provider's book judges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from reconciliation import decide as decisions
from reconciliation import proof
from reconciliation.matching import Finding, Verdict, match
from reconciliation.told import weigh
from refunds.domain import states
from refunds.domain.contract import allowed
from refunds.providers.base import StatusWords
from tests.simulation.chances import ACCEPTED_SECONDS, READS, Bet, Chances, bet, calm_from, weights
from tests.simulation.hearsay import CONTRACTS, Paper
from tests.simulation.on_paper import EXPECTED, LIMITS, Agenda, Refund, Try, shown, when
from tests.simulation.senders import Senders

WORDS: Final = StatusWords(
    succeeded=frozenset({"succeeded"}), pending=frozenset(), failed=frozenset()
)
_END_SECONDS: Final = 3 * 86_400
_STEPS_MAX: Final = 3000
_INCONCLUSIVE: Final = (Verdict.ABSENT, Verdict.CANNOT_TELL)
_SAYS_UNPAID: Final = frozenset({"proved_absent", "proved_not_executed", "found_failed"})


@dataclass
class Schedule:
    """One refund under one contract in one weather; `run` returns what was wrong."""

    seed: int
    step: int = 0
    finding: Finding | None = None
    looked: float | None = None
    asked: int = 0
    applied: int = 0
    wrong: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    bet: Bet = field(default_factory=Bet)
    ended_on_lost_bet: bool = False

    def __post_init__(self) -> None:
        self.dice = dice = Random(self.seed)
        self.contract = CONTRACTS[self.seed % len(CONTRACTS)]
        self.agenda = Agenda()
        self.provider = Paper(self.contract, dice, dice.choice((0, 0, 0.3)))
        if self.contract.flight_max.seconds is None and dice.random() < 0.5:
            self.bet = bet(dice)
            self.provider.flight_max = None if self.bet.is_lost else ACCEPTED_SECONDS
        calm = calm_from(dice)
        self.refund = Refund(expires=float(dice.choice((600, 3600, 86_400))))
        self.chances = Chances(dice, calm, weights(dice))
        self.senders = Senders(self.provider, self.agenda, self.chances, self.seen, self._answers)

    def run(self) -> list[str]:
        self.agenda.at(0, self._claim)
        for self.step in range(1, _STEPS_MAX + 1):
            act = None if self.wrong else self.agenda.next(_END_SECONDS)
            if act is None:
                break
            act()
            self._compare()
        if not self.wrong:
            self._judge()
        return [f"step {self.step}, {self.contract.name}: {each}" for each in self.wrong]

    # Sending

    def _claim(self) -> None:
        if self.refund.state == states.AUTHORIZED and self.agenda.now < self.refund.expires:
            self._submit("submission_started")

    def _resend(self) -> None:
        """Everything is compared again, on the newest lookup, as the statement does it."""
        now = self.agenda.now
        fresh = self.looked is not None and now - self.looked <= LIMITS.lookup_fresh_seconds
        if self.refund.state != states.UNKNOWN or not fresh or self.finding is None:
            return
        if self.finding.verdict in _INCONCLUSIVE and proof.may_resend(
            self.refund.view(now),
            self.finding,
            when(self.looked or 0),
            self.contract,
            self.bet.accepted,
            LIMITS,
            when(now),
        ):
            self._submit("resubmitted")

    def _submit(self, event: str) -> None:
        self._move(event, "dispatcher")
        attempt = self.senders.send(self.refund)
        self.agenda.at(LIMITS.lease_seconds, lambda: self._lease_ends(attempt))

    def _answers(self, attempt: Try, outcome: str) -> None:
        """Its own sender says what became of it, however late."""
        attempt.outcome, attempt.stopped = outcome, self.agenda.now
        if not self.refund.is_out_with(attempt):
            self.agenda.at(0, self._look)
        elif outcome == "confirmed" and attempt.told is not None:
            self.refund.booked = attempt.told.ref
            self._move("confirmed", "dispatcher")
        else:
            self._move("unanswered", "dispatcher")
            self._decide(None, None)

    def _lease_ends(self, attempt: Try) -> None:
        if self.refund.is_out_with(attempt):
            self._move("lease_ended", "reconciler")
            self.agenda.at(self.contract.lookup_schedule[0], self._look)

    # Finding out

    def _look(self) -> None:
        self.asked += 1
        number, started = self.asked, self.agenda.now
        fate = self.chances.fate(READS, started)
        self.seen[f"read {fate}"] += 1
        if fate == "lost":
            self.agenda.at(60, self._look)
            return
        finding = self._found(complete=self.contract.lookup != "none" and fate != "cannot_tell")
        self.agenda.at(
            self.dice.choice((5.0, 70.0)) if fate == "slow" else 0.1,
            lambda: self._concludes(number, started, finding),
        )

    def _found(self, *, complete: bool) -> Finding:
        """What a list shows now, or what our own senders were told where it cannot; where there is
        none, what that adds up to, as what a provider tells by itself does."""
        told = [each.told for each in self.refund.tries if each.told is not None]
        known = frozenset(each.ref for each in told)
        if self.contract.lookup == "none":
            records = [shown(each) for each in dict.fromkeys(told)]
            return weigh(
                records, EXPECTED, words=WORDS, known_refs=known, first_recorded_at=when(0)
            )
        listed = self.provider.shown(self.agenda.now) if complete else told
        return match(
            [shown(each) for each in dict.fromkeys(listed)],
            EXPECTED,
            complete=complete,
            why_incomplete="it said nothing",
            known_refs=known,
            first_recorded_at=when(0),
        )

    def _concludes(self, number: int, started: float, finding: Finding) -> None:
        if finding.verdict in _INCONCLUSIVE:
            self.refund.looks.append(started)
        if number == self.asked:
            self.finding, self.looked = finding, started
        if number > self.applied:
            self._decide(finding, started, number)

    def _decide(self, finding: Finding | None, started: float | None, number: int = 0) -> None:
        decision = decisions.decide(
            self.refund.view(self.agenda.now),
            finding,
            contract=self.contract,
            words=WORDS,
            limits=LIMITS,
            now=when(self.agenda.now),
            looked_at=None if started is None else when(started),
            accepted=self.bet.accepted,
        )
        self.seen[type(decision).__name__] += 1
        match decision:
            case decisions.Settle():
                self.applied = max(self.applied, number)
                self._settle(decision)
            case decisions.Resend():
                self.agenda.at(self.dice.choice((0.05, 20.0)), self._resend)
                self.agenda.at(self._next_look(), self._look)
            case decisions.OpenCase():
                self.refund.has_case = True
                self.seen[f"case {decision.reason}"] += 1
                self.agenda.at(self._next_look(), self._look)
            case decisions.LookUpAgain(at):
                wait = (at - when(self.agenda.now)).total_seconds()
                self.agenda.at(max(0.05, wait), self._look)
            case decisions.Rest():
                self.refund.has_case = False

    def _next_look(self) -> float:
        now = when(self.agenda.now)
        at = decisions.next_look(self.refund.view(self.agenda.now), self.contract, LIMITS, now)
        return max(0.05, (at - now).total_seconds())

    def _settle(self, decision: decisions.Settle) -> None:
        event, now = decision.event, self.agenda.now
        on_a_lost_bet = bool(decision.accepted) and self.bet.is_lost
        self.ended_on_lost_bet = self.ended_on_lost_bet or on_a_lost_bet
        if (
            not on_a_lost_bet
            and event in _SAYS_UNPAID
            and (self.provider.book or self.provider.may_still_pay(now))
        ):
            self.wrong.append(f"{event} at {now:.1f}, and it was paid or may still be")
        if decision.covers:
            for each in self.refund.tries:
                each.settled = each.settled or each.outcome in (None, "unanswered")
        if decision.record is not None:
            self.refund.booked = decision.record.ref
        self._move(event, "reconciler")
        if event == "contradicted":
            self.refund.has_case = True
        if event == "proved_absent":
            self.agenda.at(0.05, self._claim)

    def _move(self, event: str, by: Literal["dispatcher", "reconciler"]) -> None:
        self.seen[f"event {event}"] += 1
        self.refund.moves(event, by, self.agenda.now)

    # The judge

    def _compare(self) -> None:
        """Book against state, at every step."""
        paid, state = len(self.provider.book), self.refund.state
        if paid > 1 and not self.bet.may_pay_twice:
            self.wrong.append(f"{paid} refunds of one operation in the book")
        if state == states.SUCCEEDED and not paid:
            self.wrong.append("succeeded, and the book has none")
        if state == states.FAILED and paid and not self.ended_on_lost_bet:
            self.wrong.append("failed, and the book has it")

    def _judge(self) -> None:
        may = allowed(self.contract, accepted=self.bet.accepted)
        ends = may.absence and not may.needs_stop_proof
        has_case = self.refund.has_case
        if self.refund.state in states.UNCERTAIN and (ends or not has_case):
            self.wrong.append(
                f"{self.refund.state} in the end, {'with' if has_case else 'without'} a case"
            )


def played(seed: int) -> tuple[list[str], Counter[str]]:
    """What was wrong in the schedule of this seed, and what happened in it."""
    schedule = Schedule(seed)
    return schedule.run(), schedule.seen
