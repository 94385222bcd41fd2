"""Plays a trace of one operation on the real engine, step by step, and brings it to rest.

What the product refuses to do at a step is passed over: the sender that found nothing to claim does
not write either. Everything else happens as the trace says, at its moment.
"""

from __future__ import annotations

from pathlib import Path

import httpx
from django.utils import timezone

from reconciliation import reconciler
from refunds import accepting, ledger
from refunds.domain import states
from refunds.domain.errors import CommitUnknown, Refusal
from tests import build
from tests.cast import Cast
from tests.model.replay.around import Around
from tests.model.replay.crew import Crew, Worker
from tests.model.replay.eyes import UNDER_WAY, Eyes, Seen
from tests.model.replay.script import Script
from tests.model.replay.senders import ASKS
from tests.model.replay.stage import ACCOUNT, TICK_SECONDS, playing
from tests.model.replay.traces import Trace
from tests.model.replay.wire import BEGINS, CHECKED, LOOKS, READY, WAITS
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere

CAPTURED_MINOR, WANTED_MINOR = 12900, 4000
_STEPS_TO_REST_MAX = 60


class Player(Around):
    """`play` returns what was wrong; `told` is what became of each step, for reading."""

    def __init__(
        self, trace: Trace, provider: SandboxHere, cast: Cast, crew: Crew, clock: Clock
    ) -> None:
        super().__init__(trace, provider, cast, crew, clock)
        self._script = Script(
            {
                r"(\d+) ticks? pass(?:es)?": self._ticks,
                r"(w\d) (begins to send|sends.*)": self._sends,
                r"(w\d) looks at its deadline": self._checks,
                r"(w\d) writes (r\d)": self._writes,
                r"(w\d) cannot write": self._cannot_write,
                r"(w\d) hears": self._hears,
                r"(w\d) gives up": self._gives_up,
                r"(w\d) reports": self._reports,
                r"(w\d) dies": self.crew.dies,
                r"(w\d) asks": self._asks,
                r"(w\d) sees": self._sees,
                r"(w\d) decides, (.*)": self._decides,
                r"a hop says 429 to (r\d)": self._hop,
                r"(r\d) is lost": self._lost,
                r"(r\d) (.*?)(, and a copy stays)?": self._lands,
                r"the lease ends": self._lease_ends,
                r"the order changes": self._order_changes,
                r"a lead withdraws it": self._withdrawn,
                r"the approver opens the page": self._page,
                r"the approver takes it back": self._taken_back,
                r"it is approved again": self._approved_again,
                r"a stranger refunds as much": self._stranger,
                r"people say it never happened": self._people_say_no,
                r"the acceptance is withdrawn": self._acceptance_withdrawn,
                r"a failover loses the last commit": self._failover,
            }
        )

    def play(self, book: Path) -> list[str]:
        with playing(
            self.trace, self.provider, self.wire, self.clock, self.bells, self.crew, self.witness
        ):
            return self._play(book)

    def _play(self, book: Path) -> list[str]:
        self._begin()
        self.eyes = Eyes(book, str(self.operation.pk), self.trace.refunds, self.trace.denies)
        try:
            for step in self.trace.steps:
                self._step(step)
            self._rest()
            # What a lost commit had permitted no eyes can see any more.
            unpermitted = [] if self.lost_a_commit else self.witness.wrong
            return [*unpermitted, *self.eyes.wrong, *self._end()]
        finally:
            self.eyes.close()

    def _begin(self) -> None:
        self.captured_minor = WANTED_MINOR if self.trace.provider.whole else CAPTURED_MINOR
        self.provider.payment("pi_4821", self.captured_minor, account=ACCOUNT)
        build.order("4821", account=ACCOUNT, captured_minor=self.captured_minor)
        self.operation = build.authorized(
            self.cast.foxtrot, self.cast.cleo, amount_minor=WANTED_MINOR
        )
        for scope, ticks in self.trace.accepted.items():
            try:
                self._accept(scope, ticks)
            except Refusal as refused:
                self.told.append(f"not accepted for {scope}: {refused.code}")

    def _accept(self, scope: str, ticks: int) -> None:
        seconds, reason = ticks * TICK_SECONDS, "The trace says so."
        proposed = accepting.propose(
            ACCOUNT, "flight_max", seconds, scope, reason=reason, days=30, by=self.cast.ines
        )
        accepting.confirm(proposed.pk, by=self.cast.olga)

    def _step(self, step: str) -> None:
        try:
            said = self._script.said(step)
        except (Refusal, CommitUnknown) as refused:
            said = getattr(refused, "code", type(refused).__name__)
        seen = self.eyes.look()
        self.told.append(f"{step}: {said or 'passed over'} [{seen.state}, paid {seen.paid}]")

    def _rest(self) -> None:
        """Whoever waits reports; who has not written sleeps on, and wakes when all is over."""
        self.sleepers = [
            each for each in self.crew.standing() if each.stands in (READY, CHECKED, BEGINS)
        ]
        for worker in self.crew.standing():
            if worker.stands == WAITS:
                worker.go_on(worker.found["answer"] or httpx.ReadTimeout("silence"))
            elif worker.stands in (ASKS, LOOKS):
                self._goes_on_looking(worker)
        self._until_nothing_moves()
        for worker in self.sleepers:
            self._wakes(worker)
        self._until_nothing_moves()
        if self.trace.refunds > 1 or self.trace.denies:
            self._once_more()

    def _wakes(self, worker: Worker) -> None:
        while worker.stands in (READY, CHECKED, BEGINS):
            worker.go_on()
        if worker.stands == WAITS:
            self.wire.takes_off("late", worker.found)
            worker.go_on(httpx.ReadTimeout("silence"))
        self.eyes.look()

    def _until_nothing_moves(self) -> None:
        for _ in range(_STEPS_TO_REST_MAX):
            for flying in [each for each in self.wire.flying if each.lands <= self.clock.seconds]:
                self.wire.land(flying)
                self.eyes.look()
            if self._rests():
                return
            self.clock.move(self._until_next())
            self._sweep()
            self.eyes.look()
        self.eyes.wrong.append(f"it does not come to rest: {self.eyes.look().state}")

    def _rests(self) -> bool:
        seen = self.eyes.look()
        moves = seen.state in UNDER_WAY or (seen.state == "authorized" and not seen.row["halted"])
        return not self.wire.flying and (not moves or bool(seen.row["reasons"]))

    def _until_next(self) -> float:
        due = self._fresh().due_at
        ahead = [each.lands - self.clock.seconds for each in self.wire.flying]
        if due is not None and due > timezone.now():
            ahead.append((due - timezone.now()).total_seconds())
        return max(min(ahead, default=TICK_SECONDS / 4), 0.1)

    def _sweep(self) -> None:
        now = timezone.now()
        reconciler.end_leases(now, batch_max=20)
        ledger.expire(now, batch_max=20)
        state = self._fresh().state
        if state == states.AUTHORIZED:
            self._send(None)
        elif state in UNDER_WAY and state != states.SUBMITTING:
            reconciler.look_up(self.operation.pk)
        bells, self.bells[:] = [*self.bells], []
        for task, named in bells:
            self._hear(task, named)

    def _once_more(self) -> None:
        """What was made too much, or too late, is found by whoever looks again."""
        self.clock.move(TICK_SECONDS)
        reconciler.look_up(self.operation.pk)

    def _end(self) -> list[str]:
        seen: Seen = self.eyes.look()
        wrong = []
        if seen.paid and seen.state not in (states.SUCCEEDED, *UNDER_WAY):
            wrong.append(f"ended {seen.state}, paid {seen.paid} times")
        if seen.state in UNDER_WAY and not seen.row["reasons"]:
            wrong.append(f"left {seen.state} with nobody asked")
        if seen.state == states.SUCCEEDED and self.trace.refunds == 1 and seen.row["reasons"]:
            wrong.append(f"a case of {seen.row['reasons']} about a refund that succeeded")
        if seen.paid > 1 and "duplicate" not in seen.row["reasons"]:
            wrong.append("paid twice, and nobody is told")
        unheard = seen.state != states.SUCCEEDED and "contradiction" not in seen.row["reasons"]
        if self.trace.denies and seen.paid and unheard:
            wrong.append("denied, paid, and nobody is told")
        if self.trace.refunds > 1 and seen.paid < 2:
            wrong.append(f"the book has {seen.paid}: this trace says {self.trace.refunds}")
        return wrong
