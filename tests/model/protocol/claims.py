"""Proposal, approval and what ends them; the claim, and one more send under the same key."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.protocol.values import GONE, HOLDING, READY, Attempt, Moves, Part, State


@dataclass(frozen=True)
class Claims(Part):
    """See operation.py."""

    def _before_it_is_sent(self, s: State) -> Moves:
        w, off = self.world, self.world.off
        if s.state == "none":
            if "adopted" in w.faults:
                for paid in (0, 1):
                    unknown = Attempt(GONE, outcome="unanswered", age=0, flies=-1)
                    yield "adopted", s._replace(
                        state="unknown", attempts=(unknown,), held=1, case=True, paid=paid,
                        book="succeeded" if paid else "", first=0,
                    )  # fmt: skip
                return
            yield "proposed", s._replace(state="proposed")
        if s.state == "proposed":
            yield "policy_denied", s._replace(state="denied")
            yield "policy_held", s._replace(state="awaiting_approval")
            yield "policy_cleared", s._replace(state="authorized", approval="fresh")
        if s.state == "awaiting_approval":
            yield "approved", s._replace(state="authorized", approval="fresh", taken_back=False)
            if "early" in w.faults:
                yield "rejected", s._replace(state="rejected")
                yield "expired", s._replace(state="expired")
        if s.state in ("proposed", "awaiting_approval", "authorized"):
            keeps = "released" in off
            yield "withdrawn", s._replace(state="withdrawn", held=s.held if keeps else 0)
        if s.state == "authorized":
            if s.approval == "fresh" and "changes" in w.faults:
                yield "the order changes", s._replace(approval="stale")
            if s.approval == "stale":
                yield "approval_lapsed", self._back(s)
            if "takes_back" in w.faults:
                if "take-back.checked" in off:
                    yield "the console reads authorized", s._replace(page=True)
                else:
                    yield "approval_revoked", self._back(s)._replace(taken_back=True)
        sending = s.state in HOLDING and s.page
        if sending or ("take-back.before" in off and s.state == "submitting"):
            yield "approval_revoked", self._back(s)._replace(taken_back=True, page=False)

    def _back(self, s: State) -> State:
        return s._replace(state="awaiting_approval", approval="none", held=0, lease=0)

    def _claims(self, s: State) -> Moves:
        w, off = self.world, self.world.off
        claimable = s.state == "authorized" or (
            "claim.conditional" in off and s.state == "submitting" and len(s.attempts) == 1
        )
        if not claimable or len(s.attempts) >= w.attempts or s.case or s.lost:
            return
        refused = any(each.outcome == "refused" for each in s.attempts)
        if refused and "refusal.outranks" not in off:
            return
        if s.approval != "fresh" and "claim.checks" not in off:
            return
        after = self._one_more(s, held=s.held + 1 if "held.once" in off else 1)
        if s.approval != "fresh":
            after = after._replace(why="sent on an approval that did not hold any more")
        if refused:
            after = after._replace(why="sent again after a refusal for good")
        if "claim.recorded" in off:
            # Sent first, recorded never: the ledger knows of no attempt.
            after = after._replace(state="authorized", held=s.held)
        yield "submission_started", after
        if "commit.confirmed" in off:
            yield "a claim is rolled back unseen", after._replace(state="authorized", held=s.held)
        if "commit.survives" in off:
            yield (
                "a claim is lost in a failover",
                after._replace(state="authorized", held=s.held, first=s.first),
            )

    def _one_more(self, s: State, held: int) -> State:
        first = 0 if s.first < 0 or "key.first" in self.world.off else s.first
        return s._replace(
            state="submitting", attempts=(*s.attempts, Attempt(READY)), held=held, lease=0,
            first=first, looks=() if self.world.lookups == 1 else s.looks,
        )  # fmt: skip

    def _key_lives(self, s: State) -> bool:
        """Whether one more send is the same refund for the provider, wherever it lands."""
        w, off = self.world, self.world.off
        kind = "window" if w.keys == "weak" and "key.weak" in off else w.keys
        if kind == "forever":
            return True
        if kind != "window":
            return False
        if "key.window" in off:
            return True
        if "key.flight" in off:
            return s.first < w.window
        if not w.bounded or (w.pausable and "pausable" not in off):
            return False
        return s.first + w.send + w.flight <= w.window
