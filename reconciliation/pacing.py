"""Which lookups begin now: due ones, no more of an account than it may be asked, spread in time."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from reconciliation import budget
from refunds.domain import states
from refunds.ledger import database_now
from refunds.models import Operation
from refunds.providers import registry

# As long as a bell may be on its way before another one is rung.
_HEARD_WITHIN = timedelta(seconds=10)


def must_wait(operation: Operation) -> bool:
    """Whether the account's budget has no lookup left now; then this one is due a little later."""
    account = registry.accounts().get(operation.provider_account)
    if account is None or account.contract.lookup == "none" or not account.credential:
        return False
    at = budget.pace_now(account.name, account.contract)
    if budget.take(account.name, at):
        return False
    soon = database_now() + timedelta(seconds=at.interval_seconds * at.burst)
    clock(operation.pk).update(due_at=jittered(soon))
    return True


def clock(operation_id: UUID) -> QuerySet[Operation]:
    """The operation whose next look may be set, or none while it is being sent.

    What falls due then is the end of its lease, which no lookup may put off.
    """
    return Operation.objects.filter(pk=operation_id).exclude(state=states.SUBMITTING)


def jittered(at: datetime) -> datetime:
    """Up to a tenth later or earlier, so that many that became due together do not stay so."""
    ahead = (at - database_now()).total_seconds()
    spread = random.uniform(-0.1, 0.1)  # noqa: S311 - spreading load, not a secret
    return at + timedelta(seconds=ahead * spread)


def due(now: datetime, *, batch_max: int) -> Iterable[str]:
    """Ids whose next lookup is due, whatever their state: evidence came late, or time did.

    Of each account the oldest, and no more than its budget has room for: the rest waits in the
    database instead of in a queue, and no account's crowd keeps another's out.
    """
    wanted = Q(state__in=[states.UNKNOWN, states.PENDING, *sorted(states.ENDED)]) | Q(
        state__in=[states.AUTHORIZED, states.AWAITING_APPROVAL], halted=True
    )
    rows = Operation.objects.filter(wanted, due_at__lte=now).order_by("due_at")
    found: list[str] = []
    for name in rows.order_by().values_list("provider_account", flat=True).distinct():
        mine = rows.filter(provider_account=name).values_list("pk", flat=True)
        found += [str(pk) for pk in mine[: _room(name, batch_max)]]
    return found[:batch_max]


def rung(ids: list[str], now: datetime) -> None:
    """A bell was rung for these: they are not due again before it was heard, or is given up.

    Else a crowd that is looked up more slowly than it became due is asked about twice and thrice.
    """
    Operation.objects.filter(pk__in=ids, due_at__lte=now).update(due_at=now + _HEARD_WITHIN)


def _room(name: str, batch_max: int) -> int:
    account = registry.accounts().get(name)
    if account is None or account.contract.lookup == "none":
        return batch_max
    return min(batch_max, budget.room(name, budget.pace_now(name, account.contract)))
