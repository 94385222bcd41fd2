"""What an approver's page showed of an order's money, and whether that explains what is true now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from refunds.models import Operation

_MONEY = """
SELECT o.id::text, CASE
    WHEN f.amount_minor IS NOT NULL THEN 'paid ' || f.amount_minor
    WHEN s.operation_id IS NOT NULL THEN 'held ' || s.amount_minor ELSE 'none' END
FROM operation o
LEFT JOIN reservation s ON s.operation_id = o.id AND s.state = 'held'
LEFT JOIN provider_refund f ON f.operation_id = o.id AND f.counts"""
_FACTS = """
SELECT (SELECT coalesce(sum(amount_minor), 0)::bigint FROM provider_refund
        WHERE operation_id IS NULL AND counts),
       p.state, r.return_state FROM payment p JOIN orders r ON r.id = p.order_id"""
_ORDER = ("none", "held", "paid")


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


@dataclass(frozen=True)
class Picture:
    """What a page showed: the others' money and amounts, and what is true of the order besides."""

    money: dict[str, str]
    listed: dict[str, int]
    facts: tuple[Any, ...]

    def explains(self, now: Picture, own: str) -> bool:
        """Whether only refunds of its list moved on, each at the amount that it showed."""
        if now.facts != self.facts:
            return False
        for other, money in now.money.items():
            was = self.money.get(other, "none")
            if other == own or money == was:
                continue
            (word, _, minor), old = money.partition(" "), was.partition(" ")[0]
            if self.listed.get(other) != int(minor or -1) or _ORDER.index(word) < _ORDER.index(old):
                return False
        return True


def picture(operation_id: UUID) -> Picture:
    """As a page of this refund would show it now."""
    others = Operation.objects.exclude(pk=operation_id).exclude(settled_at__isnull=False)
    listed = {str(pk): minor for pk, minor in others.values_list("pk", "amount_minor")}
    return Picture(dict(rows(_MONEY)), listed, rows(_FACTS)[0])
