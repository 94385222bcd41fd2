"""The automatic approvers: they decide about scenario orders on the sandbox, and about nothing else.

They are people of the demo who cannot sign in, and press what a lead would press, through the
same verbs. Outside a demo with its sandbox they refuse to begin.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from refunds import approvals, feed
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Operation, Person
from refunds.providers import registry
from review.demo.scenarios import BY_ORDER, REJECTION
from review.demo.screen import shown_now
from review.demo.shop import FED_BY, in_sandbox

log = structlog.get_logger(__name__)

_STALE: Final = "demo-stale"
_REJECTED: Final = "demo-rejected"
# A page that went stale while it was read is read again; every other no is left to people.
_READ_AGAIN: Final = "stale_page"


class Approvers:
    """`people`: a lead, and a second person who is lead and finance, for the higher tiers."""

    def __init__(self, people: list[Person]) -> None:
        if settings.PRODUCTION or not settings.SANDBOX:
            raise ImproperlyConfigured(
                "The automatic approvers exist in the demo only. Nothing was approved."
            )
        self._people = people
        self._left: set[UUID] = set()

    def decide(self, now: datetime) -> int:
        """Decide about every scenario order that is due for it; how many were moved on."""
        waiting = Operation.objects.filter(
            state=states.AWAITING_APPROVAL, stale_cause="", order__ref__in=BY_ORDER
        ).exclude(pk__in=self._left)
        return sum(self._decide(each, now) for each in waiting.select_related("order"))

    def _decide(self, operation: Operation, now: datetime) -> bool:
        after_seconds = BY_ORDER[operation.order.ref].decides_after_seconds
        if after_seconds is None or not in_sandbox(registry.account(operation.provider_account)):
            return False
        if operation.created_at > now - timedelta(seconds=after_seconds):
            return False
        try:
            if operation.order.ref == _REJECTED:
                approvals.reject(
                    operation.pk, self._people[0], reason=REJECTION, version=operation.version
                )
            else:
                self._approve(operation.pk)
        except Refusal as refusal:
            log.info("scenario_left", operation=str(operation.pk), code=refusal.code)
            if refusal.code != _READ_AGAIN:
                self._left.add(operation.pk)
            return False
        return True

    def _approve(self, operation_id: UUID) -> None:
        for person in self._people:
            fresh, shown = shown_now(operation_id)
            if fresh.state != states.AWAITING_APPROVAL:
                return
            approvals.approve(operation_id, person, shown)


def change_the_stale_order() -> int:
    """Change the order `demo-stale` in the shop while a first approval waits for its send.

    How many approvals that ends. A second approval is left alone and goes through. Raises Refusal
    when somebody else feeds the order in the same instant.
    """
    approved = Operation.objects.filter(order__ref=_STALE, state=states.AUTHORIZED)
    caught = [
        each
        for each in approved.select_related("order")
        if each.round == 1 and each.send_version == each.order.version
    ]
    if not caught:
        return 0
    order = caught[0].order
    assert order.feed_seq is not None
    feed.upsert(
        feed.OrderSnapshot(
            ref=order.ref,
            currency=order.currency,
            feed_seq=order.feed_seq + 1,
            return_state="received" if order.return_state != "received" else "requested",
        ),
        by=FED_BY,
    )
    return len(caught)
