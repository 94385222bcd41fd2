"""What an account shows of all its payments: refunds and disputes since an instant. Shapes only.

A refund may be known by several names of its payment (an intent and its charge), and may have
none at all; which of them is a payment of ours is for whoever holds the payments to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from refunds.domain.outcome import RefundRecord

What = Literal["refunds", "disputes"]
# Of a dispute: money is contested; an inquiry that leaves the payment refundable; ended for or
# against the merchant. A word that we do not know is read as open.
Standing = Literal["open", "inquiry", "won", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRefund:
    """One refund of the account; `payment_refs` are all names of its payment, maybe none."""

    record: RefundRecord
    payment_refs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDispute:
    """One dispute of the account; amount in minor units, `provider_status` their word."""

    ref: str
    payment_refs: tuple[str, ...]
    amount_minor: int | None
    currency: str | None
    standing: Standing
    provider_status: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPage:
    """One page of either list. `readable` False means: this answer cannot tell."""

    readable: bool
    because: str = ""
    refunds: tuple[ListedRefund, ...] = ()
    disputes: tuple[ListedDispute, ...] = ()
    next_cursor: str | None = None
