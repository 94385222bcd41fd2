"""Fourteen days of the demo's shop, told in order: who asked for what when, and what became of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from refunds.models import Agent, Person
from review.demo.past import open_stories as now_open
from review.demo.past import stories as ended
from review.demo.past.desk import Desk
from review.demo.past.market import Market, Wanted
from review.demo.past.proposing import propose
from review.demo.past.rows import Asked, Past, Rows, Sold
from review.demo.past.stock import WORDS

SEED: Final = 20
DAYS: Final = 14
Ended = Callable[[Desk, Past, datetime], object]
Open = Callable[[Desk, Past, datetime, datetime], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Stories of one kind: how many, how long ago they began, and what kind of wish they need."""

    count: int
    ended: Ended | None = None
    open: Open | None = None
    hours_ago: tuple[float, float] = (5, 24 * DAYS)
    accounts: tuple[str, ...] = ("plain-main", "plain-main", "stripe-main", "plain-blind")
    size: str = "small"  # small: one lead; middle: two; big: a lead and finance
    by: str = ""  # agent or person, where it is not left to chance
    obstacle: str = ""  # old, disputed, too_much, above_agent_limit: what policy refuses it for
    frozen: bool = False


_KEYED: Final = ("plain-main", "plain-main", "stripe-main")
_MAIN: Final = ("plain-main",)
_STRIPE: Final = ("stripe-main",)
_BLIND: Final = ("plain-blind",)
_RECENT: Final = (3, 40)

CHAPTERS: Final = (
    Chapter(count=118, ended=ended.paid_at_once),
    Chapter(count=20, ended=ended.paid_at_once, size="middle", accounts=_KEYED),
    Chapter(count=4, ended=ended.paid_at_once, size="big", accounts=_KEYED),
    Chapter(count=26, ended=ended.answer_lost, accounts=_KEYED),
    Chapter(count=5, ended=ended.lookups_away, accounts=_KEYED),
    Chapter(count=8, ended=ended.error_500, accounts=_KEYED),
    Chapter(count=4, ended=ended.sender_died, accounts=_KEYED),
    Chapter(count=5, ended=ended.turned_away, accounts=_KEYED),
    Chapter(count=8, ended=ended.accepted, accounts=_STRIPE),
    Chapter(count=4, ended=ended.failed_later, accounts=_STRIPE),
    Chapter(count=5, ended=ended.refused, accounts=_KEYED),
    Chapter(count=4, ended=ended.returned, accounts=_KEYED, hours_ago=(72, 24 * DAYS)),
    Chapter(count=4, ended=ended.ruled_happened, accounts=_BLIND),
    Chapter(count=2, ended=ended.ruled_not_happened, accounts=_BLIND, hours_ago=(12, 300)),
    Chapter(count=3, ended=ended.mismatched, accounts=_KEYED),
    Chapter(count=4, ended=ended.denied, obstacle="old"),
    Chapter(count=4, ended=ended.denied, obstacle="too_much"),
    Chapter(count=4, ended=ended.denied, obstacle="above_agent_limit", by="agent", accounts=_KEYED),
    Chapter(count=2, ended=ended.denied, obstacle="disputed"),
    Chapter(count=15, ended=ended.rejected),
    Chapter(count=7, ended=ended.withdrawn),
    Chapter(count=6, ended=ended.expired, hours_ago=(80, 24 * DAYS)),
    Chapter(count=6, ended=ended.stale_then_paid, accounts=_KEYED),
    Chapter(count=3, ended=ended.taken_back_by_lead),
    Chapter(count=13, open=now_open.waiting, hours_ago=(0.3, 60)),
    Chapter(count=3, open=now_open.waiting, hours_ago=_RECENT, size="middle", accounts=_KEYED),
    Chapter(count=1, open=now_open.waiting, hours_ago=_RECENT, frozen=True, accounts=_KEYED),
    Chapter(
        count=3, open=now_open.half_approved, hours_ago=(2, 20), size="middle", accounts=_KEYED
    ),
    Chapter(count=2, open=now_open.half_approved, hours_ago=(2, 20), size="big", accounts=_KEYED),
    Chapter(count=4, open=now_open.stale, hours_ago=(3, 30), accounts=_KEYED),
    Chapter(
        count=2,
        open=now_open.stale_by_refund_elsewhere,
        hours_ago=(2, 20),
        size="middle",
        accounts=_KEYED,
    ),
    Chapter(count=1, open=now_open.backing_off, hours_ago=(3, 6), accounts=_STRIPE),
    Chapter(count=1, open=now_open.sending, hours_ago=(3, 6), accounts=_MAIN),
    Chapter(count=2, open=now_open.working, hours_ago=(3, 6), accounts=_STRIPE),
    Chapter(count=1, open=now_open.needs_customer, hours_ago=(28, 50), accounts=_STRIPE),
    Chapter(count=1, open=now_open.overdue, hours_ago=(30, 70), accounts=_STRIPE),
    Chapter(count=4, open=now_open.nobody_can_tell, hours_ago=(4, 90), accounts=_BLIND),
    Chapter(count=2, open=now_open.no_record, hours_ago=(6, 60), accounts=_STRIPE),
    Chapter(count=2, open=now_open.differs, hours_ago=(4, 40), accounts=_MAIN),
    Chapter(count=1, open=now_open.contradicted, hours_ago=(5, 30), accounts=_MAIN),
)
_AGES_OF_FACTS: Final = (1, 2, 3, 5, 8, 12, 50, 190)  # minutes
_CURRENCIES: Final = {
    "plain-main": ("USD", "USD", "USD", "EUR", "EUR", "JPY", "KWD"),
    "stripe-main": ("USD", "USD", "EUR"),
    "plain-blind": ("GBP",),
}
_PROPOSERS: Final = ("cleo", "ada", "ben", "omar", "ines", "rosa", "rosa")
# Largest amount of a small wish, in minor units: one lead may decide it.
_SMALL_MAX: Final = {"USD": 9000, "EUR": 9000, "GBP": 4500, "JPY": 14000, "KWD": 19000}


