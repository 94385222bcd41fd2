"""What we booked and a list of the account no longer shows: looked up, never decided here.

Each page speaks for the time between its edges and the ones before it, so nothing has to be
remembered of a list but how far it came.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q

from reconciliation.models import AccountSweep, Case
from refunds.domain import states
from refunds.ledger import database_now
from refunds.models import Operation, ProviderRefund
from refunds.providers import registry
from refunds.providers.account_list import AccountPage
from refunds.providers.base import Account

# A list may not show yet what was made so lately; where the contract names a lag, by that.
_LATELY: Final = timedelta(hours=1)
_CLOCKS: Final = timedelta(seconds=30)


def have_looked_up(account: Account, row: AccountSweep, page: AccountPage) -> int:
    """Make every operation due whose booked refund this page should have and has not; how many.

    Moves the run's edge on (`row.edge_at`, saved by the caller).
    """
    span = _span(account, row, page)
    if span is None:
        return 0
    shown = [each.record.ref for each in page.refunds]
    missing = ProviderRefund.objects.filter(
        provider_account=account.name,
        counts=True,
        operation__isnull=False,
        provider_created_at__gt=span[0],
        provider_created_at__lt=span[1],
    ).exclude(ref__in=shown)
    now = database_now()
    asked = Case.objects.filter(operation=OuterRef("pk"), closed_at=None)
    operations = Operation.objects.filter(
        ~Exists(asked),
        Q(due_at=None) | Q(due_at__gt=now),
        pk__in=list(missing.values_list("operation_id", flat=True)),
        state__in=[states.SUCCEEDED, states.MISMATCHED],
    )
    return operations.update(due_at=now)


def _span(
    account: Account, row: AccountSweep, page: AccountPage
) -> tuple[datetime, datetime] | None:
    """The time that this page speaks for; None where its refunds do not say when they were made."""
    assert row.since is not None, "a run has a beginning"
    assert row.began_at is not None, "a page is of a run"
    lag = account.contract.lookup_lag.seconds
    lately = row.began_at - (_LATELY if lag is None else timedelta(seconds=lag) + _CLOCKS)
    made = [each.record.created_at for each in page.refunds if each.record.created_at is not None]
    last = page.next_cursor is None
    if not last and not made:
        return None
    if registry.adapter(account).lists_newest_first:
        low = row.since if last else min(made)
        span = (low, min(row.edge_at or lately, lately))
        row.edge_at = low
        return span
    high = lately if last else min(max(made), lately)
    span = (row.edge_at or row.since, high)
    row.edge_at = high
    return span
