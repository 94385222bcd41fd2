"""What reps and agents may tell a customer, for every place a refund can stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from refunds.domain import say, states
from refunds.domain.say import About, Said
from refunds.domain.sentences import STALE_CAUSES

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
LATER = timedelta(hours=2)


def about(
    state: str,
    *,
    since: datetime = NOW,
    stale_cause: str = "",
    needs_customer: bool = False,
    failed_checks: tuple[str, ...] = (),
) -> About:
    return About(
        state=state,
        amount_minor=124000,
        currency="EUR",
        since=since,
        due_at=NOW + LATER,
        unknown_target_seconds=900,
        stale_cause=stale_cause,
        needs_customer=needs_customer,
        failed_checks=failed_checks,
    )


def everything() -> list[Said]:
    """What is said in every state, after every lapse, early and late."""
    refunds = [about(state) for state in states.STATES]
    refunds += [about(states.AWAITING_APPROVAL, stale_cause=cause) for cause in STALE_CAUSES]
    refunds += [
        about(states.PENDING, needs_customer=True),
        about(states.DENIED, failed_checks=tuple(say.CUSTOMER_REASONS)),
        about(states.DENIED, failed_checks=("agent_limits", "caller_allowed")),
    ]
    late = NOW + timedelta(days=9)
    return [say.say(each, now) for each in refunds for now in (NOW, late)]


def test_every_script_is_said_somewhere_and_every_state_has_one() -> None:
    assert {each.place for each in everything()} == say.SCRIPTS.keys()
    assert set(states.STATES) <= say.SCRIPTS.keys()


@pytest.mark.parametrize("said", everything(), ids=lambda said: said.place)
def test_no_text_holds_what_its_own_list_forbids(said: Said) -> None:
    script = say.SCRIPTS[said.place]
    text = said.text.lower()
    assert said.never == tuple(each.says for each in script.never)
    for never in script.never:
        assert never.words
        for word in never.words:
            assert word not in text, f"{said.place} says {word!r}"


@pytest.mark.parametrize("said", everything(), ids=lambda said: said.place)
def test_no_text_anywhere_invites_to_press_again_or_leaves_a_gap(said: Said) -> None:
    text = said.text.lower()
    for word in ("try again", "retry", "!", "oops", "{", "}", "sorry", "  "):
        assert word not in text
    assert said.text.endswith(".")
    assert set(said.rep_sees) <= say.REP_SEES.keys()


@pytest.mark.parametrize("state", [states.UNKNOWN, states.SUBMITTING])
def test_a_doubt_is_never_told_as_an_end(state: str) -> None:
    text = say.say(about(state), NOW).text
    assert text == (
        "Your refund of 1\u202f240.00 EUR was submitted. The confirmation is delayed and we are"
        " checking it with the payment company. You do not need to do anything. Next update by"
        " 14:15 UTC on 30 November."
    )
    for word in ("try again", "retry", "failed", "successful", "succeeded", "new refund"):
        assert word not in text.lower()


def promising() -> list[About]:
    """A refund at every place where a promise of news is made."""
    refunds = [about(state) for state in states.STATES if say.SCRIPTS[state].promise]
    return [*refunds, about(states.PENDING, since=NOW - timedelta(days=5))]


@pytest.mark.parametrize("refund", promising(), ids=lambda refund: refund.state)
def test_a_promise_is_made_once_and_its_hour_never_moves(refund: About) -> None:
    first = say.say(refund, NOW).promise_at
    assert first is not None
    assert say.say(refund, first - timedelta(seconds=1)).promise_at == first
    for late in (timedelta(0), timedelta(minutes=40), timedelta(days=20)):
        said = say.say(refund, first + late)
        assert (said.promise_at, said.missed_at) == (None, first)
        assert "We have no news yet" in said.text
        for word in (" by ", "UTC", "November", "December"):
            assert word not in said.text, said.text


def test_what_ended_undecided_promises_no_review_that_nobody_makes() -> None:
    said = say.say(about(states.EXPIRED), NOW)
    assert said.text == (
        "The request for your refund of 1\u202f240.00 EUR ended before it was decided. No money has"
        " left."
    )
    assert said.promise_at is None


def test_what_the_payment_company_needs_is_told_by_a_colleague_and_at_no_hour() -> None:
    said = say.say(about(states.PENDING, needs_customer=True), NOW)
    assert said.text.endswith("A colleague will tell you what it is.")
    assert (said.promise_at, said.missed_at) == (None, None)


def test_what_is_approved_is_not_under_review_any_more() -> None:
    said = say.say(about(states.AUTHORIZED), NOW)
    assert said.text == (
        "Your refund of 1\u202f240.00 EUR has been approved and is waiting to be sent to the payment"
        " company. We will update you by 16:00 UTC on 30 November."
    )


def test_times_are_rounded_up_and_written_in_the_readers_zone() -> None:
    since = NOW + timedelta(seconds=11)
    text = say.say(about(states.UNKNOWN, since=since), since, ZoneInfo("Europe/Berlin")).text
    assert "by 15:16 CET on 30 November" in text


def test_a_review_promises_news_by_the_hour_it_would_end_by_itself() -> None:
    said = say.say(about(states.AWAITING_APPROVAL), NOW)
    assert said.promise_at == NOW + LATER
    assert said.text.endswith("We will update you by 16:00 UTC on 30 November.")


def test_only_a_changed_order_is_told_as_a_changed_order() -> None:
    changed = say.say(about(states.AWAITING_APPROVAL, stale_cause="order_changed"), NOW)
    assert changed.place == say.STALE
    assert changed.text.startswith("Your order changed")
    for cause in ("expired", "authority", "taken_back"):
        told = say.say(about(states.AWAITING_APPROVAL, stale_cause=cause), NOW)
        assert "order changed" not in told.text
        assert told.promise_at is None


def test_a_pending_refund_that_is_late_promises_no_date_any_more() -> None:
    said = say.say(about(states.PENDING), NOW)
    assert said.text.endswith("Expected by 5 December.")
    late = say.say(about(states.PENDING), NOW + timedelta(days=5))
    assert late.place == say.PENDING_LATE
    assert "Expected by" not in late.text
    assert late.promise_at == NOW + timedelta(days=6)


def test_a_denial_names_only_reasons_that_concern_the_customer() -> None:
    ours = say.say(about(states.DENIED, failed_checks=("agent_limits",)), NOW)
    assert ours.text == "We could not approve this refund."
    theirs = say.say(about(states.DENIED, failed_checks=("agent_limits", "refund_age")), NOW)
    assert theirs.text == (
        "We could not approve this refund. The time for refunds of this order is over."
    )
