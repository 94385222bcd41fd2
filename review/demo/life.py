"""Small things that keep happening in a running demo, so that no page stands still.

An agent proposes, a lead decides, an answer is lost and found again, the shop changes an order.
What happens is decided by the seed and by how much has happened already; when, by whether
somebody has signed in lately. Bounded: few proposals wait at a time, and after `CALLS_MAX`
proposals nothing more is asked for.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db.models import F, QuerySet

from refunds import approvals, feed, intake
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Agent, Operation, Payment, Person, Proposal
from review.demo.past.stock import REJECTIONS, WORDS
from review.demo.screen import shown_now
from review.demo.shop import FED_BY, Control, refund_elsewhere

log = structlog.get_logger(__name__)

SESSION: Final = "demo-life"
SEED: Final = 7
CALLS_MAX: Final = 2000
WAITING_MAX: Final = 10
# Lookups show a lost refund only after so long: long enough to be seen, and shorter than the
# patience of the accounts, after which a person would be asked.
LAG_SECONDS: Final = 10
_BUSY_SECONDS: Final = (20.0, 40.0)
_QUIET_SECONDS: Final = (240.0, 420.0)
_SIGNED_IN_LATELY: Final = timedelta(hours=1)
_READ_FIRST: Final = timedelta(seconds=15)
_ACCOUNTS: Final = ("plain-main", "stripe-main")
# Largest amount asked for, in minor units.
_ASKED_MAX: Final = {"USD": 900, "EUR": 900, "JPY": 900, "KWD": 3000}
# Who decides about an agent's proposals: a lead who does not own it.
_DECIDES: Final = {"Echo": "ben", "Foxtrot": "ada"}


class Life:
    """One pulse at a time. `control` is the sandbox's; nothing here touches another provider."""

    def __init__(
        self, control: Control, people: dict[str, Person], agents: dict[str, Agent]
    ) -> None:
        self._control = control
        self._people = people
        self._agents = [agents["Echo"], agents["Foxtrot"]]
        self._pulses = 0
        self._due_at: datetime | None = None

    def beat(self, now: datetime) -> bool:
        """One pulse when it is time for one; whether there was one."""
        seconds = self._pause(now)
        if self._due_at is None:
            self._due_at = now
        if now < self._due_at + timedelta(seconds=seconds):
            return False
        self._due_at = now
        self.pulse(now)
        return True

    def _pause(self, now: datetime) -> float:
        lately = Person.objects.filter(last_login__gte=now - _SIGNED_IN_LATELY).exists()
        return self._chance("pause").uniform(*(_BUSY_SECONDS if lately else _QUIET_SECONDS))

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{SEED}:{self._pulses}:{what}")  # noqa: S311 - a story, no secret

    def pulse(self, now: datetime) -> None:
        """An agent proposes, and somebody does one more thing."""
        self._pulses += 1
        number = Proposal.objects.filter(session_id=SESSION).count() + 1
        try:
            if number <= CALLS_MAX and self._waiting().count() < WAITING_MAX:
                self._propose(number)
            match self._pulses % 4:
                case 0 | 2:
                    self._approve_one(now, lost=True)
                case 1:
                    self._approve_one(now, lost=False)
                case _:
                    self._decide_what_is_left()
                    self._change_an_order(now)
        except Refusal as refusal:
            # What policy or another visitor of the demo stands against: the next pulse is another.
            log.info("life_refused", code=refusal.code, detail=refusal.detail)

    # What may be touched

    def _waiting(self) -> QuerySet[Operation]:
        return Operation.objects.filter(
            state=states.AWAITING_APPROVAL, proposals__session_id=SESSION
        ).order_by("pk")

    def _payments(self, room_minor: int = 2000) -> list[Payment]:
        """Payments with room, on whose orders nothing is under way."""
        busy = Operation.objects.exclude(state__in=states.ENDED).values("order_id")
        return list(
            Payment.objects.select_related("order")
            .filter(
                provider_account__in=_ACCOUNTS,
                state="captured",
                halted=False,
                order__frozen=False,
                currency__in=_ASKED_MAX,
                captured_minor__gte=F("refunded_minor") + F("held_minor") + room_minor,
            )
            .exclude(order__in=busy)
            .exclude(order__ref__startswith="demo-")
            .order_by("pk")
        )

    # What happens

    def _propose(self, number: int) -> None:
        chance, payments = self._chance("propose"), self._payments()
        if not payments:
            return
        payment = chance.choice(payments)
        reason_code = chance.choice(list(WORDS))
        request = intake.ProposalRequest(
            session_id=SESSION,
            tool_call_id=f"call_{number}",
            order_ref=payment.order.ref,
            payment_ref=payment.ref,
            amount_minor=chance.randrange(150, _ASKED_MAX[payment.currency], 10),
            currency=payment.currency,
            reason_code=reason_code,
            reason_text=chance.choice(WORDS[reason_code]),
            requested_by_kind="customer",
            requested_by_ref=payment.order.customer_ref,
            ticket_ref=f"T-{30000 + number}",
            run_ref=f"run-{9000 + number}",
            step_ref="2",
        )
        intake.propose(request, intake.Caller(agent=chance.choice(self._agents)))

    def _approve_one(self, now: datetime, *, lost: bool) -> None:
        """A lead says yes to the oldest simple one; sometimes its answer will get lost."""
        ready = self._waiting().filter(
            tier=1, possible_repeat=False, stale_cause="", created_at__lte=now - _READ_FIRST
        )
        operation = ready.select_related("agent", "payment").first()
        if operation is None:
            return
        if lost:
            self._control.lose_the_answer(
                operation.provider_account,
                operation.marker,
                payment_ref=operation.payment.ref,
                lag_seconds=LAG_SECONDS,
            )
        fresh, shown = shown_now(operation.pk)
        approvals.approve(fresh.pk, self._lead_for(operation), shown)

    def _decide_what_is_left(self) -> None:
        """What needs more than one simple yes is rejected before it fills the queue."""
        waiting = list(self._waiting().select_related("agent"))
        if len(waiting) < WAITING_MAX // 2:
            return
        hard = [each for each in waiting if each.tier > 1 or each.possible_repeat]
        stale = [each for each in waiting if each.stale_cause]
        for operation in (hard or stale)[:1]:
            code, reason = self._chance("reject").choice(REJECTIONS)
            lead, version = self._lead_for(operation), operation.version
            approvals.reject(operation.pk, lead, reason=reason, code=code, version=version)

    def _change_an_order(self, now: datetime) -> None:
        """The warehouse moves a return on, or somebody refunds by hand at the provider."""
        chance, payments = self._chance("change"), self._payments(room_minor=5000)
        if not payments:
            return
        payment = chance.choice(payments)
        if chance.random() < 0.2:
            amount_minor = chance.randrange(150, _ASKED_MAX[payment.currency], 10)
            refund_elsewhere(self._control, payment, amount_minor)
            return
        order = payment.order
        ahead = {"": "requested", "requested": "received", "received": "inspected"}
        feed.upsert(
            feed.OrderSnapshot(
                ref=order.ref,
                currency=order.currency,
                feed_seq=(order.feed_seq or 0) + 1,
                facts_as_of=now,
                return_state=ahead.get(order.return_state, "requested"),
            ),
            by=FED_BY,
        )

    def _lead_for(self, operation: Operation) -> Person:
        assert operation.agent is not None
        return self._people[_DECIDES[operation.agent.name]]
