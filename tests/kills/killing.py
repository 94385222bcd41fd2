"""The run: ten refunds in flight, all of them paid and none of them answered, and a SIGKILL."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from typing import Any

from tests.drive_console import AgentDoor, Console, Refused
from tests.due_at_once import crowd
from tests.due_at_once.crowd import Wish
from tests.storm.house import POLICY
from tests.walkthrough.installation import Installation
from tests.walkthrough.programs import wait_until
from tests.walkthrough.trail import Trail
from tests.walkthrough.walk import Sender

IN_FLIGHT = 10
LEADS = ("ben", "cleo")
PAID_SECONDS_MAX, REST_SECONDS_MAX = 30, 180
# Delays only: all ten must be held before the first of them has waited for too long.
LIMITS: dict[str, Any] = {
    "calls_per_minute_max": 1_000_000,
    "call_total_seconds": 10,
    "lease_seconds": 15,
}
_PAID_AND_HELD = """
SELECT h.marker FROM holds h JOIN refunds r ON r.account = h.account AND r.marker = h.marker
WHERE h.state = 'waiting'"""
_SENDING = """
SELECT o.id::text AS id FROM operation o JOIN attempt a ON a.operation_id = o.id
WHERE o.state = 'submitting' AND a.closed_at IS NULL AND o.id = ANY(%s::uuid[])"""


class House(Installation):
    """Its one program that sends has as many hands as refunds are in flight."""

    def __init__(self, *, broken: str = "") -> None:
        super().__init__(broken=broken, policy_changes=POLICY, limits=LIMITS)

    def _commands(self) -> dict[str, list[str]]:
        commands = super()._commands()
        money = commands["worker-money"]
        money[money.index("-P") :] = ["-P", "threads", "-c", str(IN_FLIGHT)]
        return commands


class Killing:
    """Kills at one installation, account after account.

    `killed` are the operations, by account, whose sender was dead between the provider's commit
    and ours; `again` what a sender says that is handed one of them once more, as a broker would.
    """

    def __init__(self, here: House, seed: int) -> None:
        self.here = here
        self.kills = 0
        self.killed: dict[str, set[str]] = {}
        self.again: dict[str, set[str]] = {}
        self._draw = random.Random(seed)
        self._trail = Trail(here.database)
        self._agents = [AgentDoor(here.address, here.keys["Echo"]) for _ in LEADS]
        self._leads = [Console(here.address, name, here.password).sign_in() for name in LEADS]
        self._sender = Sender(here.environment)
        assert self._sender.answer() == "ready", "the second sender did not get ready"

    def strike(self, account: str, operations: int) -> None:
        """So many refunds of this account; each loses its sender once."""
        self.killed[account], self.again[account] = set(), set()
        wishes = [self._wish(account, number) for number in range(operations)]
        crowd.tell_provider(self.here, wishes)
        crowd.feed(self.here, wishes)
        for some in itertools.batched(wishes, IN_FLIGHT, strict=False):
            self._kill_with(account, some)
            done = len(self.killed[account])
            print(f"  {account}: {done} killed after they were paid", flush=True)

    def rest(self) -> None:
        """Faults end, everything runs, and nothing is on its way any more."""
        self.here.heal()
        _comes(self._trail.at_rest, REST_SECONDS_MAX, "all of it at rest")

    def end(self) -> None:
        """Let go of what this run opened."""
        self._sender.end()
        self._trail.close()
        for agent, lead in zip(self._agents, self._leads, strict=True):
            agent.close()
            lead.close()

    def _wish(self, account: str, number: int) -> Wish:
        # Room for a second refund: nothing but us stands in its way.
        amount_minor = self._draw.randrange(100, crowd.CAPTURED_MINOR // 2)
        order = f"kill-{account}-{number}"
        return Wish(order, account, amount_minor, made=False, ours=True)

    def _kill_with(self, account: str, wishes: Sequence[Wish]) -> None:
        money, provider = self.here.money, self.here.provider
        for each in wishes:
            # Executed, and its answer held: once. Whatever comes after it is answered.
            provider.fault("hold", account=account, match={"payment": each.payment})
        with money.asleep() if money.runs() else nullcontext():
            ids = self._approved(wishes)
        if not money.runs():
            self.here.start_again(money)
        _comes(
            lambda: self._paid_and_held() >= ids,
            PAID_SECONDS_MAX,
            f"{len(ids)} refunds that are paid and not answered",
        )
        money.kill_all()
        self.kills += 1
        unheard = {row["id"] for row in self._trail.rows(_SENDING, list(ids))}
        self.killed[account] |= unheard
        provider.release()
        for each in unheard:
            self._sender.tell(each)
            self.again[account].add(self._sender.answer())

    def _approved(self, wishes: Sequence[Wish]) -> set[str]:
        """Propose and approve all of them, each lead a share; their ids."""
        shares = [wishes[n :: len(LEADS)] for n in range(len(LEADS))]
        with ThreadPoolExecutor(len(LEADS)) as people:
            return set().union(*people.map(_propose_and_approve, self._agents, self._leads, shares))

    def _paid_and_held(self) -> set[str]:
        book = sqlite3.connect(f"file:{self.here.provider.book_file}?mode=ro", uri=True)
        with closing(book):
            return {marker for (marker,) in book.execute(_PAID_AND_HELD)}


def _comes(look: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for it. Where it does not come that is said, and the figures will show it."""
    try:
        wait_until(look, seconds=seconds, what=what)
    except TimeoutError as late:
        print(f"  {late}", flush=True)


def _propose_and_approve(agent: AgentDoor, lead: Console, wishes: Sequence[Wish]) -> set[str]:
    ids = set()
    for wish in wishes:
        answer = agent.propose(
            order_ref=wish.order,
            amount_minor=wish.amount_minor,
            requested_by={"kind": "customer", "ref": f"cus_{wish.order}"},
        )
        if answer.status_code != 201:
            raise Refused(f"the proposal: {answer.status_code} {answer.text[:600]}")
        operation_id: str = answer.json()["operation_id"]
        lead.approve(operation_id)
        ids.add(operation_id)
    return ids
