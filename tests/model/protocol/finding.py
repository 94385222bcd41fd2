"""Finding out: leases, lookups and what follows from them; and people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.model.protocol.sending import Sending
from tests.model.protocol.values import (
    ENDED,
    HOLDING,
    NOT_EXECUTED,
    SAYS_NO,
    SENT,
    Look,
    Moves,
    State,
)


@dataclass(frozen=True)
class Finding(Sending):
    """See operation.py."""

    def _reconciler(self, s: State) -> Moves:
        w, off = self.world, self.world.off
        if s.state == "submitting" and s.lease >= w.lease:
            if "lease.unknown" in off:
                forgotten = s._replace(state="authorized", lease=0, held=1)
                yield "the lease ends, and it is sent anew", forgotten
            else:
                yield "lease_ended", s._replace(state="unknown", lease=0)
        asks = s.state in ENDED | HOLDING | {"authorized", "awaiting_approval"} and s.attempts
        if asks and len(s.looks) < w.lookups and w.lookup:
            yield "a lookup begins", s._replace(looks=(*s.looks, self._begun(s)))
        for at, look in enumerate(s.looks):
            if not look.shown:
                for shown in self._shows(s):
                    looks = (*s.looks[:at], look._replace(shown=shown), *s.looks[at + 1 :])
                    yield f"a lookup is shown {shown}", s._replace(looks=looks)
            else:
                for event, after in self._decides(s, at, look):
                    seen = after.lost and look.late
                    yield event, self._all_seen(after) if seen else after
        if not w.lookup and s.state == "unknown":
            yield from self._without_a_lookup(s)
        if "loses" in w.faults:
            yield from self._loses(s)

    def _loses(self, s: State) -> Moves:
        """The newest rows are gone, once, and with them that it was sent; then all is looked at."""
        if s.attempts and not s.lost and len(s.attempts) == 1 and s.state in SENT:
            yield (
                "the newest rows are lost",
                s._replace(state="authorized", held=0, lease=0, first=-1, lost=True, case=False),
            )
        if s.lost and not self.world.lookup and self._late(s):
            yield from self._reported(s)

    def _reported(self, s: State) -> Moves:
        """People bring the provider's own report, where nothing can be asked."""
        if s.paid and s.state in SAYS_NO:
            if "reported.moves" in self.world.off:
                yield "a case is opened", s._replace(lost=False, case=True)
            else:
                yield "contradicted", self._contradicted(s)._replace(lost=False)
        else:
            yield "a report shows all there is", self._all_seen(s)

    def _all_seen(self, s: State) -> State:
        """What the lost rows permitted has landed or never will."""
        if s.paid:
            return s._replace(lost=False)
        attempts = tuple(each._replace(outcome="not_sent") for each in s.attempts)
        return s._replace(lost=False, attempts=attempts)

    def _begun(self, s: State) -> Look:
        return Look(self._late(s))

    def _late(self, s: State) -> bool:
        w, off = self.world, self.world.off
        if not w.bounded and "bounded" not in off:
            return False
        if w.pausable and "pausable" not in off:
            return False
        ages = [each.age for each in s.attempts]
        return (max(ages) if "quiet.latest" in off else min(ages)) >= self._quiet_ticks()

    def _quiet_ticks(self) -> int:
        """From the record of an attempt to the first lookup that can prove anything of it."""
        w, off = self.world, self.world.off
        if "quiet" in off:
            return 0
        left_out = {"quiet.send": w.send, "quiet.flight": w.flight, "quiet.lag": w.lag}
        return w.send + w.flight + w.lag - sum(left_out[each] for each in left_out.keys() & off)

    def _shows(self, s: State) -> Iterator[str]:
        if s.paid:
            yield s.book
        elif s.stranger and "marker" in self.world.off:
            yield "succeeded"
        if not s.paid or s.paid_age < self.world.lag:
            yield "absent"

    def _decides(self, s: State, at: int, look: Look) -> Moves:
        """One decision of a lookup; whatever began before it decides no more."""
        left = (
            s.looks[:at] + s.looks[at + 1 :]
            if "decision.fenced" in self.world.off
            else s.looks[at + 1 :]
        )
        s = s._replace(looks=left)
        match look.shown:
            case "succeeded":
                yield from self._found(s)
            case "pending":
                if s.state in ("unknown", "submitting"):
                    yield "found_pending", s._replace(state="pending", lease=0)
                elif s.state in SAYS_NO:
                    yield "contradicted", self._contradicted(s)
                else:
                    yield "looked, and nothing follows", s
            case "failed":
                yield from self._found_failed(s, look)
            case "otherwise":
                if s.state in SAYS_NO and "otherwise.moves" not in self.world.off:
                    yield "contradicted", self._contradicted(s)
                else:
                    yield "a case is opened", s._replace(case=True)
            case _:
                yield from self._absent(s, look)

    def _found(self, s: State) -> Moves:
        if s.state in HOLDING:
            yield "found_succeeded", self._end(s, "succeeded")
        elif s.state in SAYS_NO or s.state == "returned":
            yield "contradicted", self._contradicted(s)
        elif s.state == "mismatched" and s.ruled:
            yield "ruling_contradicted", self._contradicted(s)
        else:
            yield "looked, and nothing follows", s

    def _contradicted(self, s: State) -> State:
        return s._replace(state="unknown", held=1, case=True, ruled=False)

    def _found_failed(self, s: State, look: Look) -> Moves:
        ambiguous = [each for each in s.attempts if each.outcome not in (*NOT_EXECUTED, "refused")]
        if s.state in HOLDING and (len(ambiguous) <= 1 or look.late or self._by_key(s)):
            yield "found_failed", self._end(s, "failed")
        elif s.state in ("succeeded", "mismatched"):
            if s.ruled:
                yield "ruling_contradicted", self._contradicted(s)
            else:
                yield "taken_back", self._end(s, "returned")
        else:
            yield "looked, and nothing follows", s

    def _by_key(self, s: State) -> bool:
        return self._explained(s, [*s.attempts])

    def _absent(self, s: State, look: Look) -> Moves:
        off = self.world.off
        late = self._late(s) if "quiet.begun" in off else look.late
        sure = late or all(each.outcome in NOT_EXECUTED for each in s.attempts)
        refused = any(each.outcome == "refused" for each in s.attempts)
        if s.state == "authorized" and refused and self._explained(s, [*s.attempts]):
            yield "found_failed", self._end(s, "failed")
            return
        if s.ruled and s.state == "succeeded" and late:
            yield "ruling_contradicted", self._contradicted(s)
            return
        if s.state != "unknown":
            yield "looked, and nothing follows", s
            return
        if refused and (sure or self._explained(s, [*s.attempts])):
            yield "found_failed", self._end(s, "failed")
            return
        if sure:
            settled = tuple(
                each if each.outcome else each._replace(outcome="not_sent") for each in s.attempts
            )
            settled = tuple(
                each._replace(outcome="not_sent") if each.outcome == "unanswered" else each
                for each in settled
            )
            proved = s._replace(attempts=settled, lease=0)
            if "settled.each" in off or not refused:
                if not s.case and len(s.attempts) < self.world.attempts:
                    yield "proved_absent", proved._replace(state="authorized")
                yield "proved_not_executed", self._end(proved, "failed")
        yield from self._may_resend(s, refused=refused)
        yield "it is asked again later", s
        yield "a case is opened", s._replace(case=True)

    def _may_resend(self, s: State, *, refused: bool) -> Moves:
        blocked = s.case or refused or s.approval != "fresh"
        if not blocked and len(s.attempts) < self.world.attempts and self._key_lives(s):
            yield "resubmitted", self._one_more(s, held=s.held)

    def _without_a_lookup(self, s: State) -> Moves:
        refused = any(each.outcome == "refused" for each in s.attempts)
        yield from self._may_resend(s, refused=refused)
        yield "a case is opened", s._replace(case=True)

    def _people(self, s: State) -> Moves:
        if "people" not in self.world.faults or not s.case:
            return
        if s.state not in HOLDING:
            yield "it is explained", s._replace(case=False)
        if s.state not in ("unknown", "pending"):
            return
        if s.paid and s.book in ("succeeded", "pending") and s.paid_age >= self.world.lag:
            yield "ruled_happened", self._end(s, "succeeded")._replace(ruled=True)
        if s.book == "otherwise":
            yield "ruled_different", self._end(s, "mismatched")._replace(ruled=True)
        quiet = self.world.lookup and self._late(s) and (not s.paid or s.paid_age < self.world.lag)
        if quiet or ("people.quiet" in self.world.off and not s.paid):
            yield "ruled_not_happened", self._end(s, "failed")._replace(ruled=True)
