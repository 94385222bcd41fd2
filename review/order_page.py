"""What the order pages show, read once: the balance, the refunds, and what changed when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from refunds import policies
from refunds.domain.sentences import sentence
from refunds.models import Operation, Order, Payment, ProviderRefund
from refunds.queries import orders, results
from refunds.text import allowed_links, parse_instant
from review import facts, intent
from review.access import Viewer
from review.paging import signed, whole
from review.presenters import balance, versions
from review.presenters.balance import Commitment, PaymentFacts, Sum
from review.presenters.versions import Version

_LINK_WORDS = {"order": "In the shop", "ticket": "The ticket", "provider": "At the provider"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which refunds and versions the reader asked for: a term of the sum, a payment, older ones."""

    show: str = ""
    payment_id: int | None = None
    before: UUID | None = None
    versions_before: int | None = None

    @property
    def filtered(self) -> bool:
        return bool(self.show) or self.payment_id is not None

    def has(self, refund: ProviderRefund) -> bool:
        """Whether a refund made elsewhere stands among all refunds, or among those that count."""
        mine = self.payment_id in (None, refund.payment_id) and self.before is None
        return mine and (not self.show or (self.show == "refunded" and refund.counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRow:
    """One refund of ours; `provider_ref` is empty where none is known."""

    op: Operation
    sentence: str
    proposer: str
    approvers: str
    provider_ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact of the shop as it was fed; `at` None: the feed gave no time for it."""

    label: str
    value: str
    source: str
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPage:
    """Everything of one order. `facts_wanted_seconds` is set where the facts are older than it."""

    order: Order
    sums: list[Sum]
    rows: list[RefundRow]
    more_rows: bool
    elsewhere: list[ProviderRefund]
    versions: list[Version]
    more_versions: bool
    facts: list[Fact]
    facts_wanted_seconds: int | None
    links: list[tuple[str, str]]
    shown: Shown

    @property
    def waiting_count(self) -> int:
        """Proposals that a freeze would stop: not sent, and not ended."""
        return sum(each.waiting_count for each in self.sums)

    @property
    def show_words(self) -> str:
        words = balance.SHOWN_WORDS.get(self.shown.show, "refunds")
        refs = [each.payment.ref for each in self.sums if each.payment.id == self.shown.payment_id]
        return f"{words} of payment {refs[0]}" if refs and len(self.sums) > 1 else words


def sums_of(order: Order) -> list[Sum]:
    """The balance of each payment, for an order of `orders.known`."""
    commitments = [
        Commitment(
            payment_id=each.payment_id,
            state=each.state,
            held=each.held,
            amount_minor=each.amount_minor,
            count=each.count,
        )
        for each in orders.committed(order)
    ]
    return [balance.sum_of(payment(each), commitments) for each in order.payments.all()]


def payment(row: Payment) -> PaymentFacts:
    return PaymentFacts(
        id=row.pk,
        ref=row.ref,
        account=row.provider_account,
        currency=row.currency,
        state=row.state,
        halted=row.halted,
        captured_minor=row.captured_minor,
        refunded_minor=row.refunded_minor,
        held_minor=row.held_minor,
    )


def mark(order: Order, sums: list[Sum]) -> str:
    """What a poll compares: the version, every term, and what is refundable on each payment."""
    terms = [
        [each.payment.state, each.payment.halted, each.approved_minor]
        + [term.amount_minor for term in each.terms]
        for each in sums
    ]
    digest = intent.digest_of(order.version, order.frozen, terms)[:16]
    return "~".join([digest, *(f"{each.payment.id}.{each.refundable_minor}" for each in sums)])


def refundable_of(marked: str) -> dict[int, int]:
    """What an older mark says was refundable, by payment; a torn mark says nothing."""
    pairs = (part.partition(".") for part in marked.split("~")[1:])
    numbers = ((whole(known), signed(minor)) for known, _, minor in pairs)
    return {known: minor for known, minor in numbers if known is not None and minor is not None}


def page(order: Order, who: Viewer, shown: Shown) -> OrderPage:
    """The whole page, for an order of `orders.known`."""
    part = orders.operations(
        order,
        payment_id=shown.payment_id,
        in_states=balance.SHOWN_STATES.get(shown.show),
        before=shown.before,
    )
    elsewhere = orders.elsewhere(order)
    moves, more_versions = orders.moves(order, before=shown.versions_before)
    return OrderPage(
        order=order,
        sums=sums_of(order),
        rows=[row(each, who) for each in part.operations if _fits(each, shown.show)],
        more_rows=part.more,
        elsewhere=[each for each in elsewhere if shown.has(each)],
        versions=versions.versions(
            [facts.move(each) for each in moves],
            order.currency,
            {each.ref: each.amount_minor for each in elsewhere},
        ),
        more_versions=more_versions,
        facts=[_fact(each) for each in order.facts],
        facts_wanted_seconds=_too_old(order, who.clock.now),
        links=_links(order.links),
        shown=shown,
    )


def _fits(op: Operation, show: str) -> bool:
    """An authorized refund is being sent where it holds its amount, and else only approved."""
    if op.state != "authorized" or not show:
        return True
    reservation = getattr(op, "reservation", None)
    held = reservation is not None and reservation.state == "held"
    return held == (show == "sending")


def row(op: Operation, who: Viewer) -> RefundRow:
    told = results.told(op)
    return RefundRow(
        op=op,
        sentence=sentence(op.state, told, who.clock.local_now),
        proposer=told.asked_by,
        approvers=told.approved_by,
        provider_ref=told.provider_refund_ref,
    )


def _fact(fed: Mapping[str, Any]) -> Fact:
    at = fed.get("at")
    return Fact(
        label=str(fed.get("label", "")),
        value=str(fed.get("value", "")),
        source=str(fed.get("source") or ""),
        at=parse_instant(at) if isinstance(at, str) else None,
    )


def _too_old(order: Order, now: datetime) -> int | None:
    wanted = policies.current().facts_fresh_seconds
    if order.facts_as_of is None or now - order.facts_as_of <= timedelta(seconds=wanted):
        return None
    return wanted


def _links(links: Mapping[str, str]) -> list[tuple[str, str]]:
    """Words and address of each link whose host is allowed today."""
    return [
        (_LINK_WORDS.get(name, name.replace("_", " ")), link)
        for name, link in allowed_links(links, settings.LINK_HOSTS).items()
    ]
