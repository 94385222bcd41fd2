"""What is stored of one answer, and what a view of an operation is where nothing is said."""

from __future__ import annotations

import pytest

from reconciliation.known import AttemptView, Settle
from refunds.domain.outcome import NOT_EXECUTED, Answer, Outcome, RefundRecord
from tests.unit.deciding import NOON, RECORD, view


@pytest.mark.parametrize("record", [RECORD, None])
def test_the_stored_facts_are_those_of_the_refund_that_the_answer_shows(
    record: RefundRecord | None,
) -> None:
    answer = Answer(outcome=Outcome.CONFIRMED, because="201", code="made", record=record)
    shown = {
        "ref": RECORD.ref,
        "provider_status": RECORD.provider_status,
        "amount_minor": RECORD.amount_minor,
        "currency": RECORD.currency,
        "payment_ref": RECORD.payment_ref,
        "marker": RECORD.marker,
    }
    said = {"outcome": "confirmed", "because": "201", "code": "made"}
    assert answer.facts() == said | (shown if record else dict.fromkeys(shown))
    assert answer.credential_refused is False


def test_only_two_outcomes_prove_that_nothing_was_executed() -> None:
    assert set(NOT_EXECUTED) == {Outcome.TURNED_AWAY, Outcome.NOT_SENT}


def test_of_an_operation_of_which_nothing_is_said_nothing_is_held_back() -> None:
    plain = view()
    assert (plain.halted, plain.adopted, plain.quarantined) == (False, False, False)
    assert (plain.explained, plain.by_ruling, plain.sighted) == (True, False, False)
    attempt = AttemptView(
        no=1,
        outcome=None,
        recorded_at=NOON,
        send_deadline=NOON,
        stop_proof_at=None,
        settled_by_evidence=False,
    )
    assert attempt.kept == ""
    assert Settle("found_failed", "").covers is False
