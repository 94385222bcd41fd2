"""The afternoon, part one: one refund at a time, and everything that may happen to its answer."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import Step, Walk, require, require_no_promise

STORED_500_ACCOUNTS = ("plain-forever", "stripe-main")


def a_answer_dropped(walk: Walk, step: Step) -> None:
    """The provider pays, the answer is lost; people and agents ask again; a lookup finds out."""
    amount_minor = walk.amount(5000, 9900)
    # Room for a second refund: nothing but us stands in its way.
    order = walk.order("plain-main", 3 * amount_minor)
    call: dict[str, Any] = {
        "tool_call_id": f"call_{walk.draw.randrange(10**6)}",
        "request_ref": f"return-{walk.draw.randrange(10, 99)}",
    }
    step.operation_id = walk.propose(order, amount_minor, **call)
    walk.provider.fault("drop_after_commit")
    ben = walk.person("ben")
    drawn = ben.open_proposal(step.operation_id)
    with walk.here.lookups.asleep():  # so that nothing is found out before everybody has asked
        ben.press_approve(drawn)
        walk.trail.wait_for(step.operation_id, "unknown")
        _ask_again(walk, step, call | {"order_ref": order.ref, "amount_minor": amount_minor})
        clicked = ben.press_approve(drawn)
        page = step.look_at(ben.read_operation_page(step.operation_id))
    require_no_promise("the answer to the second click", clicked)
    given = walk.trail.rows("SELECT 1 FROM approval WHERE operation_id = %s", step.operation_id)
    require(len(given) == 1, f"two clicks made {len(given)} approvals")
    require("unknown" in page.text.lower(), f"the page does not say unknown: {step.screen}")
    require_no_promise("the operation page", page)
    require("approval-form" not in page.forms, "the page of an unknown refund offers to approve it")
    walk.trail.wait_for(step.operation_id, "succeeded")
    walk.require_one_refund(step.operation_id, amount_minor)


def _ask_again(walk: Walk, step: Step, call: dict[str, Any]) -> None:
    """The same call, the same wish in another call, and another agent: all get this operation."""
    other_call = call | {"tool_call_id": f"{call['tool_call_id']}-again"}
    asked = {
        "the second tool call": walk.echo.propose(**call),
        "the same wish in another call": walk.echo.propose(**other_call),
        "another agent": walk.foxtrot.propose(**call),
    }
    for who, answer in asked.items():
        said = answer.json()
        require(
            (answer.status_code, said.get("operation_id")) == (200, step.operation_id),
            f"{who} got {answer.status_code} {answer.text[:300]}",
        )
        require(said["outcome"] == "unknown", f"{who} was told {said['outcome']}")
        require(said["do_not_repeat"] is True, f"{who} was not told to stay calm")
    status = walk.echo.status(step.operation_id)
    require(status["money_may_have_moved"] == "maybe", f"the API says {status}")
    require_no_promise("the API", json.dumps(status))


def b_killed_after_answer(walk: Walk, step: Step) -> None:
    """SIGKILL when the provider has answered and we have not recorded it. No key protects us."""
    amount_minor = walk.amount()
    order = walk.order("plain-nokeys", 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault("hold", account="plain-nokeys")
    walk.person("ben").approve(step.operation_id)
    walk.provider.wait_for_hold()
    # The last one: on a busy machine an earlier one may have found its time over before it sent.
    *_, sent = [
        each
        for each in walk.trail.events(step.operation_id)
        if each["event"] == "submission_started"
    ]
    child = int(sent["actor"].rpartition(":")[2])
    money = walk.here.money
    with money.asleep():
        walk.provider.release()
        wait_until(
            lambda: [each["answered"] for each in walk.sends(step.operation_id)] == [201] or None,
            what="the provider's answer on the wire",
        )
        if walk.draw.random() < 0.5:
            step.killed.append(money.kill_one(child))
        else:
            step.killed += money.kill_all()
    if not money.runs():
        walk.here.start_again(money)
    walk.trail.wait_for(step.operation_id, "unknown", "succeeded", seconds=20)
    walk.trail.wait_for(step.operation_id, "succeeded", seconds=20)
    events = [each["event"] for each in walk.trail.events(step.operation_id)]
    require(events[-2:] == ["lease_ended", "found_succeeded"], f"it went {events}")
    step.look_at(walk.person("ben").read_operation_page(step.operation_id))
    walk.require_one_refund(step.operation_id, amount_minor)
    require(len(walk.sends(step.operation_id)) == 1, "it was sent twice")


def c_two_workers(walk: Walk, step: Step) -> None:
    """Two senders and the worker are told to send the same refund in the same instant."""
    amount_minor = walk.amount()
    senders = walk.senders()
    order = walk.order("plain-nokeys", 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault("delay", account="plain-nokeys", seconds=0.3)
    with walk.here.money.asleep():
        walk.person("cleo").approve(step.operation_id)
        for each in senders:
            each.tell(step.operation_id)
    said = [each.answer() for each in senders]
    walk.trail.wait_for(step.operation_id, "succeeded")
    attempts = walk.trail.attempts(step.operation_id)
    require(len(attempts) == 1, f"{len(attempts)} attempts; the senders said {said}")
    require(said.count("confirmed") <= 1, f"both senders say that they sent it: {said}")
    require(len(walk.sends(step.operation_id)) == 1, "the provider was asked twice")
    step.look_at(walk.person("cleo").read_operation_page(step.operation_id))
    walk.require_one_refund(step.operation_id, amount_minor)


def d_stale_order(walk: Walk, step: Step) -> None:
    """79.00 approved; before it is sent, somebody gives 30.00 back elsewhere."""
    order = walk.order("plain-main", 12900)
    step.operation_id = walk.propose(order, 7900)
    cleo = walk.person("cleo")
    with walk.here.money.asleep():
        cleo.approve(step.operation_id)
        outside = walk.provider.control(
            "POST",
            "/external_refund",
            {"account": order.account, "payment": order.payment_ref, "amount_minor": 3000},
        )
        walk.feed(
            order,
            external_refunds=[
                {
                    "payment_ref": order.payment_ref,
                    "provider_refund_ref": outside["id"],
                    "amount_minor": 3000,
                    "provider_status": "succeeded",
                }
            ],
        )
    walk.trail.wait_for(step.operation_id, "awaiting_approval")
    page = step.look_at(cleo.open_proposal(step.operation_id), "st-h")
    diff = page.part("approval")
    for words in ("30.00", "129.00", "99.00", outside["id"]):
        require(words in diff, f"the diff does not show {words}: {diff[:1500]}")
    status = walk.echo.status(step.operation_id)
    told = (status["outcome"], [each["code"] for each in status["reasons"]])
    require(told == ("stale", ["order_changed"]), f"the agent is told {told}")
    require(not walk.sends(step.operation_id), "it was sent all the same")
    cleo.reject(step.operation_id, "The customer got 30.00 back already; ask for the rest.")
    walk.trail.wait_for(step.operation_id, "rejected")
    require(not walk.refunds(step.operation_id), "a rejected refund is in the book")


def e_changed_arguments(walk: Walk, step: Step) -> None:
    """The same tool call comes again with another amount: nothing changes."""
    amount_minor = walk.amount()
    order = walk.order("plain-main", 3 * amount_minor)
    call = {"order_ref": order.ref, "tool_call_id": f"call_{walk.draw.randrange(10**6)}"}
    step.operation_id = walk.propose(order, amount_minor, tool_call_id=call["tool_call_id"])
    counted = "SELECT count(*) AS n FROM operation"
    before = (walk.trail.operation(step.operation_id), walk.trail.rows(counted))
    answer = walk.echo.propose(**call, amount_minor=amount_minor + walk.amount(100, 900))
    said = answer.json()
    told = (answer.status_code, said.get("code"), said.get("operation_id"))
    wanted = (409, "tool_call_reused", step.operation_id)
    require(told == wanted, f"the changed call got {told}")
    after = (walk.trail.operation(step.operation_id), walk.trail.rows(counted))
    require(before == after, "a refused call changed something")
    walk.person("ben").approve(step.operation_id)
    walk.trail.wait_for(step.operation_id, "succeeded")
    step.look_at(walk.person("ben").read_operation_page(step.operation_id))
    walk.require_one_refund(step.operation_id, amount_minor)


def f_no_lookup_case(walk: Walk, step: Step) -> None:
    """No key, no lookup, no notices: only a person can find out, and is asked at once."""
    amount_minor = walk.amount(1000, 4500)
    order = walk.order("plain-blind", 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault("drop_after_commit", account="plain-blind")
    walk.person("ben").approve(step.operation_id)
    walk.trail.wait_for(step.operation_id, "unknown")
    wait_until(
        lambda: walk.trail.open_reasons(step.operation_id) == ["unresolved"] or None,
        seconds=6,
        what="a case",
    )
    sender = walk.senders()[0]
    sender.tell(step.operation_id)
    said = sender.answer()
    require(said == "gone", f"a sender that is told to send it once more says {said}")
    page = step.look_at(walk.person("ben").read_operation_page(step.operation_id))
    require_no_promise("the operation page", page)
    walk.at_the_end[step.name] = partial(_left_to_a_person, walk, step.operation_id)
    walk.require_one_refund(step.operation_id, amount_minor)


def g_stored_500(walk: Walk, step: Step) -> None:
    """500 after the commit, and stored under the key: no refusal, no new key, a lookup."""
    account = walk.draw.choice(STORED_500_ACCOUNTS)
    amount_minor = walk.amount()
    order = walk.order(account, 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault("stored_500", account=account)
    walk.person("cleo").approve(step.operation_id)
    walk.trail.wait_for(step.operation_id, "succeeded")
    states = walk.trail.states(step.operation_id)
    require(states[-2:] == ["unknown", "succeeded"], f"it went {' -> '.join(states)}")
    keys = {each["key"] for each in walk.sends(step.operation_id)}
    own = {walk.trail.operation(step.operation_id)["provider_key"]}
    require(keys == own, f"our key is {own}; the provider saw {keys}")
    step.look_at(walk.person("cleo").read_operation_page(step.operation_id))
    walk.require_one_refund(step.operation_id, amount_minor)


def _left_to_a_person(walk: Walk, operation_id: str) -> None:
    require(walk.trail.state(operation_id) == "unknown", "a machine settled it")
    require(len(walk.sends(operation_id)) == 1, "it was sent again")
