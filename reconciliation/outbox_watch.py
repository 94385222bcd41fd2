"""What people are told because time passes, and no row is written: found by looking."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, TextField, Value
from django.db.models.functions import Cast, Concat

from reconciliation import outbox
from reconciliation.models import Case, Consequence
from reconciliation.outbox_receivers import PERSON
from refunds.domain import money, states
from refunds.domain.roles import LEAD
from refunds.models import Operation

EXPIRES_WITHIN: Final = timedelta(hours=2)
LAPSES_WITHIN: Final = timedelta(minutes=5)
_BATCH_MAX: Final = 200


def watch(now: datetime) -> int:
    """Announce what is about to run out, each once; how many."""
    return _expiring(now) + _lapsing(now)


def _expiring(now: datetime) -> int:
    """Proposals that end soon because nobody has decided."""
    told = Consequence.objects.filter(
        name=Concat(
            Value("expiring:"),
            Cast(OuterRef("pk"), TextField()),
            Value(":"),
            Cast(OuterRef("round"), TextField()),
            output_field=TextField(),
        )
    )
    rows = (
        Operation.objects.select_related("order")
        .defer("body")
        .filter(
            ~Exists(told),
            state=states.AWAITING_APPROVAL,
            expires_at__gt=now,
            expires_at__lte=now + EXPIRES_WITHIN,
        )
        .order_by("expires_at")[:_BATCH_MAX]
    )
    for each in rows:
        amount = money.display(each.amount_minor, each.currency)
        text = (
            f"The refund of {amount} on order {each.order.ref} ends undecided at"
            f" {each.expires_at:%H:%M} UTC unless somebody decides."
        )
        with transaction.atomic():
            name = f"expiring:{each.pk}:{each.round}"
            outbox.announce(name, text, to=LEAD, about="expiring", operation=each)
    return len(rows)


def _lapsing(now: datetime) -> int:
    """Cases whose owner loses them soon."""
    rows = Case.objects.select_related("owner").filter(
        closed_at=None,
        owner__isnull=False,
        owned_until__gt=now,
        owned_until__lte=now + LAPSES_WITHIN,
    )[:_BATCH_MAX]
    names = {f"claim_lapsing:{each.pk}:{_second(each.owned_until)}": each for each in rows}
    told = Consequence.objects.filter(name__in=names).values_list("name", flat=True)
    new = {name: each for name, each in names.items() if name not in set(told)}
    for name, each in new.items():
        assert each.owner is not None
        text = f"Your claim of case C-{each.pk} ends at {each.owned_until:%H:%M} UTC."
        with transaction.atomic():
            outbox.announce(
                name,
                text,
                to=f"{PERSON}{each.owner.username}",
                about="claim_lapsing",
                operation=each.operation,
                path="" if each.operation_id else "/unknown",
            )
    return len(new)


def _second(at: datetime | None) -> int:
    return int(at.timestamp()) if at else 0
