"""Plays a trace of several refunds of one order: who was shown what, and what was sent on it.

The names are A, B and C; amounts are units of ten dollars. An approver's picture is what each other
refund of the order holds or has taken, what left otherwise, and the facts of the order; what is
sent on an approval must be explained by the list that its page showed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain.errors import Refusal
from refunds.models import Operation
from tests import build
from tests.model.replay.order_acts import PAYMENT, OrderActs
from tests.model.replay.pictures import picture, rows
from tests.model.replay.script import Script
from tests.model.replay.stage import ACCOUNT, TICK_SECONDS, playing
from tests.model.replay.wire import BEGINS

_SUMS = """
SELECT p.captured_minor, p.held_minor, p.refunded_minor,
  (SELECT coalesce(sum(amount_minor), 0)::bigint FROM reservation WHERE state = 'held'),
  (SELECT coalesce(sum(amount_minor), 0)::bigint FROM provider_refund WHERE counts),
  (SELECT count(*) FROM operation o WHERE o.state IN ('submitting', 'pending', 'unknown')
     AND NOT EXISTS (SELECT FROM reservation s WHERE s.operation_id = o.id AND s.state = 'held'))
FROM payment p"""


@dataclass
class OrderPlayer(OrderActs):
    """`play` returns what was wrong; `told` is what became of each step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._script = Script(
            {
                r"([ABC]) is proposed and approved": self._newcomer,
                r"([AB])'s page is drawn": self._page,
                r"([AB]) is approved on it": self._approved_on_it,
                r"([AB]) is approved": self._approved,
                r"([AB]) begins to be sent": self._begins,
                r"([ABC]) is sent": self._sent,
                r"([ABC]) is paid": self._paid,
                r"([ABC]) is paid (\d) instead": self._paid_otherwise,
                r"([ABC]) is refused": self._refused,
                r"([ABC])'s answer is recorded": self._recorded,
                r"([ABC])'s answer is lost": self._answer_lost,
                r"([ABC])'s sender dies with the answer": self.crew.dies,
                r"([ABC]) is looked up": self._looked_up,
                r"two people say what ([ABC]) paid": self._ruled,
                r"([ABC]) is proposed at (\d) instead": self._proposed_at,
                r"somebody edits ([ABC]) to (\d)": self._edited,
                r"([ABC]) comes back": self._comes_back,
                r"somebody refunds (\d) in the dashboard": self._by_hand,
                r"the dashboard's refund is learned": self._learned,
                r"the payment is disputed": self._disputed,
            }
        )

    def play(self, book: Path) -> list[str]:
        del book  # asked through the provider's own door
        with playing(
            self.frame, self.provider, self.wire, self.clock, self.bells, self.crew, self.witness
        ):
            self._begin()
            for step in self.trace.steps:
                self._step(step)
            self._rest()
            self._judge_the_end()
            return [*self.witness.wrong, *self.wrong]

    def _begin(self) -> None:
        self.provider.payment(PAYMENT, self.captured_minor, account=ACCOUNT)
        build.order("4821", account=ACCOUNT, captured_minor=self.captured_minor)
        for name, units in zip("AB", self.trace.wants, strict=False):
            self._propose(name, units)

    def _step(self, step: str) -> None:
        try:
            said = self._script.said(step)
        except Refusal as refused:
            said = f"{refused.code}: {refused.detail}"
        self._look()
        self.told.append(f"{step}: {said or 'passed over'}")

    def _look(self) -> None:
        captured, held, refunded, held_sum, booked_sum, unheld = rows(_SUMS)[0]
        if (held, refunded) != (held_sum, booked_sum):
            self._say(f"held {held} of {held_sum}, refunded {refunded} of {booked_sum}")
        if unheld:
            self._say("nothing is held for a refund under way")
        if held + refunded > captured and "somebody" not in " ".join(self.trace.steps):
            self._say(f"{held + refunded} held or refunded of {captured}")
        for name, operation in self.ids.items():
            tried = operation.attempts.count()
            seen = self.pictures.get(name)
            began = tried > self.attempts.get(name, 0)
            # What it took itself is no move against it.
            if began and seen and not seen.explains(picture(operation.pk), str(operation.pk)):
                self._say(f"{name} was sent on a picture that its approver never saw")
            self.attempts[name] = tried

    def _say(self, what: str) -> None:
        if what not in self.wrong:
            self.wrong.append(what)

    def _rest(self) -> None:
        """Whoever sleeps wakes and writes, whatever was written lands, and all is looked up."""
        for name in [*self.ids]:
            if name in self.crew.named and self.crew.named[name].stands == BEGINS:
                self._sent(name)
                self._look()
            self._paid(name)
            self._recorded(name)
            self._look()
        for _ in range(8):
            self.clock.move(TICK_SECONDS)
            reconciler.end_leases(timezone.now(), batch_max=20)
            for operation in Operation.objects.filter(state__in=("pending", "unknown")):
                reconciler.look_up(operation.pk)
            for operation in Operation.objects.filter(state="authorized"):
                dispatch.send(str(operation.pk))
            self._look()

    def _judge_the_end(self) -> None:
        for name in self.ids:
            state = Operation.objects.get(pk=self.ids[name].pk).state
            counted = [e for e in self._refunds(name) if e["status"] not in ("failed", "canceled")]
            if len(counted) > 1:
                self._say(f"{name} was paid {len(counted)} times")
            if counted and state not in ("succeeded", "mismatched", "unknown"):
                self._say(f"{name} ended {state}, and was paid")
            if not counted and name not in self.otherwise and state in ("succeeded", "mismatched"):
                self._say(f"{name} ended {state}, and was not paid")
        captured, _, refunded, *_ = rows(_SUMS)[0]
        book = sum(
            each["amount_minor"]
            for each in self.provider.refunds(ACCOUNT)
            if each["status"] not in ("failed", "canceled")
        )
        if "somebody" not in " ".join(self.trace.steps) and book > captured:
            self._say(f"the book paid {book} of {captured}")
        if self.trace.learned and refunded != book:
            self._say(f"the ledger counts {refunded}, the book {book}")
