"""What follows from what happened, and the signature that others check."""

from __future__ import annotations

import base64

import pytest

from reconciliation import outbox_plan as plan
from reconciliation.outbox_signing import (
    NotASecret,
    delivery_id,
    headers,
    read_secret,
    secret_of,
)
from refunds.domain import states

REFUND = plan.Refund(
    order_ref="4821", amount_minor=7900, currency="USD", tier=3, quorum=2, state="succeeded"
)
# The vector that the authors of Standard Webhooks publish with their libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def kinds(event: str) -> set[str]:
    return {tell.kind for tell in plan.of_move(REFUND, event, latest=True)}


def test_every_event_of_the_state_table_is_told_or_kept_on_purpose() -> None:
    assert {rule.event for rule in states.RULES} == plan.MOVES.keys() | plan.SILENT
    assert not plan.MOVES.keys() & plan.SILENT


def test_every_end_is_told_to_the_ticket_the_agent_the_asker_and_the_merchant() -> None:
    for rule in states.RULES:
        if rule.target in states.ENDED:
            assert kinds(rule.event) == set(plan.KINDS), rule.event


def test_an_end_that_is_contradicted_is_told_to_all_who_heard_of_the_end() -> None:
    assert kinds("contradicted") == kinds("ruling_contradicted") == set(plan.KINDS)


def test_every_decision_about_an_approval_is_told_to_the_agent() -> None:
    for event in ("approved", "policy_cleared", "approval_revoked", "approval_lapsed"):
        assert plan.AGENT in kinds(event)


def test_nothing_is_said_to_customers_while_the_outcome_is_not_known() -> None:
    assert plan.CUSTOMER not in kinds("unanswered") | kinds("lease_ended") | kinds("approved")


def test_leads_are_asked_only_while_it_still_waits() -> None:
    now = {tell.audience for tell in plan.of_move(REFUND, "policy_held", latest=True)}
    then = {tell.audience for tell in plan.of_move(REFUND, "policy_held", latest=False)}
    assert (now - then) == {"lead"}


def test_a_message_names_the_amount_and_the_order() -> None:
    for event in plan.MOVES:
        for tell in plan.of_move(REFUND, event, latest=True):
            if tell.kind != plan.CUSTOMER:
                assert tell.text.startswith("The refund of 79.00 USD on order 4821 ")


def test_a_duplicate_wakes_somebody_and_an_unresolved_one_does_not() -> None:
    duplicate = list(plan.of_case(REFUND, "C-3", "", "duplicate"))
    assert [(tell.audience, tell.pages) for tell in duplicate] == [
        ("on_call", True),
        ("ops", False),
    ]
    unresolved = list(plan.of_case(REFUND, "C-3", "", "unresolved"))
    assert [(tell.audience, tell.pages) for tell in unresolved] == [("ops", False)]


def test_a_case_without_a_known_refund_names_the_order_or_at_least_the_case() -> None:
    (tell,) = plan.of_case(None, "C-9", "4821", "external")
    assert "A payment of order 4821 needs a person (C-9)" in tell.text
    (tell,) = plan.of_case(None, "C-9", "", "unmatched_notice")
    assert "C-9" in tell.text


def test_an_outage_wakes_somebody_and_a_persons_pause_does_not() -> None:
    assert [tell.pages for tell in plan.of_pause("plain-main", "outage")] == [True]
    assert [tell.pages for tell in plan.of_pause("plain-main", "person")] == [False]


def test_the_second_approval_is_asked_for_only_where_two_are_needed_and_it_still_waits() -> None:
    assert not list(plan.of_approval(REFUND))
    waiting = plan.Refund(
        order_ref="4821",
        amount_minor=7900,
        currency="USD",
        tier=3,
        quorum=2,
        state="awaiting_approval",
    )
    assert [tell.audience for tell in plan.of_approval(waiting)] == ["lead", "finance"]


def test_the_signature_is_the_one_of_standard_webhooks() -> None:
    made = headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [SECRET])
    assert made["webhook-signature"] == SIGNATURE
    assert made["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert made["webhook-timestamp"] == "1614265330"


def test_while_secrets_rotate_both_sign() -> None:
    other = secret_of("merchant", b"n" * 32)
    both = headers("id", 1, b"{}", [other, SECRET])["webhook-signature"].split(" ")
    assert both == [
        headers("id", 1, b"{}", [each])["webhook-signature"] for each in (other, SECRET)
    ]


def test_each_receiver_has_a_secret_of_its_own_that_fits_the_standard() -> None:
    secrets = {secret_of(name, b"m" * 32) for name in ("merchant", "ticket", "agent:Echo")}
    assert len(secrets) == 3
    assert {len(read_secret(each)) for each in secrets} == {32}


@pytest.mark.parametrize(
    "text",
    [
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_not base64",
        "whsec_" + base64.b64encode(b"short").decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
    ],
)
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(NotASecret):
        read_secret(text)


def test_the_id_of_a_message_depends_on_what_is_told_how_and_to_whom() -> None:
    ids = {
        delivery_id(what, kind, who)
        for what in ("op:1", "op:2")
        for kind in ("ticket_update", "staff_message")
        for who in ("ticket", "staff")
    }
    assert len(ids) == 8
    assert str(delivery_id("op:1", "ticket_update", "ticket")) == str(
        delivery_id("op:1", "ticket_update", "ticket")
    )
