"""The provider's side of the past: what its book must show."""

from __future__ import annotations

import string
from datetime import datetime, timedelta

from refunds.models import ProviderRefund
from refunds.providers import registry
from review.demo.past.desk import Desk
from review.demo.past.rows import Past, Sold


def paid(desk: Desk, past: Past, *statuses: tuple[datetime, str], amount_minor: int = 0) -> str:
    """The provider made the refund; its book gets it with these statuses. Its reference."""
    row = past.row
    ref = _ref_for(desk, row.provider_account)
    keyed = registry.account(row.provider_account).contract.keys != "none"
    desk.rows.book.append(
        {
            "id": ref,
            "account": row.provider_account,
            "payment": row.payment.ref,
            "amount_minor": amount_minor or row.amount_minor,
            "marker": row.marker,
            "key": row.provider_key if keyed else None,
            "statuses": _course(statuses),
        }
    )
    return ref


def paid_by_hand(desk: Desk, sold: Sold, at: datetime, amount_minor: int) -> None:
    """Somebody refunds in the provider's dashboard, and the shop's feed reports it later."""
    payment = sold.payment
    ref = _ref_for(desk, payment.provider_account)
    desk.rows.book.append(
        {
            "id": ref,
            "account": payment.provider_account,
            "payment": payment.ref,
            "amount_minor": amount_minor,
            "by": "dashboard",
            "statuses": _course(((at, "succeeded"),)),
        }
    )
    seen_at = at + timedelta(minutes=6)
    learn(desk, sold, None, ref, amount_minor, "succeeded", at, seen_at, counts=True)
    payment.refunded_minor += amount_minor
    assert sold.order.feed_seq is not None
    sold.order.feed_seq += 1
    sold.order.facts_as_of = seen_at
    desk.bump(sold, "external", seen_at, by="shop", detail={"external": [ref]})


def learn(
    desk: Desk,
    sold: Sold,
    past: Past | None,
    ref: str,
    amount_minor: int,
    status: str,
    made_at: datetime,
    seen_at: datetime,
    *,
    counts: bool,
) -> ProviderRefund:
    known = ProviderRefund(
        provider_account=sold.payment.provider_account,
        ref=ref,
        payment=sold.payment,
        operation=past.row if past else None,
        amount_minor=amount_minor,
        provider_status=status,
        counts=counts,
        provider_created_at=made_at,
        first_seen_at=seen_at,
    )
    desk.rows.refunds.append(known)
    return known


def _ref_for(desk: Desk, account: str) -> str:
    """A reference as the provider mints them."""
    letters = string.ascii_lowercase + string.digits
    prefix = "re" if account.startswith("stripe") else "rf"
    return f"{prefix}_{''.join(desk.chance.choices(letters, k=10))}"


def _course(statuses: tuple[tuple[datetime, str], ...]) -> list[list[str]]:
    return [[at.isoformat(), status] for at, status in statuses]
