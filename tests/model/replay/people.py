"""What people try in a replay, by the doors that the console uses."""

from __future__ import annotations

from django.db import transaction

from reconciliation.cases import open_case
from reconciliation.models import Case
from refunds.ledger import lock
from refunds.models import Operation
from tests.cast import Cast
from tests.ledger.rulings import ruled, signed


def say_it_never_happened(operation: Operation, cast: Cast) -> str:
    """Two people sign that there is no refund, on the machine's own proof; raises Refusal."""
    if not Case.objects.filter(operation=operation, closed_at=None).exists():
        with transaction.atomic():
            open_case(lock(operation.pk), "unresolved", "Asked for by the scene.")
    case = Case.objects.get(operation=operation, closed_at=None)
    signed(ruled(case, cast.ines, "not_happened"), cast.olga)
    return "ended"
