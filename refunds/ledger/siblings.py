"""Siblings: which moves of an order an approval forgives, because their refunds were on its page.

Forgiven is a reservation, and nothing else, by identity and amount together (rules 45 to 48).
What was released, found, taken back, fed, disputed or frozen ends the approval whatever it
amounts to, and so does the reservation of a refund that nobody was shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models.expressions import RawSQL

from refunds.domain import states
from refunds.models import Operation


@dataclass(frozen=True, slots=True, order=True)
class Sibling:
    """Another refund of the order that has not ended, at its amount in minor units."""

    operation_id: UUID
    amount_minor: int


def siblings_of(operation: Operation) -> tuple[Sibling, ...]:
    """Every sibling of the operation, ordered by id; complete while the order's row is locked."""
    live = (
        Operation.objects.filter(order_id=operation.order_id)
        .exclude(state__in=states.ENDED)
        .exclude(pk=operation.pk)
        .order_by("pk")
    )
    return tuple(Sibling(*row) for row in live.values_list("pk", "amount_minor"))


# Whether approval `c` of operation `o` explains how its order `r` came to the version it has: as
# many forgiven moves as versions. The claim reads `r` under its lock and the log from its
# snapshot, which may be older: a move that it cannot see is a version too many, and refuses.
EXPLAINED = """r.version = c.order_version + (
      SELECT count(*) FROM order_move m
      WHERE m.order_id = r.id AND m.version > c.order_version AND m.cause = 'reserved'
        AND ((m.operation_id, m.amount_minor) = (o.id, o.amount_minor)
             OR EXISTS (
               SELECT FROM unnest(c.shown_operations, c.shown_amounts_minor) AS s (id, amount_minor)
               WHERE s.id = m.operation_id AND s.amount_minor = m.amount_minor)))"""

_UNEXPLAINED = """
SELECT c.id FROM operation o
JOIN orders r ON r.id = o.order_id
JOIN approval c ON c.operation_id = o.id AND c.round = o.round AND c.fingerprint = o.fingerprint
WHERE /*these*/ AND NOT (/*explained*/)
""".replace("/*explained*/", EXPLAINED)


def dead_of_waiting(of: Iterable[UUID] | None = None) -> RawSQL:
    """Ids of the approvals of waiting proposals that count no longer, as a subquery; `of` names
    the proposals, where it is about some only.

    A proposal that needs one person is authorised by their approval: those that wait have none.
    """
    these = f"o.state = '{states.AWAITING_APPROVAL}' AND o.quorum > 1"
    if of is not None:
        these += " AND o.id = ANY(%s)"
    values = [] if of is None else [list(of)]
    return RawSQL(_UNEXPLAINED.replace("/*these*/", these), values)  # noqa: S611 - SQL of our own


def moved_unexplained(operation_id: UUID) -> bool:
    """Whether an approval of the round does not explain how the order moved since it was given.

    Each approval by its own list. One statement: version and log are of one moment.
    """
    with connection.cursor() as cursor:
        cursor.execute(_UNEXPLAINED.replace("/*these*/", "o.id = %s"), [operation_id])
        return cursor.fetchone() is not None
