"""One request that was paid more than once: what is beyond the first counts, and its account stops.

The provider did not keep to its contract, or we did not to our rules. Nobody knows yet which, and
the next refund to that account could be paid twice as well. The functions run in the transaction
and under the locks of whoever decided.
"""

from __future__ import annotations

from django.utils import timezone

from reconciliation import alarms
from reconciliation.booking import book_surplus
from reconciliation.models import Case
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.signals_of_money import DUPLICATES
from refunds.domain.outcome import RefundRecord
from refunds.ledger import RECONCILER, Locked, bump
from refunds.ledger.sending import stop_for_cause


def is_news(locked: Locked) -> bool:
    """Whether no case of this operation has asked about a second payment before."""
    asked = Case.objects.filter(operation=locked.operation, reasons__contains=["duplicate"])
    return not asked.exists()


def count_surplus(locked: Locked, surplus: tuple[RefundRecord, ...]) -> int:
    """Further refunds of this operation left the payment too: they count, and move the order.

    Returns how many of them had not counted before.
    """
    counted = 0
    for record in surplus:
        if book_surplus(locked, record):
            counted += 1
            bump(
                locked.order,
                "external",
                by=RECONCILER,
                operation=locked.operation,
                amount_minor=record.amount_minor,
                detail={"ref": record.ref},
            )
    return counted


def stop_account(locked: Locked, because: str) -> None:
    """Page, and send nothing more to the account until a person has resumed it.

    What people have seen and resumed does not stop it again; a further payment does.
    """
    account = locked.operation.provider_account
    says = f"Order {locked.order.ref}: {because}"
    reading = Reading(f"{account} {locked.payment.ref}", 1, says)
    alarms.observe(DUPLICATES, [reading], timezone.now(), asked=frozenset({reading.subject}))
    stop_for_cause(account, kind="duplicate", reason=says, by=RECONCILER.name)
