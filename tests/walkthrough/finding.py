"""The afternoon, part three: finding out what nobody heard, and what others did meanwhile."""

from __future__ import annotations

from typing import Any

from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import Order, Step, Walk, require, require_no_promise

DAY_SECONDS = 86_400
# The sandbox's own figures for its plain accounts: D and V of the contract.
FLIGHT_SECONDS, LAG_SECONDS = 2, 1
LATE_COUNT = 4
# Whether an account's lists are due is asked every minute; then they are read.
SWEEP_SECONDS_MAX = 90


def _unanswered(walk: Walk, step: Step, account: str, fault: str, **options: Any) -> Order:
    """One refund that was sent, and whose answer nobody heard."""
    amount_minor = walk.amount()
    order = walk.order(account, 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault(fault, account=account, **options)
    walk.person("ben").approve(step.operation_id)
    return order


def _amount(walk: Walk, step: Step) -> int:
    return int(walk.trail.operation(step.operation_id)["amount_minor"])


def _paid_once(walk: Walk, step: Step, *, seconds: float = 40) -> list[str]:
    """It comes to succeeded, with one refund in the book; the events on the way."""
    walk.trail.wait_for(step.operation_id, "succeeded", seconds=seconds)
    walk.require_one_refund(step.operation_id, _amount(walk, step))
    return [each["event"] for each in walk.trail.events(step.operation_id)]


def _wait_for_verdict(walk: Walk, step: Step, verdict: str) -> None:
    wait_until(
        lambda: verdict in walk.trail.verdicts(step.operation_id) or None,
        what=f"a lookup that says {verdict}",
    )


def k_lookup_lags(walk: Walk, step: Step) -> None:
    """The refund is made, and for three seconds no list shows it."""
    _unanswered(walk, step, "plain-lagged", "drop_after_commit")
    _wait_for_verdict(walk, step, "absent")
    page = step.look_at(walk.person("ben").read_operation_page(step.operation_id))
    require_no_promise("the operation page", page)
    events = _paid_once(walk, step)
    require("proved_absent" not in events, f"a list that lags was believed: {events}")
    keys = {each["key"] for each in walk.sends(step.operation_id)}
    require(len(keys) == 1, f"it was sent under {len(keys)} keys")


def l_absent_in_time(walk: Walk, step: Step) -> None:
    """It never arrived. An early "absent" concludes nothing, a later one lets it be sent again."""
    _unanswered(walk, step, "plain-nokeys", "drop_before_commit")
    _wait_for_verdict(walk, step, "absent")
    require(walk.trail.state(step.operation_id) == "unknown", "an early absence was believed")
    events = _paid_once(walk, step)
    after = ["unanswered", "proved_absent", "submission_started", "confirmed"]
    require(events[-4:] == after, f"it went {events}")
    [row] = walk.trail.rows(
        "SELECT l.started_at, a.stop_proof_at FROM event e JOIN evidence l ON l.id = e.evidence_id"
        " JOIN attempt a ON a.operation_id = e.operation_id AND a.no = 1"
        " WHERE e.operation_id = %s AND e.event = 'proved_absent'",
        step.operation_id,
    )
    waited = (row["started_at"] - row["stop_proof_at"]).total_seconds()
    least = FLIGHT_SECONDS + LAG_SECONDS + 2 * walk.here.skew_seconds
    require(
        waited > least, f"absent was believed {waited:.1f} s after the sender; {least} s are due"
    )
    require(len(walk.sends(step.operation_id)) == 2, "it was not sent exactly once more")


def m_late_landing(walk: Walk, step: Step) -> None:
    """A lookup truthfully says "absent", and the request lands after it.

    Whether the first look comes before a landing is a matter of the second it falls into: of four,
    one does.
    """
    late = []
    for _ in range(LATE_COUNT):
        _unanswered(walk, step, "plain-nokeys", "land_late", seconds=1.9)
        late.append(step.operation_id)
    for step.operation_id in late:
        events = _paid_once(walk, step)
        require(events[-1] == "found_succeeded", f"it went {events}")
        require(len(walk.sends(step.operation_id)) == 1, "it was sent again")
    step.more = late[:-1]
    early = [each for each in late if "absent" in walk.trail.verdicts(each)]
    require(early, "no lookup was early enough to say absent")


def n_key_window_ends(walk: Walk, step: Step) -> None:
    """Nobody can be asked until the key's time is nearly over: no second send, a person, the truth."""
    account = "plain-main"
    with walk.here.lookups.asleep():
        _unanswered(walk, step, account, "drop_before_commit")
        walk.trail.wait_for(step.operation_id, "unknown")
        walk.provider.fault("lookup_503", account=account, on="list", times=None)
        walk.time_passes(200)
    wait_until(
        lambda: walk.trail.open_reasons(step.operation_id) == ["unresolved"] or None,
        seconds=30,
        what="a case",
    )
    require(
        len(walk.sends(step.operation_id)) == 1, "it was sent again under a key of doubtful life"
    )
    walk.provider.clear_faults()
    walk.time_passes(4100)  # with a case it is looked up about hourly
    walk.trail.wait_for(step.operation_id, "failed", seconds=30)
    require(not walk.refunds(step.operation_id), "a refund that never arrived is in the book")
    require(not walk.trail.open_reasons(step.operation_id), "the case is still open")


def o_a_strangers_equal_refund(walk: Walk, step: Step) -> None:
    """Ours never arrived; a colleague refunds the same amount at the provider's own desk."""
    with walk.here.lookups.asleep():
        order = _unanswered(walk, step, "plain-nokeys", "drop_before_commit")
        walk.trail.wait_for(step.operation_id, "unknown")
        amount_minor = _amount(walk, step)
        walk.refunded_elsewhere(order, amount_minor)
    _wait_for_verdict(walk, step, "absent")
    rests = ("failed", "awaiting_approval", "succeeded")
    walk.trail.wait_for(step.operation_id, *rests, seconds=40)
    step.look_at(walk.person("ben").read_operation_page(step.operation_id))
    ours = len(walk.refunds(step.operation_id))
    state = walk.trail.state(step.operation_id)
    require((state == "succeeded") == (ours == 1), f"{state}, with {ours} of ours in the book")
    found = [each["event"] for each in walk.trail.events(step.operation_id)]
    require("found_succeeded" not in found, "the stranger's refund was taken for ours")


def p_notice_before_the_answer(walk: Walk, step: Step) -> None:
    """The provider's notice overtakes its own answer, comes twice, and in reversed order."""
    account = "plain-async"
    walk.hear_notices_of(account)
    walk.provider.control("POST", "/notices", {"deliver": "never"})  # until both are there
    amount_minor = walk.amount()
    order = walk.order(account, 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.provider.fault("hold", account=account)
    walk.provider.fault("notice_duplicated", account=account, on="notice", times=None, copies=2)
    walk.person("cleo").approve(step.operation_id)
    walk.provider.wait_for_hold()
    walk.provider.advance(6)  # it settles meanwhile
    walk.provider.control("POST", "/notices", {"deliver": "now", "order": "reversed"})
    walk.provider.release()
    _paid_once(walk, step)
    stored, sent = walk.notices_stored(account), walk.provider.control("GET", "/notices")["notices"]
    wanted = 2 if walk.with_notices else 0
    require(stored == wanted, f"{stored} notices were stored; the provider's are {sent}")
    require(len(walk.sends(step.operation_id)) == 1, "it was sent twice")


def q_outside_refund_is_seen(walk: Walk, step: Step) -> None:
    """30.00 goes out at the provider's own desk; nobody tells us. Six minutes later it counts."""
    order = walk.order("plain-main", 12900)
    ref = walk.refunded_elsewhere(order, 3000)
    walk.time_passes(330)

    def counted() -> bool | None:
        found = walk.trail.rows(
            "SELECT p.refunded_minor FROM provider_refund r JOIN payment p ON p.id = r.payment_id"
            " WHERE r.ref = %s AND r.operation_id IS NULL",
            ref,
        )
        return found == [{"refunded_minor": 3000}] or None

    wait_until(counted, seconds=SWEEP_SECONDS_MAX, what="the outside refund of 30.00, counted")
    [case] = walk.trail.rows(
        "SELECT c.reasons, p.halted FROM review_case c JOIN payment p ON p.id = c.payment_id"
        " WHERE p.ref = %s AND c.closed_at IS NULL",
        order.payment_ref,
    )
    require(case == {"reasons": ["external"], "halted": True}, f"the case says {case}")


def r_taken_back_after_days(walk: Walk, step: Step) -> None:
    """Paid and booked; three days later the bank sends the money back."""
    account = "plain-forever"
    amount_minor = walk.amount()
    order = walk.order(account, 3 * amount_minor)
    step.operation_id = walk.propose(order, amount_minor)
    walk.person("ben").approve(step.operation_id)
    walk.trail.wait_for(step.operation_id, "succeeded")
    [refund] = walk.refunds(step.operation_id)
    walk.time_passes(2 * DAY_SECONDS)
    walk.provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "failed"})
    walk.time_passes(DAY_SECONDS)
    walk.trail.wait_for(step.operation_id, "returned", seconds=SWEEP_SECONDS_MAX)
    step.look_at(walk.person("ben").read_operation_page(step.operation_id))
    wait_until(
        lambda: walk.trail.open_reasons(step.operation_id) == ["remedy"] or None, what="a remedy"
    )
    [payment] = walk.trail.rows(
        "SELECT refunded_minor, held_minor FROM payment WHERE ref = %s", order.payment_ref
    )
    require(payment == {"refunded_minor": 0, "held_minor": 0}, f"the payment says {payment}")
