"""What every step works with: the doors, the provider, the trail, and what the seed drew."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.drive_console import AgentDoor, Console, Refused, captured
from tests.page import Page
from tests.provider_process import ROOT, SandboxProcess
from tests.walkthrough.installation import Installation
from tests.walkthrough.moved_clock import let_it_be_longer_ago
from tests.walkthrough.programs import Killed, wait_until
from tests.walkthrough.trail import Trail

SCREEN_CHARACTERS_MAX = 400
# Nobody may read these while the outcome is open: each one is a promise, or an invitation.
PROMISES = ("try again", "retry", "failed", "successful")


class NotAsTold(AssertionError):
    """A step did not end as it should; the text says what was seen instead."""


def require(holds: object, sentence: str) -> None:
    """Raises NotAsTold with the sentence unless it holds."""
    if not holds:
        raise NotAsTold(sentence)


@dataclass
class Step:
    """What one step has to show, filled in as it goes."""

    name: str
    operation_id: str = ""
    more: list[str] = field(default_factory=list)
    killed: list[Killed] = field(default_factory=list)
    screen: str = ""

    def look_at(self, page: Page, part: str = "status-panel") -> Page:
        """Keep the words of this part of the page, or of all, as what the person saw last."""
        words = page.part(part) or page.text
        self.screen = " / ".join(words.splitlines())[:SCREEN_CHARACTERS_MAX]
        return page

    def ids(self) -> list[str]:
        return [each for each in (self.operation_id, *self.more) if each]


@dataclass(frozen=True)
class Order:
    """An order of the shop with one captured payment; amounts in minor units."""

    ref: str
    payment_ref: str
    account: str
    captured_minor: int


class Sender:
    """A process outside of Celery that sends what it is told; it ends with the installation."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._running = subprocess.Popen(
            [sys.executable, "-m", "tests.walkthrough.send_now"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            process_group=0,
        )

    def tell(self, operation_id: str) -> None:
        """Send this one, now."""
        assert self._running.stdin is not None
        self._running.stdin.write(f"{operation_id}\n")
        self._running.stdin.flush()

    def answer(self) -> str:
        """Its next line: "ready" first, then what came of each send."""
        assert self._running.stdout is not None
        return self._running.stdout.readline().strip()

    def end(self) -> None:
        """Close its input, after which it has nothing to do."""
        self._running.communicate(timeout=10)


