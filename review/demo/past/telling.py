"""The past, told once: first to the provider's book, then to the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from refunds.models import Agent, Person
from review.demo.past import written
from review.demo.past.fortnight import Fortnight
from review.demo.past.rows import Sold
from review.demo.shop import Control


def ensure(
    until: datetime, people: dict[str, Person], agents: dict[str, Agent], control: Control
) -> int:
    """Tell the fortnight before `until`, unless this database has it; how many refunds it has.

    The same `until` tells the same past, so that a start that broke off between the two leaves
    nothing behind that nobody knows of. Raises SandboxAway.
    """
    if written.is_written():
        return 0
    rows = Fortnight(until, people, agents).played()
    control.tell_history([_paid(each) for each in rows.sold], rows.book)
    written.write(rows)
    return len(rows.operations)


def _paid(sold: Sold) -> dict[str, Any]:
    payment = sold.payment
    assert payment.captured_at is not None
    return {
        "account": payment.provider_account,
        "ref": payment.ref,
        "currency": payment.currency,
        "captured_minor": payment.captured_minor,
        "state": payment.state,
        "created_at": payment.captured_at.isoformat(),
    }
