"""People in the schedules: who approves, takes back, freezes, stops, and rules on cases.

They press whatever their pages offer, also pages that are old by now. What only they can know, they
say truly: a dashboard is read in the provider's book, and a statement says what stands there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from django.utils import timezone

from reconciliation import case_work, judge, resolutions
from reconciliation.choices import DIFFERENT, EVENTS, HAPPENED, NOT_HAPPENED, REMEDY, Offer, Seen
from reconciliation.models import Case, Ruling
from reconciliation.ruling_room import seen
from refunds import approvals, freezing, withdrawal
from refunds.consent import Shown
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import sending
from refunds.models import Operation, Order, Person, SendingStop
from refunds.proposal import Caller
from refunds.providers import registry
from tests import build
from tests.cast import Cast
from tests.ledger import rulings as scenes
from tests.simulation.outsiders import ORDERS
from tests.simulation.provider import SandboxHere

_WHY = "Seen in the afternoon, and noted for whoever reads it."
_MORE_MINOR = 1000


@dataclass
class People:
    """`may_fly` says whether a request of ours could still be executed; `statements`: they bring the
    provider's statement wherever there is none, and not only where it cannot be asked, and would
    rather say what became of the refund than anything else."""

    provider: SandboxHere
    cast: Cast
    dice: Random
    may_fly: Callable[[], bool]
    statements: bool = False
    # Pages that somebody opened and did not press on yet.
    pages: dict[UUID, Shown] = field(default_factory=dict)

    def acts(self) -> dict[str, Callable[[], object]]:
        return {
            "withdraw": self.withdraw,
            "revoke": self.revoke,
            "propose": self.propose,
            "approve": self.approve,
            "freeze": self.freeze,
            "stop": self.stop,
            "poison": self.poison,
            "claim_case": self.claim_case,
            "rule": self.rule,
            "sign": self.sign,
        }

    # Before the send

    def withdraw(self) -> object:
        ids = sorted(Operation.objects.values_list("pk", flat=True))
        by = Caller(person=self.cast.ada)
        return withdrawal.withdraw(self.dice.choice(ids), by=by).state

    def revoke(self) -> object:
        """Also of what is on its way meanwhile: the page says what the database answers."""
        there = (states.AUTHORIZED, states.SUBMITTING)
        operation = Operation.objects.filter(state__in=there).order_by("pk").first()
        if operation is None:
            return None
        return approvals.revoke(operation.pk, self.cast.cleo, version=operation.version).state

    def propose(self) -> object:
        """One more on an order, which its other refunds' approvers did not see."""
        ref = self.dice.choice(ORDERS)
        if Operation.objects.filter(order__ref=ref, amount_minor=_MORE_MINOR).exists():
            return "there is one"
        return build.proposed(self.cast.foxtrot, ref, _MORE_MINOR).state

    def approve(self) -> object:
        """On the page as it is, or as it was when somebody opened it."""
        waiting = Operation.objects.filter(state=states.AWAITING_APPROVAL).order_by("pk")
        if not waiting:
            return None
        operation = self.dice.choice([*waiting])
        page = self.pages.pop(operation.pk, None)
        if page is None and self.dice.random() < 0.3:
            self.pages[operation.pk] = build.shown(operation, tick=True)
            return "opened"
        page = page or build.shown(operation, tick=True)
        by = self.dice.choice((self.cast.cleo, self.cast.ada, self.cast.ben))
        return by.username, approvals.approve(operation.pk, by, page)

    def freeze(self) -> object:
        """Freeze an order, or lift it."""
        order = Order.objects.get(ref=self.dice.choice(ORDERS))
        turn = freezing.unfreeze if order.frozen else freezing.freeze
        return turn(order.ref, self.cast.ines, reason=_WHY, version=order.version).frozen

    def stop(self) -> object:
        """Stop all sending, or start it again."""
        if SendingStop.objects.filter(ended_at=None).exists():
            sending.start_again(by=self.dice.choice(("omar", "ines")))
            return "started"
        return sending.stop_everything(by="omar", reason=_WHY).pk

    def go_on(self) -> None:
        """In the end nothing is held back any more by a press of theirs."""
        if SendingStop.objects.filter(ended_at=None).exists():
            sending.start_again(by="ines")
        for order in Order.objects.filter(frozen=True):
            freezing.unfreeze(order.ref, self.cast.olga, reason=_WHY, version=order.version)

    # Cases

    def poison(self) -> object:
        """A lookup failed for the third time, for whatever reason: people are asked at once."""
        there = (states.PENDING, states.UNKNOWN)
        operation = Operation.objects.filter(state__in=there).order_by("pk").first()
        return operation and scenes.opened(operation, "poison").pk

    def claim_case(self) -> object:
        case = self._case()
        return case and case_work.claim(case.pk, self._worker()).pk

    def rule(self) -> object:
        """The first signature on one of the answers that the page offers."""
        case = self._case()
        if case is None:
            return None
        person, question = self._worker(), seen(case, timezone.now()).gathered.question
        brings = self.statements or not question.looks
        if brings and not question.statements and case.operation is not None:
            scenes.attached(case, person)
            return "attached"
        offers = [each for each in judge.offers(question) if each.open and self._true(case, each)]
        if self.statements:
            offers = [each for each in offers if each.choice in EVENTS] or offers
        if not offers:
            return "nothing is offered"
        return self._ruled(case, person, self.dice.choice(offers))

    def sign(self) -> object:
        """The second signature, or none; whoever comes by, also who gave the first."""
        waiting = Ruling.objects.filter(end__isnull=True).select_related("case").order_by("pk")
        if not waiting:
            return None
        ruling, person = self.dice.choice([*waiting]), self._worker()
        if self.dice.random() < 0.15:
            return resolutions.decline(ruling.pk, person, reason=scenes.REASON).choice
        try:
            return scenes.signed(ruling, person).choice
        except Refusal as refused:
            resolutions.void_if_moved(ruling.case_id)
            return refused.code

    def _case(self) -> Case | None:
        cases = Case.objects.filter(closed_at=None).order_by("pk")
        about = cases.select_related("operation__order", "operation__payment", "payment__order")
        return self.dice.choice([*about]) if about else None

    def _worker(self) -> Person:
        return self.dice.choice((self.cast.omar, self.cast.ines, self.cast.olga))

    def _ruled(self, case: Case, person: Person, offer: Offer) -> object:
        refs = [each for each in offer.refs if each.ours]
        more: dict[str, object] = {}
        if refs:
            more["ref"] = self.dice.choice(refs).ref
        elif offer.needs_testimony:
            refund = self._paid(case)[0]
            more["testimony"] = scenes.told(str(refund["id"]), int(str(refund["amount_minor"])))
        elif offer.choice == REMEDY:
            more |= {"kind": "voucher", "reference": "V-1"}
        return offer.choice, scenes.ruled(case, person, offer.choice, **more).people

    def _true(self, case: Case, offer: Offer) -> bool:
        """Whether an honest person, who can read the provider's own dashboard, may say so.

        That nothing stands there is all that it shows; what may still come is the page's to know.
        Where nobody knows it, the provider's word is of more than what stands there.
        """
        if offer.needs_testimony:
            return offer.choice == HAPPENED and bool(self._paid(case))
        if offer.choice == NOT_HAPPENED and offer.by_statement:
            return not self._paid(case) and (_has_an_end(case) or not self.may_fly())
        return offer.choice not in (HAPPENED, DIFFERENT) or any(map(_is_ours, offer.refs))

    def _paid(self, case: Case) -> list[dict[str, object]]:
        marker = str(case.operation_id)
        return [
            each
            for each in self.provider.refunds(case.account)
            if each["aftersend_operation"] == marker and each["status"] == "succeeded"
        ]


def _has_an_end(case: Case) -> bool:
    """Whether the account states after what time whatever was sent has landed and shows."""
    contract = registry.account(case.account).contract
    stated = (contract.flight_max, contract.idle_close, contract.lookup_lag)
    return contract.lookup != "none" and all(each.seconds is not None for each in stated)


def _is_ours(seen: Seen) -> bool:
    return seen.ours
