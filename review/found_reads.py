"""What the accounts' lists, their notices and settlement reports told, for the pages beside Providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet

from reconciliation.models import AccountSweep, Case, Notice, NoticeRefused, SettlementLine
from refunds.models import Dispute, ProviderRefund, UnplacedRefund
from refunds.providers import registry

FOUND_DAYS: Final = 35
FOUND_MAX: Final = 50
COUNT_MAX: Final = 200
_DAY: Final = timedelta(days=1)
VERDICTS: Final = ("different", "extra", "missing", "match")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the lists showed that no operation of ours explains, the newest first, 50 of each."""

    outside: list[ProviderRefund]
    unplaced: list[UnplacedRefund]
    disputes: list[Dispute]


def sweeps() -> list[AccountSweep]:
    """How far each account's lists have been read; `recent` before `deep`."""
    return list(AccountSweep.objects.order_by("provider_account", "-kind"))


def without_lists() -> list[str]:
    """Accounts that cannot be listed."""
    accounts = registry.accounts().items()
    return sorted(name for name, each in accounts if each.contract.account_list == "none")


def found(now: datetime) -> Found:
    since = now - timedelta(days=FOUND_DAYS)
    outside = ProviderRefund.objects.filter(operation=None, first_seen_at__gt=since)
    unplaced = UnplacedRefund.objects.filter(placed_at=None)
    disputes = Dispute.objects.filter(first_seen_at__gt=since).select_related("payment__order")
    return Found(
        outside=list(outside.select_related("payment__order").order_by("-pk")[:FOUND_MAX]),
        unplaced=list(unplaced.order_by("-pk")[:FOUND_MAX]),
        disputes=list(disputes.order_by("-pk")[:FOUND_MAX]),
    )


def waiting_notices(after: int | None) -> QuerySet[Notice]:
    """Those that are not applied, the oldest first, from after one."""
    rows = _notices().filter(applied_at=None).order_by("pk")
    return rows.filter(pk__gt=after) if after is not None else rows


def applied_notices(after: int | None) -> QuerySet[Notice]:
    """Those that are done with, the newest first, from after one."""
    rows = _notices().exclude(applied_at=None).order_by("-pk")
    return rows.filter(pk__lt=after) if after is not None else rows


def _notices() -> QuerySet[Notice]:
    return Notice.objects.select_related("case").defer("body")


def refused(now: datetime) -> list[tuple[str, str, int]]:
    """(account, reason, how many) that the door turned away in 24 hours."""
    rows = NoticeRefused.objects.filter(minute__gt=now - _DAY).order_by("provider_account")
    sums: dict[tuple[str, str], int] = {}
    for each in rows:
        key = (each.provider_account, each.reason)
        sums[key] = sums.get(key, 0) + each.count
    return [(account, reason, count) for (account, reason), count in sums.items()]


def lines(verdict: str, after: int | None) -> QuerySet[SettlementLine]:
    """Settlement lines, the newest first; of one verdict, or all but those that match."""
    rows = SettlementLine.objects.order_by("-pk")
    rows = rows.filter(verdict=verdict) if verdict else rows.exclude(verdict="match")
    return rows.filter(pk__lt=after) if after is not None else rows


def counts() -> dict[str, int]:
    """Lines of each verdict, 200 at most."""
    first, *rest = (
        SettlementLine.objects.filter(verdict=each).values_list("verdict")[:COUNT_MAX]
        for each in VERDICTS
    )
    found = Counter(verdict for (verdict,) in first.union(*rest, all=True))
    return {each: found[each] for each in VERDICTS}


def booked(of: Iterable[SettlementLine]) -> dict[tuple[str, str], ProviderRefund]:
    """Our record of the refund of each line, by account and reference."""
    shown = list(of)
    rows = ProviderRefund.objects.filter(
        provider_account__in={each.provider_account for each in shown},
        ref__in=[each.provider_refund_ref for each in shown],
    )
    return {(row.provider_account, row.ref): row for row in rows.select_related("payment__order")}


def cases_of(rows: Iterable[ProviderRefund]) -> dict[int, Case]:
    """By our record: the newest case about its operation, or about its payment where it has none."""
    known = list(rows)
    about = Case.objects.order_by("pk")
    operations = [each.operation_id for each in known if each.operation_id]
    payments = [each.payment_id for each in known if not each.operation_id]
    of_operation = {each.operation_id: each for each in about.filter(operation__in=operations)}
    strangers = about.filter(operation=None, payment__in=payments)
    of_payment = {each.payment_id: each for each in strangers}
    found_cases = {
        each.pk: of_operation.get(each.operation_id)
        if each.operation_id
        else of_payment.get(each.payment_id)
        for each in known
    }
    return {pk: case for pk, case in found_cases.items() if case is not None}
