"""A case with everything that a ruling on it may touch: locked for a press, or read for a page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciliation import case_work
from reconciliation.case_evidence import Gathered, gather
from reconciliation.choices import Judged, Said
from reconciliation.consequences import Books, Plan, plan
from reconciliation.models import Case
from refunds.domain.fingerprint import digest
from refunds.ledger import Locked, lock
from refunds.ledger.facts import accepted_now
from refunds.models import Operation, Order, Payment, ProviderRefund, Reservation


@dataclass(slots=True, kw_only=True)
class Opened:
    """A case with every row that a ruling on it may touch, locked in the order of the house."""

    case: Case
    order: Order | None
    payment: Payment | None
    locked: Locked | None
    gathered: Gathered

    @property
    def operation(self) -> Operation | None:
        return self.locked.operation if self.locked else None

    @property
    def screen_digest(self) -> str:
        """Hex digest of what the page shows beside a ruling: its evidence, and the money that the
        consequence speaks of."""
        return digest([self.gathered.digest.hex(), *self.money.values()]).hex()

    @property
    def money(self) -> dict[str, int]:
        """What the consequence speaks of, by name: the order's version, and minor units."""
        books = _books(self, "")
        names = ("order_version", "captured_minor", "refunded_minor", "held_minor")
        return {name: getattr(books, name) for name in names}


def opened(case_id: int, now: datetime) -> Opened:
    """Lock the case and all it is about, and gather its evidence; raises Refusal case_closed."""
    about = Case.objects.select_related("payment").get(pk=case_id)
    accepted = accepted_now(about.account)
    locked = lock(about.operation_id) if about.operation_id is not None else None
    order: Order | None = None
    payment: Payment | None = None
    if locked is not None:
        order, payment = locked.order, locked.payment
    elif about.payment is not None:
        order = Order.objects.select_for_update().get(pk=about.payment.order_id)
        payment = Payment.objects.select_for_update().get(pk=about.payment.pk)
        payment.order = order
    case = case_work.open_for_work(case_id)
    case.operation, case.payment = locked.operation if locked else None, payment
    return Opened(
        case=case, order=order, payment=payment, locked=locked, gathered=gather(case, now, accepted)
    )


def seen(case: Case, now: datetime) -> Opened:
    """The same for a page, without any lock: it is judged again when something is pressed."""
    payment, operation = case.payment, case.operation
    locked = None
    if operation is not None:
        locked = Locked(operation.order, operation.payment, operation)
    return Opened(
        case=case,
        order=payment.order if payment else None,
        payment=payment,
        locked=locked,
        gathered=gather(case, now, accepted_now(case.account)),
    )


def planned(open_case: Opened, said: Said, judged: Judged | None) -> Plan:
    """What recording it will do, from the books as they stand."""
    operation = open_case.operation
    amount_minor = judged.amount_minor if judged else said.amount_minor
    return plan(
        said.choice,
        _books(open_case, said.ref),
        tuple(open_case.case.reasons),
        asked_minor=operation.amount_minor if operation else 0,
        amount_minor=amount_minor,
        frozen=open_case.order is not None and open_case.order.frozen,
    )


def _books(open_case: Opened, ref: str) -> Books:
    operation, payment, order = open_case.operation, open_case.payment, open_case.order
    held = (
        operation is not None
        and Reservation.objects.filter(operation=operation, state="held").exists()
    )
    known = ProviderRefund.objects.filter(payment=payment, ref=ref, counts=True).first()
    return Books(
        state=operation.state if operation else "",
        captured_minor=payment.captured_minor if payment else 0,
        refunded_minor=payment.refunded_minor if payment else 0,
        held_minor=payment.held_minor if payment else 0,
        held_here_minor=operation.amount_minor if operation and held else 0,
        booked_here_minor=known.amount_minor if known and ref else 0,
        order_version=order.version if order else 0,
    )
