"""Reading an account's own lists: the source of truth for what no operation of ours explains.

Every few minutes from a cursor with overlap, and the last weeks again each day, because a list
by creation does not show again what changed later. A list that was not read to its end moves no
cursor. The wire is never called inside a transaction.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Exists, Min, OuterRef, Q

from reconciliation import disputes, outside, vanished
from reconciliation.models import AccountSweep
from refunds import doorbell
from refunds.domain import states
from refunds.ledger import connections, database_now
from refunds.models import (
    Dispute,
    Evidence,
    Operation,
    Payment,
    ProviderAccount,
    ProviderRefund,
    UnplacedRefund,
)
from refunds.providers import registry
from refunds.providers.account_list import AccountPage, ListedRefund, What
from refunds.providers.base import Account
from refunds.providers.listing import read_account

log = structlog.get_logger(__name__)

RECENT, DEEP = "recent", "deep"
_DAY = timedelta(days=1)
# While one worker reads, others leave the account alone for so long.
_READING = timedelta(seconds=90)
# A run that fails so often in a row where it stands begins anew.
_FAILURES_MAX = 3
_RETRY = timedelta(seconds=60)
# A step ends after this, whatever is left: well before its lease does.
_STEP_SECONDS = 30


def ring_for_due(now: datetime) -> list[str]:
    """Ring for every account whose lists are due; returns their names. Does what is placed since."""
    outside.conclude_placed(settings.LIMITS.sweep_batch_max)
    names = []
    for name, account in registry.accounts().items():
        row = ProviderAccount.objects.filter(name=name).first()
        if row is None or account.contract.account_list == "none":
            continue
        _stand_by(name, now)
        _note_pause(name, paused=bool(row.pause_kind), now=now)
        if AccountSweep.objects.filter(_due(now), provider_account=name).exists():
            doorbell.ring_account_sweep(name)
            names.append(name)
    return names


def _due(now: datetime) -> Q:
    return Q(due_at__lte=now) & (Q(busy_until=None) | Q(busy_until__lte=now))


def _stand_by(name: str, now: datetime) -> None:
    """An account that was never read is read at once, and its weeks again a day later."""
    AccountSweep.objects.get_or_create(provider_account=name, kind=RECENT, defaults={"due_at": now})
    AccountSweep.objects.get_or_create(
        provider_account=name, kind=DEEP, defaults={"due_at": now + _DAY}
    )


def _note_pause(name: str, *, paused: bool, now: datetime) -> None:
    """Sending that is resumed begins with a look at what happened meanwhile."""
    recent = AccountSweep.objects.filter(provider_account=name, kind=RECENT)
    if paused:
        recent.filter(saw_pause=False).update(saw_pause=True)
    else:
        recent.filter(saw_pause=True).update(saw_pause=False, due_at=now)


def sweep_account(name: str) -> list[str]:
    """Take one step of each of the account's runs that is due; returns how each came out.

    `complete`, `goes on`, or why the list could not be read.
    """
    assert not connection.in_atomic_block, "no call to a provider inside a transaction"
    account = registry.account(name)
    ended = []
    for kind in (RECENT, DEEP):
        now = database_now()
        mine = AccountSweep.objects.filter(_due(now), provider_account=name, kind=kind)
        if mine.update(busy_until=now + _READING):
            row = AccountSweep.objects.get(provider_account=name, kind=kind)
            try:
                ended.append(_step(account, row))
            finally:
                AccountSweep.objects.filter(pk=row.pk).update(busy_until=None)
    return ended


def _step(account: Account, row: AccountSweep) -> str:
    if row.began_at is None:
        _begin(account, row)
    seen: set[tuple[str, str]] = set()
    give_up_at = time.monotonic() + _STEP_SECONDS
    for _ in range(settings.LIMITS.account_sweep_pages_max):
        if time.monotonic() > give_up_at:
            break
        page = _read(account, row)
        if not page.readable:
            return _stopped(row, page.because)
        _learn(account, page)
        if row.what == "refunds":
            vanished.have_looked_up(account, row, page)
        row.page_count += 1
        place = (row.what, page.next_cursor or "")
        if page.next_cursor is None:
            if row.what == "disputes":
                return _complete(row)
            row.what, row.page_cursor = "disputes", ""
        elif place in seen or page.next_cursor == row.page_cursor:
            row.page_cursor = ""
            return _stopped(row, "the list's cursor goes round in a circle", anew=True)
        else:
            seen.add(place)
            row.page_cursor = page.next_cursor
        row.failure_count = 0
        _save(row)
    row.due_at = database_now()
    _save(row)
    return "goes on"


def _save(row: AccountSweep) -> None:
    """What a step moves; the lease and the pause that was seen are others' to write."""
    row.save(
        update_fields=[
            *("began_at", "since", "what", "page_cursor", "page_count", "edge_at"),
            *("failure_count", "because", "covered_from", "covered_until"),
            *("completed_at", "due_at"),
        ]
    )


def _begin(account: Account, row: AccountSweep) -> None:
    now, limits = database_now(), settings.LIMITS
    days = max(limits.account_sweep_days, account.contract.watch_after_success_days)
    row.since = now - timedelta(days=days)
    if row.kind == RECENT and row.covered_until is not None:
        row.since = row.covered_until - timedelta(seconds=limits.account_sweep_overlap_seconds)
    row.began_at, row.what, row.page_cursor, row.page_count = now, "refunds", "", 0
    row.edge_at = None


