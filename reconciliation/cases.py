"""Opening and closing cases. Opening one halts sending; evidence goes on being read."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from reconciliation import rulings
from reconciliation.models import Case
from refunds.ledger import Locked
from refunds.models import Operation, Payment

# These concern the payment as a whole: nothing more is sent on it until a person has looked.
HALTS_PAYMENT = frozenset({"duplicate", "contradiction", "external"})
# These are about a refund that has ended: there is nothing to halt.
HALTS_NOTHING = frozenset({"remedy"})
# These end by themselves when evidence ends the operation.
CLOSES_ITSELF = frozenset({"unresolved", "overdue_pending", "poison", "unmatched_notice"})
_DUE = timedelta(hours=4)


def open_case(locked: Locked, reason: str, because: str) -> Case:
    """Open a case, or add the reason to the open one; halts under the row locks of the caller."""
    operation, payment = locked.operation, locked.payment
    if reason not in HALTS_NOTHING:
        Operation.objects.filter(pk=operation.pk).update(halted=True)
        operation.halted = True
    if reason in HALTS_PAYMENT:
        Payment.objects.filter(pk=payment.pk).update(halted=True)
        payment.halted = True
    case = Case.objects.filter(operation=operation, closed_at=None).first()
    if case is None:
        return Case.objects.create(
            operation=operation,
            payment=payment,
            reasons=[reason],
            because=because[:500],
            due_at=timezone.now() + _DUE,
        )
    if reason not in case.reasons:
        _add_reason(case, reason, because)
    return case


def _add_reason(case: Case, reason: str, because: str) -> None:
    """Something new is known: who snoozed the case sees it again."""
    case.reasons.append(reason)
    case.because, case.snoozed_until = because[:500], None
    case.version += 1
    case.save(update_fields=["reasons", "because", "snoozed_until", "version"])


def open_payment_case(payment: Payment, reason: str, because: str) -> Case | None:
    """Open a case about a payment that no operation explains, or add the reason to the open one.

    The order's and the payment's rows are locked by the caller. None when the open case has this
    reason already with the same words: nothing new is known then.
    """
    if reason in HALTS_PAYMENT:
        Payment.objects.filter(pk=payment.pk).update(halted=True)
        payment.halted = True
    case = Case.objects.filter(payment=payment, operation=None, closed_at=None).first()
    if case is None:
        return Case.objects.create(
            payment=payment,
            reasons=[reason],
            because=because[:500],
            due_at=timezone.now() + _DUE,
        )
    if reason in case.reasons and case.because == because[:500]:
        return None
    if reason not in case.reasons:
        _add_reason(case, reason, because)
        return case
    case.because = because[:500]
    case.save(update_fields=["because"])
    return case


def open_account_case(provider_account: str, reason: str, because: str) -> Case:
    """Open a case about payments of an account that are not known here, or renew its words.

    There is no payment to halt: nothing can be sent on one that we do not know.
    """
    case, created = Case.objects.get_or_create(
        provider_account=provider_account,
        payment=None,
        closed_at=None,
        defaults={
            "reasons": [reason],
            "because": because[:500],
            "due_at": timezone.now() + _DUE,
        },
    )
    if not created and reason not in case.reasons:
        _add_reason(case, reason, because)
    elif not created:
        case.because = because[:500]
        case.save(update_fields=["because"])
    return case


def close_if_explained(case: Case, because: str) -> bool:
    """Close a case about no operation whose reasons end by themselves; whether it was closed."""
    fresh = Case.objects.select_for_update().get(pk=case.pk)
    if fresh.closed_at or fresh.operation_id or not CLOSES_ITSELF.issuperset(fresh.reasons):
        return False
    rulings.void_waiting(fresh, f"Evidence decided it meanwhile: {because}")
    _close(fresh, because)
    return True


def close_by_evidence(locked: Locked, because: str) -> None:
    """Evidence ended the operation: close what closes itself and lift the operation's halt.

    A case that also has a reason only people may close stays open, and the halt with it.
    """
    case = Case.objects.select_for_update().filter(operation=locked.operation, closed_at=None)
    open_one = case.first()
    if open_one is not None:
        rulings.void_waiting(open_one, f"Evidence decided it meanwhile: {because}")
        if not CLOSES_ITSELF.issuperset(open_one.reasons):
            return
        _close(open_one, because)
    Operation.objects.filter(pk=locked.operation.pk).update(halted=False)
    locked.operation.halted = False


def close_made_good(case: Case, because: str) -> None:
    """Another refund paid what was owed; the case's row is locked, and it halts nothing."""
    rulings.void_waiting(case, because)
    _close(case, because)


def close_by_people(case: Case, payment: Payment | None, because: str) -> None:
    """People answered every reason of the case: close it, and lift the halts that were its own.

    The rows of the operation and the payment are locked by the caller, and the case's after them.
    """
    _close(case, because)
    if case.operation is not None:
        Operation.objects.filter(pk=case.operation.pk).update(halted=False)
    if payment is None:
        return
    halting = Case.objects.filter(payment=payment, closed_at=None)
    if not halting.filter(reasons__overlap=sorted(HALTS_PAYMENT)).exists():
        Payment.objects.filter(pk=payment.pk).update(halted=False)


def _close(case: Case, because: str) -> None:
    case.closed_at, case.closed_because = timezone.now(), because[:500]
    case.version += 1
    case.save(update_fields=["closed_at", "closed_because", "version"])
