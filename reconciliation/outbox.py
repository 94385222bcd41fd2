"""The outbox: what happened becomes messages, each once, under an id of its own.

Triggers write what happened beside what happened; `announce` does the same for what no trigger
sees. `expand` turns it into deliveries, and `reconciliation.outbox_sending` delivers them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.utils import timezone

from reconciliation import outbox_plan as plan
from reconciliation import outbox_receivers as receivers
from reconciliation.models import Consequence, Delivery, DeliveryTry
from reconciliation.outbox_lines import GIVE_UP_AFTER, add_lines
from refunds.domain.errors import Refusal
from refunds.models import Operation

log = structlog.get_logger(__name__)

_BATCH_MAX: Final = 200
_EXPANDER: Final = 7_115_204_681  # one expands at a time, so that lines bundle


class ExpansionFailed(Exception):
    """Some of what happened could not be turned into messages; it stays and is tried again."""


def announce(
    name: str,
    text: str,
    *,
    to: str,
    about: str,
    operation: Operation | None = None,
    path: str = "",
    pages: bool = False,
) -> bool:
    """Tell an audience something, once for this `name`; False when it was announced before.

    Call it inside the transaction of what happened: undoing one undoes the other. `to` is a role,
    `on_call` or `person:<username>`; `text` is one sentence with amount, order and why, without
    anything of the customer; `about` is a word for machines; `path` is the page to open, where it
    is not the operation's. `pages`: do not wait for the person's other messages.
    """
    assert connection.in_atomic_block, "what is told is written with what happened"
    assert to in plan.AUDIENCES or to.startswith(receivers.PERSON), "an audience that is known"
    words = {"text": text[:800], "to": to, "about": about, "path": path, "pages": pages}
    _, created = Consequence.objects.get_or_create(
        name=name[:200], defaults={"kind": "announced", "operation": operation, "words": words}
    )
    return created


def expand() -> int:
    """Turn everything that happened into deliveries; how many things were turned.

    Two at once: the second finds the door shut and does nothing. Where nobody is to be told, what
    happened is told to nobody, for good. Raises ExpansionFailed after the others were done.
    """
    if not receivers.anybody():
        return Consequence.objects.filter(expanded_at=None).update(expanded_at=timezone.now())
    expanded, failed = 0, list[int]()
    while waiting := _waiting(after=failed[-1] if failed else 0):
        for consequence_id in waiting:
            try:
                done = _expand_one(consequence_id)
            except Exception as error:
                log.exception("not_expanded", consequence=consequence_id, error=repr(error))
                failed.append(consequence_id)
                continue
            if not done:
                return expanded
            expanded += 1
    if failed:
        raise ExpansionFailed(f"{len(failed)} not turned into messages, the first is {failed[0]}")
    return expanded


def _waiting(*, after: int) -> list[int]:
    rows = Consequence.objects.filter(expanded_at=None, pk__gt=after).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:_BATCH_MAX])


def _expand_one(consequence_id: int) -> bool:
    """False when another process expands just now."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_EXPANDER])
            (mine,) = cursor.fetchone()
        if not mine:
            return False
        row = Consequence.objects.filter(pk=consequence_id, expanded_at=None).first()
        if row is not None:
            add_lines(row)
            Consequence.objects.filter(pk=row.pk).update(expanded_at=timezone.now())
    return True


def replay(delivery_id: UUID, *, by: str, version: int, now: datetime) -> Delivery:
    """Send a message once more, at once, under the same id; `version` is its fence on screen.

    Raises Delivery.DoesNotExist; Refusal already_waiting or stale_page (409).
    """
    with transaction.atomic():
        row = Delivery.objects.select_for_update().get(pk=delivery_id)
        if row.fence != version:
            raise Refusal(
                "stale_page",
                "Not recorded. It was tried again while you looked.",
                status=409,
                what_to_do="Look at what came of that, and replay it if it is still needed.",
            )
        if row.state not in ("delivered", "given_up") and not row.try_count:
            raise Refusal(
                "already_waiting",
                "Not recorded. It has not been sent yet and waits for its turn.",
                status=409,
                what_to_do="Wait for its first try.",
            )
        row.state, row.lease_until, row.due_at = "waiting", None, now
        row.give_up_at = now + GIVE_UP_AFTER
        row.fence += 1
        row.replayed_by, row.replayed_at = by, now
        row.last_because, row.delivered_at = "", None
        row.save()
        DeliveryTry.objects.create(
            delivery=row, no=row.try_count, by=by, delivered=False, because="asked for another try"
        )
    return row