@dataclass(frozen=True, slots=True)
class _Page:
    number: int
    at: datetime
    chapter: Chapter


class Fortnight:
    """Plays every chapter on one desk. The same `now` and people give the same rows; another `now`
    gives the same stories at other hours."""

    def __init__(self, now: datetime, people: dict[str, Person], agents: dict[str, Agent]) -> None:
        self._now = now
        self._desk = Desk(random.Random(SEED), people)  # noqa: S311 - a story, not a secret
        self._market = Market(self._desk)
        self._agents = [agents["Echo"], agents["Echo"], agents["Foxtrot"]]

    def played(self) -> Rows:
        """Everything that happened, ready to be written."""
        chapters = [chapter for chapter in CHAPTERS for _ in range(chapter.count)]
        pages = [
            _Page(number, self._instant(number, chapter.hours_ago), chapter)
            for number, chapter in enumerate(chapters)
        ]
        for page in sorted(pages, key=lambda each: each.at):
            self._tell(page)
        for sold in self._desk.rows.sold:
            # The shop feeds every order now and then; equal facts change nothing but their age.
            age = timedelta(minutes=self._desk.chance.choice(_AGES_OF_FACTS))
            sold.order.facts_as_of = self._now - age
        return self._desk.rows

    def _instant(self, number: int, hours_ago: tuple[float, float]) -> datetime:
        """Mostly in office hours, sometimes at night; an odd microsecond makes it its own."""
        chance = random.Random(f"{SEED}:when:{number}")  # noqa: S311 - a story, not a secret
        at = self._now
        for _ in range(12):
            at = self._now - timedelta(hours=chance.uniform(*hours_ago))
            office = 8 <= at.hour < 18 and at.weekday() < 6
            if office or chance.random() < 0.08:
                break
        return at

    def _tell(self, page: _Page) -> None:
        chapter, chance = page.chapter, self._desk.chance
        # What becomes of a wish is its own: whatever the hour is at which the demo starts.
        chance.seed(f"{SEED}:{page.number}")
        account = chance.choice(chapter.accounts)
        choices = _CURRENCIES[account]
        big = chapter.size != "small" or chapter.obstacle == "above_agent_limit"
        if big:
            choices = tuple(each for each in choices if each in ("USD", "EUR"))
        wanted = Wanted(
            account=account,
            currency=chance.choice(choices),
            big=big,
            fresh=chapter.open is not None or bool(chapter.obstacle) or chapter.size != "small",
            captured_days_ago=212 if chapter.obstacle == "old" else None,
        )
        sold = self._market.order_for(wanted, page.at)
        if chapter.obstacle == "disputed":
            self._desk.payment_turns(sold, page.at - timedelta(hours=2), "disputed")
        caller = self._caller(chapter)
        asked = self._asked(chapter, sold, by_agent=isinstance(caller, Agent))
        past = propose(self._desk, sold, caller, page.at, asked)
        if chapter.frozen:
            sold.order.frozen = True
            self._desk.bump(sold, "frozen", page.at + timedelta(minutes=8), by="person:ines")
        if past.row.state == "denied":
            return
        if chapter.ended is not None:
            chapter.ended(self._desk, past, page.at)
        elif chapter.open is not None:
            chapter.open(self._desk, past, page.at, self._now)

    def _caller(self, chapter: Chapter) -> Agent | Person:
        chance = self._desk.chance
        small = chapter.size == "small"
        if chapter.by == "agent" or (small and chance.random() < 0.72):
            return chance.choice(self._agents)
        # What is above an agent's limit is proposed by a person.
        return self._desk.people[chance.choice(_PROPOSERS)]

    def _asked(self, chapter: Chapter, sold: Sold, *, by_agent: bool) -> Asked:
        chance = self._desk.chance
        reason_code = chance.choice(list(WORDS))
        claims = {}
        if by_agent and chance.random() < 0.35:
            claims = {"captured_minor": sold.payment.captured_minor + chance.choice((0, 0, 1000))}
        return Asked(
            amount_minor=self._amount(chapter, sold),
            reason_code=reason_code,
            reason_text=chance.choice(WORDS[reason_code]),
            claims=claims,
        )

    def _amount(self, chapter: Chapter, sold: Sold) -> int:
        """Minor units; a multiple of ten, which every provider can express in every currency."""
        chance, payment = self._desk.chance, sold.payment
        available = payment.available_minor
        if chapter.obstacle == "too_much":
            return available + 1000
        if chapter.obstacle == "above_agent_limit":
            return min(available, 31000)
        if chapter.size == "big":
            return min(available, chance.randrange(101000, 130000, 10))
        if chapter.size == "middle":
            return min(available, chance.randrange(11000, 38000, 10))
        prices = [line["amount_minor"] for line in sold.order.lines]
        price: int = chance.choice(prices)
        part = price if chance.random() < 0.5 else int(price * chance.uniform(0.2, 0.9))
        most = min(_SMALL_MAX[payment.currency], available // 2)
        return max(10, min(part, most) // 10 * 10)
