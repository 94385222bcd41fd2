"""An answer is lost, and three kinds of agents ask again in every way they know. One refund.

Everything is real: the server, its workers, the provider that pays and hangs up, and the clients.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agents.clients import Kind, Session, generated, over_http, over_stdio
from tests.drive_console import AgentDoor, Console, captured
from tests.walkthrough.installation import Installation
from tests.walkthrough.trail import Trail

WAIT_SECONDS = 2
SUCCEEDED_SECONDS_MAX = 120
WISH: dict[str, Any] = {
    "requested_by": {"kind": "customer", "ref": "cus_204"},
    "amount": "79.00",
    "currency": "USD",
    "reason_code": "damaged_item",
    "reason_text": "headphones arrived broken",
}


@dataclass
class Agent:
    """One kind of client with an order of its own, and the sessions it has open."""

    kind: str
    wish: dict[str, Any]
    session: Session
    new_session: Session
    other_agent: Session
    operation_id: str = ""

    def propose(self, session: Session, call_id: str, **changes: Any) -> dict[str, Any]:
        return session.propose(self.wish | changes, call_id=call_id)

    def repeats(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every way of asking for the same again."""
        mine = self.session
        yield "the same call", self.propose(mine, "call_1")
        yield "a new call", self.propose(mine, "call_2")
        yield "other wording", self.propose(mine, "call_3", reason_text="they came broken")
        yield "the amount as 79", self.propose(mine, "call_4", amount="79")
        yield "the amount as 79.00", self.propose(mine, "call_5", amount="79.00")
        self.wish = dict(reversed(self.wish.items()))
        yield "another order of the names", self.propose(mine, "call_1")
        yield "a new session", self.propose(self.new_session, "call_1")
        yield "another agent", self.propose(self.other_agent, "call_1")

    def require_the_same_refund(self) -> None:
        for how, told in self.repeats():
            assert told["operation_id"] == self.operation_id, f"{self.kind}, {how}: {told}"
            assert told["do_not_repeat"] is True, f"{self.kind}, {how}: {told}"
            assert told["state"] in ("unknown", "succeeded"), f"{self.kind}, {how}: {told}"
            assert "fail" not in told["say"].lower(), f"{self.kind}, {how}: {told}"


def require_true(agent: Agent, how: str, told: dict[str, Any]) -> None:
    """Unknown, or what a lookup has found meanwhile; never anything else."""
    assert told["outcome"] in ("unknown", "succeeded"), f"{agent.kind}, {how}: {told}"
    maybe = {"unknown": "maybe", "succeeded": "yes"}[told["outcome"]]
    assert told["money_may_have_moved"] == maybe, f"{agent.kind}, {how}: {told}"


@pytest.fixture(scope="module")
def here() -> Iterator[Installation]:
    with Installation() as installation:
        yield installation


@pytest.fixture
def agents(here: Installation, tmp_path: Path) -> Iterator[list[Agent]]:
    kinds: dict[str, Kind] = {
        "MCP over HTTP": over_http(here.address),
        "MCP through aftersend-mcp": over_stdio(here.address),
        "a generated REST client": generated(here.address, tmp_path),
    }
    keys = json.loads(here.run("-m", "tests.agents.keys", str(len(kinds))))
    with ExitStack() as sessions:
        shop = sessions.enter_context(closing(AgentDoor(here.address, here.keys["Shop"])))
        opened = []
        for number, (kind, open_session) in enumerate(kinds.items()):
            order_ref, payment_ref = f"agents-{number}", f"pi_agents_{number}"
            # Room for a second refund: nothing but us stands in its way.
            here.provider.payment(payment_ref, 30_000)
            payment = captured("plain-main", ref=payment_ref, captured_minor=30_000)
            # A customer of its own: an equal refund of the same customer would ask for a tick.
            shop.feed(order_ref, customer_ref=f"cus_{number}", payments=[payment])
            echo, foxtrot = keys["Echo"][number], keys["Foxtrot"][number]
            opened.append(
                Agent(
                    kind,
                    WISH | {"order_ref": order_ref, "wait_seconds": 0},
                    sessions.enter_context(open_session(echo, f"chat-{number}-1")),
                    sessions.enter_context(open_session(echo, f"chat-{number}-2")),
                    sessions.enter_context(open_session(foxtrot, f"chat-{number}-3")),
                )
            )
        yield opened


@pytest.fixture
def lead(here: Installation) -> Iterator[Console]:
    with closing(Console(here.address, "ben", here.password)) as console:
        yield console.sign_in()


@pytest.fixture
def trail(here: Installation) -> Iterator[Trail]:
    with closing(Trail(here.database)) as reading:
        yield reading


def test_one_refund_for_every_kind_of_client_and_every_way_of_asking_again(
    here: Installation, agents: list[Agent], lead: Console, trail: Trail
) -> None:
    here.provider.fault("drop_after_commit", times=len(agents))
    for agent in agents:
        told = agent.propose(agent.session, "call_1")
        assert told["outcome"] == "awaiting_approval", f"{agent.kind}: {told}"
        agent.operation_id = told["operation_id"]
        lead.approve(agent.operation_id)
        trail.wait_for(agent.operation_id, "unknown", "succeeded", seconds=60)
        with here.lookups.asleep():  # so that little is found out before everybody has asked
            began = time.monotonic()
            told = agent.session.status(agent.operation_id, wait_seconds=WAIT_SECONDS)
            took = time.monotonic() - began
            assert took <= WAIT_SECONDS + 1, f"{agent.kind} answered after {took:.1f} s"
            require_true(agent, "the status", told)
            told = agent.propose(agent.session, "call_1", wait_seconds=WAIT_SECONDS)
            require_true(agent, "the same call", told)
            agent.require_the_same_refund()
        assert "unknown" in trail.states(agent.operation_id), agent.kind
    woken_at = time.monotonic()
    for agent in agents:
        left = SUCCEEDED_SECONDS_MAX - (time.monotonic() - woken_at)
        trail.wait_for(agent.operation_id, "succeeded", seconds=left)
        told = agent.session.status(agent.operation_id, wait_seconds=0)
        assert told["outcome"] == "succeeded", f"{agent.kind}: {told}"
        refs = {repeat["provider_refund_ref"] for _, repeat in agent.repeats()}
        assert refs == {told["provider_refund_ref"]}, f"{agent.kind}: {refs}"
        agent.require_the_same_refund()
        _require_one(here, trail, agent)


def _require_one(here: Installation, trail: Trail, agent: Agent) -> None:
    """One operation of the order, and one refund of its payment in the provider's own book."""
    order_ref = agent.wish["order_ref"]
    found = trail.rows(
        "SELECT operation.id::text AS id FROM operation JOIN orders ON orders.id = order_id"
        " WHERE orders.ref = %s",
        order_ref,
    )
    assert [row["id"] for row in found] == [agent.operation_id], agent.kind
    refunds = [
        refund
        for refund in here.provider.refunds("plain-main")
        if refund["aftersend_operation"] == agent.operation_id
    ]
    assert [refund["amount_minor"] for refund in refunds] == [7900], agent.kind
    [payment] = [
        payment
        for payment in here.provider.book("plain-main")["payments"]
        if payment["ref"] == f"pi_{order_ref.replace('-', '_')}"
    ]
    assert len(payment["refunds"]) == 1, agent.kind