def _read(account: Account, row: AccountSweep) -> AccountPage:
    if not account.credential:
        return AccountPage(readable=False, because=f"no credential is set for {account.name}")
    assert row.since is not None
    what: What = "disputes" if row.what == "disputes" else "refunds"
    since = row.since
    if row.kind == DEEP and what == "disputes":
        since = min(since, _oldest_open_dispute(account.name) or since)
    connections.let_go()
    return read_account(
        account,
        what,
        since,
        row.page_cursor,
        total_seconds=settings.LIMITS.call_total_seconds,
        body_bytes_max=settings.LIMITS.list_bytes_max,
    )


def _oldest_open_dispute(name: str) -> datetime | None:
    """A dispute may stand for months: the daily reading goes back to the oldest that is open."""
    standing = Dispute.objects.filter(provider_account=name, standing__in=["open", "inquiry"])
    oldest = standing.aggregate(oldest=Min("provider_created_at"))["oldest"]
    return oldest if isinstance(oldest, datetime) else None


def _learn(account: Account, page: AccountPage) -> None:
    for refund in _news(account, page.refunds):
        heard = outside.learn(account.name, refund)
        if heard is not outside.Heard.KNOWN:
            log.info("refund_listed", account=account.name, ref=refund.record.ref, heard=heard.name)
    for dispute in page.disputes:
        disputes.learn_dispute(account.name, dispute)


def _news(account: Account, refunds: tuple[ListedRefund, ...]) -> list[ListedRefund]:
    """Those of a page that are not known just as they are: nearly all are, and cost three queries."""
    refs = [each.record.ref for each in refunds]
    booked = ProviderRefund.objects.filter(provider_account=account.name, ref__in=refs)
    rows = {row.ref: row for row in booked.select_related("operation", "payment")}
    waiting = UnplacedRefund.objects.filter(
        provider_account=account.name, ref__in=refs, placed_at=None
    )
    unplaced = {row.ref: row for row in waiting}
    names = {name for row in unplaced.values() for name in row.payment_refs}
    fed = set(
        Payment.objects.filter(provider_account=account.name, ref__in=names).values_list(
            "ref", flat=True
        )
    )
    return [
        each
        for each in refunds
        if not _is_known(rows.get(each.record.ref), each)
        and not _waits(unplaced.get(each.record.ref), each, fed)
    ]


def _is_known(row: ProviderRefund | None, listed: ListedRefund) -> bool:
    if row is None:
        return False
    if row.operation is not None:
        return outside.agrees(row.operation, row, listed.record)
    return (
        row.shown_at is not None
        and row.payment.ref in listed.payment_refs
        and row.amount_minor == listed.record.amount_minor
        and row.provider_status == listed.record.provider_status
    )


def _waits(row: UnplacedRefund | None, listed: ListedRefund, fed: set[str]) -> bool:
    return (
        row is not None
        and fed.isdisjoint(row.payment_refs)
        and row.amount_minor == listed.record.amount_minor
        and row.provider_status == listed.record.provider_status
    )


def _complete(row: AccountSweep) -> str:
    assert row.began_at is not None
    again = _DAY if row.kind == DEEP else timedelta(seconds=settings.LIMITS.account_sweep_seconds)
    row.covered_from, row.covered_until = row.since, row.began_at
    row.due_at, row.completed_at = row.began_at + again, database_now()
    row.began_at, row.because, row.failure_count = None, "", 0
    _save(row)
    return "complete"


def _stopped(row: AccountSweep, because: str, *, anew: bool = False) -> str:
    """The list could not be read on: no cursor moves. A short run begins anew, a long one goes on
    from here for a few tries."""
    row.failure_count += 1
    row.because = because[:300]
    row.due_at = database_now() + _RETRY
    short = row.page_count <= settings.LIMITS.account_sweep_pages_max
    if anew or short or row.failure_count >= _FAILURES_MAX:
        row.began_at, row.failure_count = None, 0
    _save(row)
    log.warning("account_list_incomplete", account=row.provider_account, because=because)
    return because


def covered(account: str, since: datetime) -> datetime | None:
    """The instant up to which everything created at `since` or later was listed, or None."""
    complete = AccountSweep.objects.filter(provider_account=account, covered_from__lte=since)
    return complete.order_by("-covered_until").values_list("covered_until", flat=True).first()


def read_weeks_now(account: str) -> None:
    """Have the account's last weeks listed again at the next tick."""
    now = database_now()
    _stand_by(account, now)
    AccountSweep.objects.filter(provider_account=account, kind=DEEP).update(due_at=now)


def watch_by_lookup(now: datetime) -> int:
    """Have what ended look at again, once a day, where the account has no lists; returns how many.

    An account with lists watches what ended by them, without a call for each refund.
    """
    watched = 0
    looked_today = Evidence.objects.filter(
        operation=OuterRef("pk"), kind="lookup", started_at__gt=now - _DAY
    )
    for name, account in registry.accounts().items():
        contract = account.contract
        if contract.account_list != "none" or contract.lookup == "none":
            continue
        ended = Operation.objects.filter(
            ~Exists(looked_today),
            provider_account=name,
            state__in=[states.SUCCEEDED, states.MISMATCHED],
            settled_at__gt=now - timedelta(days=contract.watch_after_success_days),
            settled_at__lte=now - _DAY,
            due_at=None,
        )
        watched += ended.update(due_at=now)
    return watched
