"""One refund from its proposal to its end: the table of states, a provider, a wire, and people.

An attempt's sender can stand still or die between any two of its steps, a request can land long
after its sender gave up, an answer or a lookup can lie in somebody's hands while all else goes on.
Time is counted in ticks; every age stops growing where nothing depends on it any more, so that the
states are finitely many and no horizon is needed.

Words of moves that change the operation's state are the events of the table, so that it can be seen
which lines of the table were taken. `off` names the rules that are left out (see removals.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.model.protocol.finding import Finding
from tests.model.protocol.values import ENDED, HOLDING, SAYS_NO, Moves, State


@dataclass(frozen=True)
class Operation(Finding):
    """See explore.Model."""

    def starts(self) -> Iterator[State]:
        early, adopted = "early" in self.world.faults, "adopted" in self.world.faults
        if early or adopted:
            yield State("none")
        else:
            yield State("authorized", approval="fresh")

    def rests(self, s: State) -> bool:
        return (s.state in ENDED or s.case) and not s.lost

    def fault(self, s: State) -> str:
        why = s.why or self._fault(s)
        return why if why.startswith(self.world.only) else ""

    def _fault(self, s: State) -> str:
        moved = s.paid and s.book != "failed"
        if s.paid > 1:
            return "paid twice"
        # Of what lost rows permitted nobody can say more before all of it was looked at.
        excused = s.promise == "broken" or s.lost
        if moved and not excused and s.state in SAYS_NO:
            return f"{s.state} although the money moved"
        if s.state == "succeeded" and not s.paid and not s.ruled:
            return "succeeded although nothing was paid"
        if s.taken_back and s.paid and s.promise == "kept":
            return "told that it is taken back although the money moved"
        if s.held > 1 or (s.state in HOLDING) > s.held:
            return f"{s.held} holds in {s.state}"
        if s.held and s.state not in (*HOLDING, "authorized"):
            return f"money is held in {s.state}"
        return ""

    def moves(self, s: State) -> Moves:
        yield "a tick", self._tick(s)
        yield from self._before_it_is_sent(s)
        yield from self._claims(s)
        for index in range(len(s.attempts)):
            yield from self._sender(s, index)
            yield from self._wire(s, index)
        yield from self._provider(s)
        yield from self._reconciler(s)
        yield from self._people(s)

    def _tick(self, s: State) -> State:
        w = self.world
        oldest = w.send + w.flight + w.lag + 1
        attempts = []
        for each in s.attempts:
            flies = each.flies
            if flies >= 0 and w.bounded and s.promise != "broken":
                flies = flies + 1 if flies < w.flight else -1
            attempts.append(each._replace(age=min(each.age + 1, oldest), flies=flies))
        key, answer = s.key, s.answer
        if key >= 0 and w.keys == "window":
            key = key + 1 if key < w.window else -1
            answer = answer if key >= 0 else ""
        return s._replace(
            attempts=tuple(attempts),
            lease=min(s.lease + 1, w.lease) if s.state == "submitting" else 0,
            first=min(s.first + 1, w.window + 1) if s.first >= 0 else -1,
            paid_age=min(s.paid_age + 1, w.lag) if s.paid else 0,
            key=key,
            answer=answer,
        )
