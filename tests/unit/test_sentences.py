"""What is said under each state: no more than is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from refunds.domain import states
from refunds.domain.sentences import STALE_CAUSES, Told, clock, sentence

NOW = datetime(2026, 11, 29, 14, 2, 19, tzinfo=UTC)
SENT = datetime(2026, 11, 29, 14, 2, 11, tzinfo=UTC)
EARLIER = datetime(2026, 11, 27, 9, 0, tzinfo=UTC)


def said(state: str, **facts: object) -> str:
    return sentence(state, Told(**facts), NOW)  # type: ignore[arg-type]


def test_every_state_has_a_sentence_even_when_nothing_else_is_known() -> None:
    for state in states.STATES:
        assert said(state).endswith(".")


@pytest.mark.parametrize(
    ("state", "facts", "text"),
    [
        (
            states.UNKNOWN,
            {"sent_at": SENT},
            "Sent at 14:02:11 UTC; no answer we can trust."
            " It may or may not have happened. We are checking.",
        ),
        (
            states.AWAITING_APPROVAL,
            {"asked_by": "Echo"},
            "Asked for by Echo. Nothing has been approved or sent.",
        ),
        (
            states.AWAITING_APPROVAL,
            {"asked_by": "Echo", "approved_by": "ben"},
            "Approved by ben; another person must approve it too. Nothing was sent.",
        ),
        (
            states.AWAITING_APPROVAL,
            {"stale_cause": "balance"},
            "The approval no longer applies: too little is left to refund. Nothing was sent.",
        ),
        (
            states.AWAITING_APPROVAL,
            {"stale_cause": "order_changed", "sent_at": SENT},
            "The approval no longer applies: the order changed."
            " What was sent before is proven not executed.",
        ),
        (
            states.AUTHORIZED,
            {"approved_by": "ben", "order_version": 7, "expires_at": SENT},
            "Approved by ben for order version 7. Valid until 14:02:11 UTC. Not sent yet.",
        ),
        (
            states.AUTHORIZED,
            {"approved_by": "ben", "order_version": 7, "expires_at": SENT, "sent_at": EARLIER},
            "Approved by ben. Sent at 27 Nov 2026 09:00:00 UTC and proven not executed;"
            " it will be sent again. Valid until 14:02:11 UTC.",
        ),
        (
            states.SUBMITTING,
            {"sent_at": SENT},
            "Being sent since 14:02:11 UTC. Until the answer is in, treat it as possibly done.",
        ),
        (
            states.PENDING,
            {"entered_at": SENT, "provider_refund_ref": "re_1"},
            "The provider accepted it at 14:02:11 UTC and is working on it (id re_1).",
        ),
        (
            states.SUCCEEDED,
            {"entered_at": SENT, "event": "found_succeeded"},
            "The provider's record matches ours on every required field, checked 14:02:11 UTC.",
        ),
        (
            states.SUCCEEDED,
            {"entered_at": SENT, "event": "ruled_happened", "entered_by": "omar, ines"},
            "People ruled on the evidence that it happened (omar, ines, 14:02:11 UTC).",
        ),
        (
            states.FAILED,
            {"entered_at": SENT, "event": "refused", "because": "card expired"},
            "The provider says no money moved (card expired), checked 14:02:11 UTC.",
        ),
        (
            states.FAILED,
            {"entered_at": SENT, "event": "proved_not_executed"},
            "No money moved: the provider's records show that it was never executed, 14:02:11 UTC.",
        ),
        (
            states.RETURNED,
            {"entered_at": EARLIER, "because": "account closed"},
            "It had happened, and the money came back on 27 Nov 2026 09:00:00 UTC"
            " (account closed). The customer still expects it.",
        ),
        (
            states.DENIED,
            {"failed_checks": ("within_balance", "refund_age")},
            "Policy refused it: within_balance, refund_age. Nothing was sent.",
        ),
        (states.EXPIRED, {"expires_at": SENT}, "Nobody decided by 14:02:11 UTC. Nothing was sent."),
        (
            states.UNKNOWN,
            {"event": "contradicted", "entered_at": SENT},
            "Evidence of 14:02:11 UTC contradicts how this had ended."
            " It may or may not have happened. We are checking.",
        ),
    ],
)
def test_sentences_name_what_is_known(state: str, facts: dict[str, object], text: str) -> None:
    assert said(state, **facts) == text


def test_a_ruling_that_it_differs_is_told_with_the_words_of_those_who_ruled() -> None:
    because = "The provider kept its fee; the figure it booked is accepted."
    text = said(states.MISMATCHED, entered_by="omar, ines", entered_at=SENT, because=because)
    assert text == (
        "Money moved, but not as asked: two people ruled on the evidence that the provider's refund"
        f" differs (omar, ines, {clock(SENT, NOW)}): The provider kept its fee; the figure it"
        " booked is accepted."
    )


@pytest.mark.parametrize("state", [states.SUBMITTING, states.UNKNOWN])
def test_where_money_may_have_moved_no_sentence_denies_it(state: str) -> None:
    for sent_at in (None, SENT):
        for event in ("", "unanswered", "contradicted", "adopted"):
            text = said(state, sent_at=sent_at, event=event).lower()
            assert "possibly done" in text or "may or may not" in text
            assert not any(word in text for word in ("nothing was sent", "failed", "try again"))


def test_every_cause_of_a_lapse_has_words() -> None:
    assert set(STALE_CAUSES) >= {"order_changed", "expired", "balance", "authority", "taken_back"}
    assert "no such cause" in said(states.AWAITING_APPROVAL, stale_cause="no_such_cause")


def test_times_are_utc_and_carry_their_date_unless_it_is_today() -> None:
    assert clock(SENT, NOW) == "14:02:11 UTC"
    assert clock(datetime.fromisoformat("2026-11-29T23:30:00-02:00"), NOW) == (
        "30 Nov 2026 01:30:00 UTC"
    )
    assert clock(None, NOW) == "an unknown time"
