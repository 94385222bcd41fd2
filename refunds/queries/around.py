"""What stands around proposals: approvals, checks, and what else moved money on their orders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import RowNumber

from refunds.domain import states
from refunds.models import Approval, Operation, OrderMove, PolicyCheck, ProviderRefund

_SHOWN_MAX = 50


def approvals_of(ids: Iterable[UUID]) -> dict[UUID, list[Approval]]:
    """All approvals of the operations, oldest first, whatever their round."""
    given: dict[UUID, list[Approval]] = defaultdict(list)
    for approval in (
        Approval.objects.select_related("approver").filter(operation__in=list(ids)).order_by("pk")
    ):
        given[approval.operation_id].append(approval)
    return given


def approvals_and_dead(
    ids: Iterable[UUID], dead: RawSQL
) -> tuple[dict[UUID, list[Approval]], frozenset[int]]:
    """The same, and the ids of those that `dead` selects (the ledger's `dead_of_waiting`), read by
    one query."""
    given: dict[UUID, list[Approval]] = defaultdict(list)
    gone = set()
    rows = Approval.objects.select_related("approver").filter(operation__in=list(ids))
    for approval in rows.annotate(is_dead=Q(pk__in=dead)).order_by("pk"):
        given[approval.operation_id].append(approval)
        if approval.is_dead:
            gone.add(approval.pk)
    return given, frozenset(gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands around one proposal: its checks, and what else moved money on the order."""

    checks: list[PolicyCheck]
    others: list[Operation]
    refunds: list[ProviderRefund]
    moves: list[OrderMove]


def around(operations: Sequence[Operation], since: Mapping[UUID, int]) -> dict[UUID, Around]:
    """Checks, other operations and provider refunds of each order, and its moves since a version.

    `since` names the version per operation; without one no moves are read. Newest first, at most
    50 of each, but every operation that has not ended: approvals are bound to that list. As many
    queries for twenty operations as for one.
    """
    orders = {each.order_id for each in operations}
    checks = _grouped(
        PolicyCheck.objects.filter(operation__in=operations).order_by("position"),
        lambda check: check.operation_id,
    )
    others = _grouped(
        _newest(
            Operation.objects.select_related("agent", "proposer").defer("body"),
            orders,
            "order_id",
            _SHOWN_MAX + 1,
            always=~Q(state__in=states.ENDED),
        ),
        lambda other: other.order_id,
    )
    refunds = _grouped(
        _newest(
            ProviderRefund.objects.select_related("payment"),
            orders,
            "payment__order_id",
            _SHOWN_MAX,
        ),
        lambda refund: refund.payment.order_id,
    )
    moves = _moves(operations, since) if since else {}
    return {
        of.pk: Around(
            checks=checks[of.pk],
            others=[each for each in others[of.order_id] if each.pk != of.pk],
            refunds=refunds[of.order_id],
            moves=[
                each
                for each in moves.get(of.order_id, ())
                if of.pk in since and each.version > since[of.pk]
            ][:_SHOWN_MAX],
        )
        for of in operations
    }


def _newest(
    rows: QuerySet[Any],
    orders: Collection[int],
    order: str,
    count_max: int,
    always: Q | None = None,
) -> list[Any]:
    """At most `count_max` rows of each order, the newest first, and `always` those that match."""
    place = Window(RowNumber(), partition_by=F(order), order_by=F("pk").desc())
    found = rows.filter(**{f"{order}__in": orders}).alias(place=place)
    near = Q(place__lte=count_max)
    return list(found.filter(near | always if always else near).order_by("-pk"))


def _moves(
    operations: Sequence[Operation], since: Mapping[UUID, int]
) -> dict[int, list[OrderMove]]:
    """The moves of the orders of `since`, oldest first."""
    oldest: dict[int, int] = {}
    for of in operations:
        if of.pk in since:
            oldest[of.order_id] = min(oldest.get(of.order_id, since[of.pk]), since[of.pk])
    wanted = Q()
    for order_id, version in oldest.items():
        wanted |= Q(order_id=order_id, version__gt=version)
    return _grouped(
        OrderMove.objects.filter(wanted).order_by("version")[: _SHOWN_MAX * len(oldest)],
        lambda move: move.order_id,
    )


def _grouped[Row, Key](rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found
