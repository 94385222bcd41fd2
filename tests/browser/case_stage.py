"""Cases in every condition that a page shows, on top of the stage of refunds."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from reconciliation import case_work, cases, reconciler, remedies
from reconciliation.models import Case
from refunds.intake import Caller
from refunds.models import Operation, Order, Payment
from tests import build
from tests.browser.stage import Stage
from tests.ledger.rulings import asked, attached, looked, ruled, signed, told


class CaseStage:
    """Builds cases one by one; `case` finds one by the name of its refund."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.cast, self.provider = stage, stage.cast, stage.provider
        self.payment_case: Case | None = None

    def case(self, name: str) -> Case:
        return Case.objects.select_related("operation__order", "operation__payment").get(
            operation=self.stage.by_name[name], closed_at=None
        )

    def lost(
        self,
        name: str,
        ref: str,
        amount_minor: int,
        *,
        account: str = "plain-main",
        fault: str = "drop_before_commit",
    ) -> Case:
        """An answer was lost an hour ago, and a person must find out. Proposed by an agent."""
        self.provider.fault(fault, account=account, times=1)
        operation = self.stage.sent(name, ref, amount_minor, account=account, by="foxtrot")
        Operation.objects.filter(pk=operation.pk).update(
            unknown_since=timezone.now() - timedelta(hours=1)
        )
        reconciler.look_up(operation.pk)
        asked(operation)
        return self.case(name)

    def candidate(self, name: str, ref: str, amount_minor: int, found_minor: int) -> Case:
        """The lookup shows one refund without our marker."""
        case = self.lost(name, ref, amount_minor)
        self.provider.control(
            "POST",
            "/external_refund",
            {"account": "plain-main", "payment": f"pi_{ref}", "amount_minor": found_minor},
        )
        looked(self.stage.by_name[name])
        return case

    def blind(self, name: str, ref: str, amount_minor: int, *, paper: bool = True) -> Case:
        """Nothing but a person can find out; the provider's statement is there."""
        case = self.lost(name, ref, amount_minor, account="plain-blind", fault="drop_after_commit")
        if paper:
            attached(case, self.cast.omar)
        return case

    def waiting(self, name: str, ref: str, amount_minor: int) -> Case:
        """omar signed first."""
        case = self.blind(name, ref, amount_minor)
        case_work.claim(case.pk, self.cast.omar)
        [refund] = [
            each
            for each in self.provider.refunds("plain-blind")
            if each["aftersend_operation"] == str(self.stage.by_name[name].pk)
        ]
        ruled(
            self.case(name), self.cast.omar, "happened", testimony=told(refund["id"], amount_minor)
        )
        return self.case(name)

    def owed(self, name: str, ref: str, amount_minor: int) -> Case:
        """People ruled that it did not happen: the customer still expects the money."""
        case = self.lost(name, ref, amount_minor, account="plain-unbounded")
        attached(case, self.cast.omar)
        signed(ruled(case, self.cast.omar, "not_happened"), self.cast.ines)
        return self.case(name)

    def remedied(self, name: str, ref: str, amount_minor: int) -> None:
        """The same, and a lead has proposed a new refund that makes good for it."""
        first = self.owed(name, ref, amount_minor).operation
        assert first is not None
        wish = build.request(ref, amount_minor, remedy_of=first.pk)
        with transaction.atomic():
            made = remedies.propose(wish, Caller(person=self.cast.cleo))
        self.stage.by_name[f"{name}_remedy"] = made.operation

    def about_a_payment(self, ref: str) -> Case:
        """A refund that nobody here made."""
        with transaction.atomic():
            order = Order.objects.select_for_update().get(ref=ref)
            payment = Payment.objects.select_for_update().get(order=order)
            found = cases.open_payment_case(
                payment, "external", "rf_by_hand of 20.00 USD is explained by no operation of ours."
            )
        assert found is not None
        self.payment_case = found
        return found

    def full(self) -> CaseStage:
        self.lost("lost", "C-20010", 4500)
        self.candidate("equal", "C-20011", 4600, 4600)
        self.candidate("smaller", "C-20012", 4700, 4000)
        self.blind("blind_case", "C-20013", 4800)
        self.waiting("waiting", "C-20014", 4900)
        self.owed("owed", "C-20015", 5000)
        self.remedied("made_good", "C-20016", 5100)
        self.about_a_payment("C-20011")
        case_work.claim(self.case("equal").pk, self.cast.omar)
        case_work.note(self.case("equal").pk, self.cast.ben, text="The customer wrote twice.")
        return self
