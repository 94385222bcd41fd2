"""Consent by another person, for what is waiting: held by the database, not only by the verbs."""

from __future__ import annotations

import pytest

from refunds.models import Operation, Person
from tests.ledger.guards.guarded import Guarded

APPROVE = """
INSERT INTO approval (operation_id, round, approver_id, as_role, fingerprint, order_version, shown,
                      shown_operations, shown_amounts_minor, asked_by_approver,
                      separate_refund_confirmed, policy_version, expires_at)
SELECT id, {round}, %s, {role}, {fingerprint}, 1, '{{}}', '{{}}', {amounts}, false, false,
       policy_version, clock_timestamp() + interval '1 day'
FROM operation WHERE id = %s
"""
ANOTHERS = "nobody approves what they or their agent proposed"
NOT_WAITING = "an approval is for what is waiting, in this round, with this fingerprint"


def approve(
    round_: str = "round",
    fingerprint: str = "fingerprint",
    role: str = "'lead'",
    amounts: str = "'{}'",
) -> str:
    return APPROVE.format(round=round_, fingerprint=fingerprint, role=role, amounts=amounts)


def by(person: Person, operation: Operation) -> list[object]:
    return [person.pk, operation.pk]


def test_an_approval_by_another_for_what_is_waiting_is_accepted(guarded: Guarded) -> None:
    guarded.accepts(approve(), by(guarded.cast.ben, guarded.waiting))


def test_the_owner_of_the_agent_cannot_approve(guarded: Guarded) -> None:
    guarded.refuses(approve(), by(guarded.cast.ada, guarded.waiting), says=ANOTHERS)


def test_the_person_who_proposed_cannot_approve(guarded: Guarded) -> None:
    guarded.refuses(approve(), by(guarded.cast.cleo, guarded.of_cleo), says=ANOTHERS)


@pytest.mark.parametrize("round_", ["round + 1", "round - 1"])
def test_an_approval_of_another_round_is_refused(guarded: Guarded, round_: str) -> None:
    guarded.refuses(approve(round_=round_), by(guarded.cast.ben, guarded.waiting), says=NOT_WAITING)


@pytest.mark.parametrize("fingerprint", [r"'\x00'::bytea", "sha256(fingerprint)"])
def test_an_approval_of_another_fingerprint_is_refused(guarded: Guarded, fingerprint: str) -> None:
    guarded.refuses(
        approve(fingerprint=fingerprint), by(guarded.cast.ben, guarded.waiting), says=NOT_WAITING
    )


@pytest.mark.parametrize("name", ["authorized", "unknown"])
def test_what_does_not_wait_is_not_approved(guarded: Guarded, name: str) -> None:
    guarded.refuses(approve(), by(guarded.cast.cleo, getattr(guarded, name)), says=NOT_WAITING)


def test_one_person_approves_once_a_round(guarded: Guarded) -> None:
    once = approve() % (guarded.cast.ben.pk, f"'{guarded.waiting.pk}'")
    guarded.accepts(once)
    guarded.refuses(f"{once}; {once}", says="approval_once_a_round")


def test_an_approval_is_given_in_a_role_that_decides(guarded: Guarded) -> None:
    guarded.refuses(
        approve(role="'admin'"), by(guarded.cast.ben, guarded.waiting), says="approval_role_known"
    )


def test_an_approval_has_an_amount_beside_each_refund_that_was_shown(guarded: Guarded) -> None:
    guarded.refuses(
        approve(amounts="'{1200}'"),
        by(guarded.cast.ben, guarded.waiting),
        says="approval_shown_with_amounts",
    )


def test_an_approval_for_no_operation_is_refused(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO approval (operation_id, round, approver_id, as_role, fingerprint,"
        " order_version, shown, shown_operations, shown_amounts_minor, asked_by_approver,"
        " separate_refund_confirmed, policy_version, expires_at)"
        " VALUES (gen_random_uuid(), 1, %s, 'lead', '', 1, '{}', '{}', '{}', false, false, '',"
        " clock_timestamp())",
        [guarded.cast.ben.pk],
        says="query returned no rows",
    )


# What stops sending is ended by somebody else


def test_the_big_stop_is_not_ended_by_who_pressed_it(guarded: Guarded) -> None:
    pressed = (
        "INSERT INTO sending_stop (stopped_by, reason, ended_by, ended_at)"
        " VALUES ('ada', 'storm', %s, clock_timestamp())"
    )
    guarded.accepts(pressed, ["ben"])
    guarded.refuses(pressed, ["ada"], says="sending_stop_ended_by_another")


def test_one_big_stop_is_open_at_a_time(guarded: Guarded) -> None:
    pressed = "INSERT INTO sending_stop (stopped_by, reason, ended_by) VALUES ('ada', 'storm', '')"
    guarded.refuses(f"{pressed}; {pressed}", says="sending_stop_one_open")


def test_a_quarantine_is_lifted_by_two_people(guarded: Guarded) -> None:
    lifted = (
        "INSERT INTO quarantine (reason, detail, lifted_by, lifted_with, lifted_at)"
        " VALUES ('restore', '{}', %s, %s, clock_timestamp())"
    )
    guarded.accepts(lifted, ["olga", "adam"])
    guarded.refuses(lifted, ["olga", "olga"], says="quarantine_lifted_by_two")


def test_one_quarantine_is_open_at_a_time(guarded: Guarded) -> None:
    begun = (
        "INSERT INTO quarantine (reason, detail, lifted_by, lifted_with)"
        " VALUES ('restore', '{}', '', '')"
    )
    guarded.refuses(f"{begun}; {begun}", says="quarantine_one_open")


def test_one_case_is_open_per_operation(guarded: Guarded) -> None:
    opened = (
        "INSERT INTO review_case (operation_id, payment_id, provider_account, escalated_to, version,"
        " reasons, because, due_at, closed_because) SELECT id, payment_id, '', '', 1,"
        " '{unresolved}', '', clock_timestamp(), ''"
        f" FROM operation WHERE id = '{guarded.unknown.pk}'"
    )
    guarded.refuses(f"{opened}; {opened}", says="case_one_open")
