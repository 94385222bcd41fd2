"""The provider as a whole: its book, its engine, and what happens while nobody asks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from sandbox.book import Book
from sandbox.calls import Calls
from sandbox.dialects import Dialect
from sandbox.dialects.plain import Plain
from sandbox.dialects.stripe import Stripe
from sandbox.engine import Engine
from sandbox.faults import Plan
from sandbox.holds import Hold, Holds
from sandbox.instants import MICROSECONDS
from sandbox.notices import NoticeQueue, NoticeSender
from sandbox.operations import Answer
from sandbox.profiles import Profile
from sandbox.turn import Turn

DIALECTS: Mapping[str, Dialect] = {"plain": Plain(), "stripe": Stripe()}


class Provider:
    def __init__(self, book: Book) -> None:
        self.book = book
        self.plan = Plan(book)
        self.calls = Calls(book)
        self.holds = Holds(book)
        self.notices = NoticeQueue(book, self.plan)
        self.sender = NoticeSender(book, DIALECTS)
        self.engine = Engine(book, self.notices)
        self._bells = (asyncio.Event(), asyncio.Event())

    def settle(self) -> None:
        """Land what is due, so that whoever looks next sees it."""
        if self.holds.settle(self.book.now(), self._land, self._expire):
            self.ring()

    def ring(self) -> None:
        """Something may be due earlier than before."""
        for bell in self._bells:
            bell.set()

    def _profile(self, account: str) -> Profile:
        profile = self.book.profile(account)
        assert profile is not None, account
        return profile

    def _land(self, hold: Hold, at: int) -> Answer:
        assert hold.create is not None
        profile = self._profile(hold.account)
        turn = Turn(
            account=hold.account,
            profile=profile,
            dialect=DIALECTS[profile.dialect],
            at=at,
            twists=hold.twists,
            owns_claim=hold.fault == "hold",
        )
        return self.engine.perform(turn, hold.create)

    def _expire(self, hold: Hold) -> None:
        if hold.create is not None and hold.create.key is not None:
            self.engine.release_claim(hold.account, hold.create.key)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Land requests and send notices when their time comes."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._landing()),
                group.create_task(self._sending()),
            ]
            yield
            for task in tasks:
                task.cancel()

    async def _landing(self) -> None:
        while True:
            self._bells[0].clear()
            self.holds.settle(self.book.now(), self._land, self._expire)
            await self._rest(self._bells[0], self.holds.next_at())

    async def _sending(self) -> None:
        while True:
            self._bells[1].clear()
            await self.sender.send_due()
            await self._rest(self._bells[1], self.sender.next_at())

    async def _rest(self, bell: asyncio.Event, until: int | None) -> None:
        seconds = None if until is None else max(0, until - self.book.now()) / MICROSECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await bell.wait()
