"""The afternoon, part two: many refunds at once, and two people at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import Order, Step, Walk, require

REVOKED_COUNT = 14
OUTAGE_COUNT = 5
LEADS = ("ben", "cleo")


def proposed(walk: Walk, step: Step, account: str, count: int) -> dict[str, int]:
    """As many refunds, each of an order of its own: id -> amount in minor units."""
    amounts = {}
    for _ in range(count):
        amount_minor = walk.amount(500, 3000)
        amounts[walk.propose(walk.order(account, 3 * amount_minor), amount_minor)] = amount_minor
    step.operation_id, *step.more = amounts
    return amounts


def approve_all(walk: Walk, operation_ids: Iterable[str]) -> None:
    """By two leads in turn."""
    for operation_id, name in zip(operation_ids, itertools.cycle(LEADS)):
        walk.person(name).approve(operation_id)


def _all_paid(walk: Walk, amounts: dict[str, int]) -> None:
    """Each one exactly once in the book, and never in doubt on the way."""
    for operation_id, amount_minor in amounts.items():
        walk.trail.wait_for(operation_id, "succeeded", seconds=25)
        walk.require_one_refund(operation_id, amount_minor)
    walk.require_never("unknown", amounts)


def _nothing_on_its_way(walk: Walk, operation_ids: Iterable[str]) -> None:
    rests = ("authorized", "succeeded")
    wait_until(
        lambda: all(walk.trail.state(each) in rests for each in operation_ids) or None,
        what="all of them paid, or waiting",
    )
    walk.require_never("unknown", operation_ids)


def h_credential_revoked(walk: Walk, step: Step) -> None:
    """Somebody revokes the provider's key while 14 approved refunds go out."""
    account = "plain-weak"
    key = walk.provider.configure(account)["api_key"]
    amounts = proposed(walk, step, account, REVOKED_COUNT)
    ids = [*amounts]
    before = walk.draw.randrange(REVOKED_COUNT // 2)
    approve_all(walk, ids[:before])
    walk.provider.configure(account, api_key="rotated-behind-our-back")
    approve_all(walk, ids[before:])
    walk.trail.wait_for_pause(account, "credential")
    _nothing_on_its_way(walk, ids)
    turned_away = [each for each in walk.provider.calls(account) if each["answered"] == 401]
    require(len(turned_away) <= 2, f"{len(turned_away)} requests left with a key that was refused")
    paid = len(walk.provider.refunds(account))
    require(paid <= before, f"{paid} were paid; {before} were approved while the key was good")
    step.operation_id, *step.more = reversed(ids)
    step.look_at(walk.person("ben").read_operation_page(step.operation_id), "main")
    walk.provider.configure(account, api_key=key)
    walk.here.run("manage.py", "resume", account, "--by", "ines")
    _all_paid(walk, amounts)
    require(len(walk.provider.refunds(account)) == REVOKED_COUNT, "the book has other refunds")


def i_provider_down(walk: Walk, step: Step) -> None:
    """The provider is away: connections are refused. Nobody has to do anything."""
    account = "plain-forever"
    before = len(walk.provider.refunds(account))
    amounts = proposed(walk, step, account, OUTAGE_COUNT)
    step.killed.append(walk.here.kill_provider())
    approve_all(walk, amounts)
    walk.trail.wait_for_pause(account, "outage")
    _nothing_on_its_way(walk, amounts)
    step.look_at(walk.person("cleo").read_operation_page(step.operation_id), "main")
    walk.here.bring_provider_back()
    walk.trail.wait_for_pause(account, "", seconds=25)
    _all_paid(walk, amounts)
    added = len(walk.provider.refunds(account)) - before
    require(added == OUTAGE_COUNT, f"the book has {added} more refunds")


def j_over_refund_race(walk: Walk, step: Step) -> None:
    """60 and 60 of 100, approved by two leads in the same instant."""
    order = walk.order("plain-main", 10000)
    amounts = (6000, 6000 + walk.amount(1, 99))  # equal ones cannot even be proposed side by side
    ids = [walk.propose(order, amount_minor) for amount_minor in amounts]
    step.operation_id, *step.more = ids
    people = [walk.person(name) for name in LEADS]
    drawn = [who.open_proposal(each) for who, each in zip(people, ids, strict=True)]
    with walk.here.money.asleep(), ThreadPoolExecutor(2) as at_once:
        pressed = [
            at_once.submit(who.press_approve, page) for who, page in zip(people, drawn, strict=True)
        ]
        pages = [each.result() for each in pressed]
    statuses = [page.status for page in pages]
    require(sorted(statuses) == [200, 409], f"the two presses got {statuses}")
    won, lost = statuses.index(200), statuses.index(409)
    step.operation_id, step.more = ids[won], [ids[lost]]
    heard = step.look_at(pages[lost], "result")
    left_minor = order.captured_minor - amounts[won]
    wanted = f"Only {left_minor // 100}.{left_minor % 100:02} USD is still refundable on order {order.ref}"
    require(
        wanted in heard.part("result"),
        f"{LEADS[lost]} does not read {wanted!r}: {heard.text[:1500]}",
    )
    walk.trail.wait_for(ids[won], "succeeded")
    people[lost].reject(ids[lost], "Most of this order was given back in the same minute.")
    walk.require_one_refund(ids[won], amounts[won])
    require(_gone(walk, order) == amounts[won], f"the book gave back {_gone(walk, order)}")


def _gone(walk: Walk, order: Order) -> int:
    payments = walk.provider.book(order.account)["payments"]
    [payment] = [each for each in payments if each["ref"] == order.payment_ref]
    return sum(refund["amount_minor"] for refund in payment["refunds"])
