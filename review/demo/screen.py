"""What somebody of the demo has on the screen when they press: read anew, as the page would."""

from __future__ import annotations

from uuid import UUID

from refunds.consent import Shown
from refunds.ledger import siblings_of
from refunds.models import Operation


def shown_now(operation_id: UUID) -> tuple[Operation, Shown]:
    """The operation as it stands, and what its page would show of it."""
    fresh = Operation.objects.select_related("order").get(pk=operation_id)
    shown = Shown(
        fingerprint=bytes(fresh.fingerprint),
        order_version=fresh.order.version,
        siblings=siblings_of(fresh),
        separate_refund_confirmed=fresh.possible_repeat,
    )
    return fresh, shown
