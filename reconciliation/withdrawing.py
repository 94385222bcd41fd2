"""Withdrawing an accepted fact that turned out to be false, in the transaction that learnt it."""

from __future__ import annotations

import structlog
from django.utils import timezone

from reconciliation.cases import open_case
from refunds.ledger import Locked, decided_under
from refunds.models import AcceptedFact

log = structlog.get_logger(__name__)
_LISTED_MAX = 5


def withdraw_false(locked: Locked, false: dict[int, str]) -> None:
    """Withdraw each fact for its reason, and ask a person about what was decided under it.

    The rows are locked by the caller (`accepted_now`). From the commit on nothing of the account is
    sent again or ended under them.
    """
    for fact_id, why in false.items():
        withdrawn = AcceptedFact.objects.filter(pk=fact_id, withdrawn_at=None).update(
            withdrawn_at=timezone.now(), withdrawn_by="reconciler", withdrawn_because=why
        )
        if not withdrawn:
            continue
        under = decided_under(fact_id)
        log.error("accepted_fact_false", fact=fact_id, because=why, decided_under=len(under))
        names = ", ".join(str(each.operation_id) for each in under[:_LISTED_MAX])
        more = f" and {len(under) - _LISTED_MAX} more" if len(under) > _LISTED_MAX else ""
        listed = f"{names}{more}" if under else "nothing"
        words = f"Accepted fact {fact_id} is false and withdrawn: {why} Decided under it: {listed}."
        case = open_case(locked, "contradiction", words)
        if words not in case.because:  # the same reason was there, with words of its own
            case.because = f"{case.because} {words}"[:500]
            case.save(update_fields=["because"])
