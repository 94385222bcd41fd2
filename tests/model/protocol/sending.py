"""The sender of an attempt, the wire, and the provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.model.protocol.claims import Claims
from tests.model.protocol.values import (
    CHECKED,
    ENDED,
    GONE,
    HOLDS_ANSWER,
    NOT_EXECUTED,
    READY,
    WAITS,
    Moves,
    State,
)


@dataclass(frozen=True)
class Sending(Claims):
    """See operation.py."""

    def _sender(self, s: State, index: int) -> Moves:
        w, off, each, name = self.world, self.world.off, s.attempts[index], f"sender {index + 1}"
        if each.sender == READY:
            yield f"{name} dies", self._set(s, index, sender=GONE)
            in_time = each.age <= w.send or "deadline" in off
            if in_time and w.pausable:
                yield f"{name} looks at the clock", self._set(s, index, sender=CHECKED)
            elif in_time:
                yield f"{name} writes", self._set(s, index, sender=WAITS, flies=0)
            yield (
                f"{name} writes nothing",
                self._set(s, index, sender=HOLDS_ANSWER, hand="not_sent"),
            )
        elif each.sender == CHECKED:
            yield f"{name} writes after a pause", self._set(s, index, sender=WAITS, flies=0)
        elif each.sender == WAITS:
            yield (
                f"{name} hears nothing",
                self._set(s, index, sender=HOLDS_ANSWER, hand="unanswered"),
            )
            if each.flies >= 0 and "hop" in w.faults:
                believed = "hop.envelope" in off
                yield (
                    f"a hop says 429 to {name}",
                    self._set(
                        s,
                        index,
                        sender=HOLDS_ANSWER,
                        hand="turned_away" if believed else "unanswered",
                    ),
                )
        elif each.sender == HOLDS_ANSWER:
            yield from self._records(s, index)
        if (
            "sweeper.no-word" in off and s.state == "submitting" and each.sender in (READY, CHECKED)
            and len(s.attempts) == index + 1
        ):  # fmt: skip
            after = self._set(s, index, outcome="not_sent")
            yield "not_executed", after._replace(state="authorized", lease=0)

    def _records(self, s: State, index: int) -> Moves:
        """Its outcome is evidence and always kept; it decides where it still holds the operation."""
        off, hand = self.world.off, s.attempts[index].hand
        outcome = hand
        s = self._set(s, index, sender=GONE, hand="", outcome=outcome)
        holds = s.state == "submitting" and index == len(s.attempts) - 1
        stale = s.state in ("submitting", "unknown") and "decision.fenced" in off
        over = s.state in ENDED and "decision.fenced" in off
        if not (holds or stale or over):
            # Nothing follows at once: whoever looks next reads it.
            yield f"sender {index + 1} is too late to decide", s
            return
        if over and outcome == "unanswered":
            yield "unanswered", s._replace(state="unknown", why="an end was written over")
            return
        if over:
            yield f"sender {index + 1} is too late to decide", s
            return
        others = [each for at, each in enumerate(s.attempts) if at != index]
        if outcome == "confirmed":
            yield "confirmed", self._end(s, "succeeded")
        elif outcome == "accepted":
            yield "accepted", s._replace(state="pending", lease=0)
        elif outcome == "refused" and (self._explained(s, others) or "refusal.explained" in off):
            yield "refused", self._end(s, "failed")
        elif outcome in NOT_EXECUTED and (
            all(each.outcome in NOT_EXECUTED for each in others) or "back.every" in off
        ):
            yield "not_executed", s._replace(state="authorized", lease=0)
        elif "lost.unknown" in off and outcome == "unanswered":
            yield "refused", self._end(s, "failed")
        else:
            yield "unanswered", s._replace(state="unknown", lease=0)

    def _wire(self, s: State, index: int) -> Moves:
        if s.attempts[index].flies < 0:
            return
        yield f"request {index + 1} is lost", self._set(s, index, flies=-1)
        copies = (
            [False, True] if "resends" in self.world.faults and s.promise == "kept" else [False]
        )
        for stays in copies:
            for word, answer, after in self._executes(s):
                after = self._answered(after, index, answer, stays=stays)
                label = f"request {index + 1} {word}" + (", and a copy stays" if stays else "")
                yield label, after

    def _executes(self, s: State) -> Iterator[tuple[str, str, State]]:
        """What the provider does with a request, its answer, and the world after it."""
        w = self.world
        key_sent = w.keys != "none" and "key.one" not in w.off
        if key_sent and s.key >= 0 and s.answer != "touched":
            yield "is known by its key", s.answer, s
            return
        kept: dict[str, Any] = (
            {"key": 0, "answer": "confirmed"} if w.keys in ("window", "forever") else {}
        )
        if s.answer == "touched":
            kept = {"answer": "confirmed"}
        if w.polices and s.paid:
            yield "is declined, as already refunded", "already", s
            return
        if s.paid:
            yield "pays again", "confirmed", s._replace(paid=s.paid + 1)
            return
        paid = s._replace(paid=1, paid_age=0, book="succeeded")
        yield "pays", "confirmed", paid._replace(**kept)
        yield "pays, and says 500", "unanswered", paid._replace(**kept)
        if "async" in w.faults:
            pending = paid._replace(book="pending", **kept)
            yield "is accepted", "accepted", pending
        if "otherwise" in w.faults:
            yield "pays another amount", "unanswered", paid._replace(book="otherwise", **kept)
        if w.keeps_refusals and w.keys in ("window", "forever"):
            yield "is refused", "refused", s._replace(key=0, answer="refused")
        else:
            yield "is refused", "refused", s
        if "turns_away" in w.faults:
            if w.touches and s.key < 0:
                yield "is turned away", "turned_away", s._replace(key=0, answer="touched")
            else:
                yield "is turned away", "turned_away", s
        if "unlisted" in w.faults:
            listed = "turned_away" if "hop.listed" in w.off else "unanswered"
            yield "pays, and says 429", listed, paid._replace(**kept)

    def _answered(self, s: State, index: int, answer: str, *, stays: bool) -> State:
        each = s.attempts[index]
        if answer == "already":
            answer = "refused" if "already.unknown" in self.world.off else "unanswered"
        hears = each.sender == WAITS
        s = self._set(
            s, index, flies=0 if stays else -1,
            sender=HOLDS_ANSWER if hears else each.sender, hand=answer if hears else each.hand,
        )  # fmt: skip
        return s._replace(promise="resent") if stays else s

    def _provider(self, s: State) -> Moves:
        w = self.world
        if s.book == "pending":
            yield "the refund succeeds", s._replace(book="succeeded")
            yield "the refund fails", s._replace(book="failed")
        if (
            "comes_back" in w.faults
            and s.book == "succeeded"
            and s.state in ("succeeded", "unknown")
        ):
            yield "the refund comes back", s._replace(book="failed")
        if "broken" in w.faults and s.promise == "kept" and any(e.flies >= 0 for e in s.attempts):
            yield "a request flies for longer than was promised", s._replace(promise="broken")
        if "stranger" in w.faults and not s.stranger:
            yield "somebody else refunds as much", s._replace(stranger=True)
