"""The afternoon, part four: what the provider tells of its own accord, and what if it tells nothing."""

from __future__ import annotations

from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import Order, Step, Walk, require

SETTLE_SECONDS = 5
SWEEP_SECONDS_MAX = 90
# How the provider deals with each of four refunds: fault -> the end that follows, one way or another.
STORIES = {
    "drop_after_commit": "succeeded",
    "drop_before_commit": "succeeded",
    "fail_later": "failed",
    "delay": "returned",
}


def s_no_notices_same_end(walk: Walk, step: Step) -> None:
    """Four refunds with notices, and the same four when the provider tells nothing: the same ends.

    One whose answer is lost, one that never arrives, one that fails later, one that is taken back
    after it was paid. Apart from this step, `p` and `t` no notice reaches us all afternoon, and
    under NOTICES=off none at all: `p` and `t` have the same ends then too.
    """
    account = "plain-async"
    walk.hear_notices_of(account)
    told = _four_ends(walk, step, account, heard=walk.with_notices)
    walk.hear_no_notices_of(account)
    untold = _four_ends(walk, step, account, heard=False)
    require(told == untold == [*STORIES.values()], f"with notices {told}, without {untold}")


def _four_ends(walk: Walk, step: Step, account: str, *, heard: bool) -> list[str]:
    before = walk.notices_stored(account)
    ids = []
    for fault in STORIES:
        amount_minor = walk.amount()
        order = walk.order(account, 3 * amount_minor)
        walk.provider.fault(fault, account=account, match={"payment": order.payment_ref})
        ids.append(walk.propose(order, amount_minor))
        walk.person("ben").approve(ids[-1])
    step.operation_id, step.more = ids[-1], [*step.more, step.operation_id, *ids[:-1]]
    *others, taken_back = ids
    for operation_id, end in zip(others, STORIES.values(), strict=False):
        walk.trail.wait_for(operation_id, end, seconds=40)
    walk.trail.wait_for(taken_back, "succeeded", seconds=40)
    _take_back(walk, taken_back, heard=heard)
    came = walk.notices_stored(account) - before
    require((came > 0) == heard, f"{came} notices came")
    return [walk.trail.state(each) for each in ids]


def _take_back(walk: Walk, operation_id: str, *, heard: bool) -> None:
    """The bank sends the money back; without a notice the account's own list shows it."""
    [refund] = walk.refunds(operation_id)
    walk.provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "failed"})
    if heard:
        walk.trail.wait_for(operation_id, "returned")
        return
    walk.time_passes(330)
    walk.trail.wait_for(operation_id, "returned", seconds=SWEEP_SECONDS_MAX)


def t_notice_while_the_store_is_away(walk: Walk, step: Step) -> None:
    """Paid, and taken back while our database is away: what was not stored is told again."""
    account = "plain-main"
    walk.hear_notices_of(account)
    amount_minor = walk.amount()
    order = walk.order(account, 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault("drop_after_commit", account=account)
    walk.person("cleo").approve(step.operation_id)
    walk.trail.wait_for(step.operation_id, "succeeded")
    [refund] = walk.refunds(step.operation_id)
    with walk.here.backup.away():
        walk.provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "failed"})
        if walk.with_notices:
            wait_until(
                lambda: _tries(walk, refund["id"]) >= 1, seconds=20, what="a delivery in vain"
            )
    if walk.with_notices:
        walk.trail.wait_for(step.operation_id, "returned", seconds=25)
        tries = _tries(walk, refund["id"])
        require(tries >= 2, f"the provider was answered in {tries} tries, with nothing stored")
    else:
        walk.time_passes(330)
        walk.trail.wait_for(step.operation_id, "returned", seconds=SWEEP_SECONDS_MAX)
    step.look_at(walk.person("cleo").read_operation_page(step.operation_id))
    _nothing_is_left(walk, order)
    walk.hear_no_notices_of(account)


def _tries(walk: Walk, refund_id: str) -> int:
    """How often the provider tried to tell of this refund's newest status."""
    sent = walk.provider.control("GET", "/notices")["notices"]
    mine = [each for each in sent if each["refund"] == refund_id]
    return int(mine[-1]["attempts"]) if len(mine) > 1 else 0


def _nothing_is_left(walk: Walk, order: Order) -> None:
    [payment] = walk.trail.rows(
        "SELECT refunded_minor, held_minor FROM payment WHERE ref = %s", order.payment_ref
    )
    require(payment == {"refunded_minor": 0, "held_minor": 0}, f"the payment says {payment}")