class Walk:
    """One afternoon at one installation."""

    def __init__(self, here: Installation, seed: int, *, with_notices: bool = True) -> None:
        """`with_notices` False: the provider tells nothing of its own accord, whatever is asked."""
        self.here = here
        self.with_notices = with_notices
        self.draw = random.Random(seed)
        self.trail = Trail(here.database)
        self.echo = AgentDoor(here.address, here.keys["Echo"])
        self.foxtrot = AgentDoor(here.address, here.keys["Foxtrot"])
        self._shop = AgentDoor(here.address, here.keys["Shop"])
        # Checks of steps that hold for the rest of the afternoon, by the step's name.
        self.at_the_end: dict[str, Callable[[], None]] = {}
        self._people: dict[str, Console] = {}
        self._senders: list[Sender] = []
        self._order_refs = itertools.count(self.draw.randrange(1000, 9000))

    def end(self) -> None:
        """Let go of what this afternoon opened."""
        for each in self._senders:
            each.end()
        self.trail.close()

    @property
    def provider(self) -> SandboxProcess:
        return self.here.provider

    def person(self, name: str) -> Console:
        """Signed in, each with one session for the whole afternoon."""
        if name not in self._people:
            self._people[name] = Console(self.here.address, name, self.here.password).sign_in()
        return self._people[name]

    def person_at_hand(self, name: str) -> Console:
        """Signed in just now, as acts that must be confirmed need it."""
        self._people.pop(name, None)
        return self.person(name)

    def amount(self, least_minor: int = 1000, most_minor: int = 9900) -> int:
        return self.draw.randint(least_minor, most_minor)

    def order(self, account: str, captured_minor: int) -> Order:
        """Paid at the provider, and fed by the shop."""
        ref = f"{next(self._order_refs)}"
        order = Order(ref, f"pi_{ref}_{self.draw.randrange(10**6)}", account, captured_minor)
        self.provider.payment(order.payment_ref, captured_minor, account=account)
        self.feed(order, payments=[self._payment(order)])
        return order

    def feed(self, order: Order, **facts: Any) -> dict[str, Any]:
        """Tell Aftersend what the shop knows of the order now."""
        return self._shop.feed(order.ref, customer_ref=f"cus_{order.ref}", **facts)

    def _payment(self, order: Order) -> dict[str, Any]:
        return captured(order.account, ref=order.payment_ref, captured_minor=order.captured_minor)

    def propose(self, order: Order, amount_minor: int, **more: Any) -> str:
        """Echo's proposal; the operation's id. Raises Refused when it does not wait for people."""
        answer = self.echo.propose(order_ref=order.ref, amount_minor=amount_minor, **more)
        if answer.status_code != 201 or answer.json()["state"] != "awaiting_approval":
            raise Refused(f"the proposal: {answer.status_code} {answer.text[:600]}")
        operation_id: str = answer.json()["operation_id"]
        return operation_id

    def refunds(self, operation_id: str) -> list[dict[str, Any]]:
        """The refunds of the provider's book that carry this marker."""
        return [
            refund
            for refund in self.provider.refunds()
            if refund["aftersend_operation"] == operation_id
        ]

    def sends(self, operation_id: str) -> list[dict[str, Any]]:
        """The requests for a refund with this marker, as the provider received them."""
        return [
            call
            for call in self.provider.calls()
            if call["on"] == "create" and call["marker"] == operation_id
        ]

    def refunded_elsewhere(self, order: Order, amount_minor: int) -> str:
        """A refund at the provider's own desk, not by us; its reference there."""
        made = self.provider.control(
            "POST",
            "/external_refund",
            {"account": order.account, "payment": order.payment_ref, "amount_minor": amount_minor},
        )
        return str(made["id"])

    def time_passes(self, seconds: float) -> None:
        """Both sides' clocks move on, while nothing of ours runs."""

        def moved() -> bool:
            # Whoever was put to sleep in the middle of a transaction keeps its locks.
            with self.here.asleep():
                if not let_it_be_longer_ago(self.here.database, seconds):
                    return False
                self.provider.advance(seconds)
                return True

        wait_until(moved, what="an instant in which nobody holds a row")

    def hear_notices_of(self, account: str) -> None:
        """From now on the provider sends this account's notices, if it may send any."""
        url = f"{self.here.address}/webhooks/{account}"
        self.provider.configure(account, webhook_url=url, notices=self.with_notices)

    def hear_no_notices_of(self, account: str) -> None:
        """From now on the provider makes none for this account."""
        self.provider.configure(account, notices=False)

    def notices_stored(self, account: str) -> int:
        """How many of this account came in so far."""
        found = self.trail.rows(
            "SELECT count(*) AS n FROM notice WHERE provider_account = %s", account
        )
        return int(found[0]["n"])

    def senders(self) -> list[Sender]:
        """Two processes that send what they are told, started at the first call."""
        if not self._senders:
            self._senders = [Sender(self.here.environment) for _ in range(2)]
            for each in self._senders:
                require(each.answer() == "ready", "a sender did not get ready")
        return self._senders

    def require_one_refund(self, operation_id: str, amount_minor: int) -> None:
        """Exactly one in the book, of this amount."""
        amounts = [refund["amount_minor"] for refund in self.refunds(operation_id)]
        require(amounts == [amount_minor], f"wanted one refund of {amount_minor}; found {amounts}")

    def require_never(self, state: str, operation_ids: Iterable[str]) -> None:
        """None of them was ever in this state."""
        for operation_id in operation_ids:
            states = self.trail.states(operation_id)
            require(state not in states, f"{operation_id} went {' -> '.join(states)}")


def require_no_promise(where: str, said: Page | str) -> None:
    """Raises NotAsTold when a page or an answer promises an outcome or offers to do it again.

    What a page tells people never to say is no promise.
    """
    text = said if isinstance(said, str) else said.text
    if isinstance(said, Page):
        text = text.replace(said.part("never-said") or "\0", "")
    for words in PROMISES:
        at = text.lower().find(words)
        around = " ".join(text[max(0, at - 60) : at + 60].split())
        require(at < 0, f"{where} says {words!r}: … {around} …")
