"""What the database refuses about states and events, whoever asks and however."""

from __future__ import annotations

import pytest

from refunds.models import Operation
from tests.ledger.guards.guarded import Guarded

MOVE = """
WITH moved AS (
  UPDATE operation SET state = '{to}', version = version + 1 WHERE id = %s RETURNING id, version
)
INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, detail, at)
SELECT id, version, '{event}', '{source}', '{to}', '{kind}', 'test', '{{}}', clock_timestamp()
FROM moved
"""
EVENT = """
INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, detail, at)
SELECT id, {seq}, '{event}', {source}, '{to}', '{kind}', 'test', '{{}}', clock_timestamp()
FROM operation WHERE id = %s
"""


def move(event: str, source: str, to: str, kind: str) -> str:
    return MOVE.format(event=event, source=source, to=to, kind=kind)


def event(seq: str, name: str, source: str, to: str, kind: str) -> str:
    return EVENT.format(seq=seq, event=name, source=f"'{source}'", to=to, kind=kind)


@pytest.mark.parametrize("state", ["succeeded", "failed", "submitting", "unknown", "nonsense"])
def test_a_state_is_not_set_by_itself(guarded: Guarded, state: str) -> None:
    guarded.refuses(
        "UPDATE operation SET state = %s WHERE id = %s",
        [state, guarded.authorized.pk],
        says="version moves by one",
    )


def test_a_state_with_the_next_version_needs_its_event(guarded: Guarded) -> None:
    guarded.refuses(
        "UPDATE operation SET state = 'submitting', version = version + 1 WHERE id = %s",
        [guarded.authorized.pk],
        says="operation_head_is_last_event",
    )


def test_a_version_does_not_move_without_an_event(guarded: Guarded) -> None:
    guarded.refuses(
        "UPDATE operation SET version = version + 1 WHERE id = %s",
        [guarded.authorized.pk],
        says="operation_head_is_last_event",
    )


@pytest.mark.parametrize("step", [-1, 2, 10])
def test_a_version_moves_by_one_only(guarded: Guarded, step: int) -> None:
    guarded.refuses(
        "UPDATE operation SET version = version + %s WHERE id = %s",
        [step, guarded.authorized.pk],
        says="version moves by one",
    )


def test_a_rewind_to_an_older_version_and_state_is_refused(guarded: Guarded) -> None:
    """That event exists, so the key to the head alone would accept it."""
    assert guarded.authorized.events.filter(seq=2, to_state="awaiting_approval").exists()
    guarded.refuses(
        "UPDATE operation SET version = 2, state = 'awaiting_approval' WHERE id = %s",
        [guarded.authorized.pk],
        says="version moves by one",
    )


@pytest.mark.parametrize(
    ("name", "source", "to", "kind"),
    [
        ("confirmed", "authorized", "succeeded", "dispatcher"),
        ("lease_ended", "submitting", "authorized", "reconciler"),
        ("approved", "authorized", "submitting", "approvers"),
        ("anything", "authorized", "submitting", "dispatcher"),
        ("approval_revoked", "submitting", "awaiting_approval", "approver"),
    ],
)
def test_a_jump_that_the_table_lacks_is_refused(
    guarded: Guarded, name: str, source: str, to: str, kind: str
) -> None:
    guarded.refuses(move(name, source, to, kind), [guarded.authorized.pk], says="event_is_legal")


@pytest.mark.parametrize(
    ("name", "source", "to", "kind"),
    [
        ("confirmed", "submitting", "succeeded", "dispatcher"),
        ("rejected", "awaiting_approval", "rejected", "approver"),
        ("found_succeeded", "unknown", "succeeded", "reconciler"),
    ],
)
def test_a_legal_move_from_another_state_than_the_last_is_refused(
    guarded: Guarded, name: str, source: str, to: str, kind: str
) -> None:
    guarded.refuses(move(name, source, to, kind), [guarded.authorized.pk], says="event_follows")


@pytest.mark.parametrize(
    "kind",
    ["approver", "approvers", "reconciler", "operators", "caller", "policy", "", "Dispatcher"],
)
def test_a_move_by_the_wrong_kind_of_actor_is_refused(guarded: Guarded, kind: str) -> None:
    guarded.refuses(
        move("submission_started", "authorized", "submitting", kind),
        [guarded.authorized.pk],
        says="event_is_legal",
    )


def test_the_right_move_is_accepted(guarded: Guarded) -> None:
    """The statement of these tests is refused for its content and not for its form."""
    guarded.accepts(
        move("withdrawn", "authorized", "withdrawn", "lead"),
        [guarded.authorized.pk],
    )


def test_no_operation_is_being_sent_without_an_attempt(guarded: Guarded) -> None:
    guarded.refuses(
        move("submission_started", "authorized", "submitting", "dispatcher"),
        [guarded.authorized.pk],
        says="attempt_one_open",
    )


def test_an_event_whose_operation_never_moved_is_refused(guarded: Guarded) -> None:
    """It would occupy the next step for good and wedge the operation."""
    guarded.refuses(
        event("version + 1", "submission_started", "authorized", "submitting", "dispatcher"),
        [guarded.authorized.pk],
        says="without its operation",
    )


def test_an_event_of_no_operation_is_refused(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,"
        " detail, at) VALUES (gen_random_uuid(), 1, 'proposed', 'none', 'proposed', 'caller',"
        " 'test', '{}', clock_timestamp())",
        says="event_operation_id",
    )


def test_a_step_has_one_event(guarded: Guarded) -> None:
    guarded.refuses(
        event("version", "withdrawn", "awaiting_approval", "withdrawn", "lead"),
        [guarded.authorized.pk],
        says="event_one_per_step",
    )


def test_only_the_first_event_comes_from_nowhere(guarded: Guarded) -> None:
    """A first-looking event later in the chain would have nothing to follow."""
    guarded.refuses(
        event("version + 1", "adopted", "none", "unknown", "operators"),
        [guarded.authorized.pk],
        says="event_first_from_none",
    )


def test_an_event_has_a_positive_number_and_no_gaps(guarded: Guarded) -> None:
    guarded.refuses(
        event("0", "proposed", "none", "proposed", "caller"),
        [guarded.authorized.pk],
        says="event_seq_from_one|event_first_from_none",
    )
    guarded.refuses(
        event("version + 2", "submission_started", "authorized", "submitting", "dispatcher"),
        [guarded.authorized.pk],
        says="event_follows",
    )


def test_an_event_without_a_state_to_follow_is_refused(guarded: Guarded) -> None:
    """One NULL would switch the foreign key off."""
    sql = EVENT.format(
        seq="version + 1",
        event="submission_started",
        source="NULL",
        to="submitting",
        kind="dispatcher",
    )
    guarded.refuses(sql, [guarded.authorized.pk], says="not-null")


def test_an_operation_without_history_is_refused(guarded: Guarded) -> None:
    guarded.refuses(
        guarded.copy_of_operation(amount_minor="amount_minor + 1", state="'authorized'"),
        [guarded.authorized.pk],
        says="operation_head_is_last_event",
    )
    assert not Operation.objects.filter(request_ref="copied").exists()
