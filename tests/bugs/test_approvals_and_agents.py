"""Public reports of approvals that were not bound and agents that call again: B117 to B125."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from refunds import approvals, checks, dispatch, intake, policies
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Approval, Operation, Person
from refunds.queries import results
from review.models import RefusedAct
from tests import build
from tests.bugs.history import let_pass
from tests.bugs.steps import answer_lost, creates, events_of, state_of
from tests.cast import Cast
from tests.flows import console
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def forged_approval(operation: Operation, person: Person) -> Approval:
    """An approval as the table would hold it, for whoever writes past the verbs."""
    return Approval(
        operation=operation,
        round=operation.round,
        approver=person,
        as_role="lead",
        fingerprint=operation.fingerprint,
        order_version=1,
        shown={},
        policy_version=operation.policy_version,
        expires_at=timezone.now() + timedelta(days=1),
    )


@pytest.mark.parametrize("proposer", ["Echo, her agent", "ada"])
def test_b117_whoever_proposed_cannot_approve_by_whatever_path(cast: Cast, proposer: str) -> None:
    build.order()
    operation = build.proposed(cast.ada if proposer == "ada" else cast.echo)
    with pytest.raises(Refusal) as refused:
        approvals.approve(operation.pk, cast.ada, build.shown(operation))
    assert (refused.value.code, refused.value.status) == ("own_proposal", 403)
    with (
        pytest.raises(IntegrityError, match="nobody approves what they or their agent proposed"),
        transaction.atomic(),
    ):
        forged_approval(operation, cast.ada).save()
    assert not Approval.objects.exists()
    assert state_of(operation) == states.AWAITING_APPROVAL


def test_b117_posting_the_approve_form_oneself_is_refused_by_the_server_and_stored(
    cast: Cast,
) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    anothers = console.drawn(console.signed_in(cast.ben), operation, "approve")
    ada = console.signed_in(cast.ada)
    page = console.opened(ada, operation)
    assert not console.has_form(page, console.url(operation, "approve"))
    token = console.form_on(page, "/sign-out")["csrfmiddlewaretoken"]
    answer = ada.post(console.url(operation, "approve"), anothers | {"csrfmiddlewaretoken": token})
    assert answer.status_code == 403
    stored = RefusedAct.objects.get()
    assert (stored.person, stored.code, stored.act) == (cast.ada, "own_proposal", "approve")
    assert stored.object_ref == str(operation.pk)
    assert not Approval.objects.exists()


def test_b119_an_approval_is_for_one_operation_and_cannot_be_used_for_another(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    approved = build.authorized(cast.echo, cast.ben)
    second = build.proposed(cast.echo, amount_minor=1200)
    with pytest.raises(Refusal) as refused:
        approvals.approve(second.pk, cast.cleo, build.shown(approved))
    assert (refused.value.code, refused.value.status) == ("fingerprint_differs", 409)

    given = Approval.objects.get()
    given.pk, given.operation = None, second
    with (
        pytest.raises(IntegrityError, match="in this round, with this fingerprint"),
        transaction.atomic(),
    ):
        given.save(force_insert=True)
    with pytest.raises(IntegrityError, match="append only"), connection.cursor() as cursor:
        cursor.execute("UPDATE approval SET operation_id = %s", [second.pk])
    assert dispatch.send(str(second.pk)) == "gone"
    assert dispatch.send(str(approved.pk)) == "confirmed"
    assert [refund["amount_minor"] for refund in provider.refunds()] == [7900]


def test_b121_a_tool_call_that_timed_out_gets_the_same_request_with_its_next_action(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    call = operation.proposals.get()
    again = build.request(session_id=call.session_id, tool_call_id=call.tool_call_id)
    found = intake.propose(again, intake.Caller(agent=cast.echo))
    assert (found.outcome, found.operation.pk) == ("same", operation.pk)
    told = results.find(operation.pk)
    assert told is not None
    result = results.result(told, timezone.now())
    assert (result["outcome"], result["next_action"]) == ("unknown", "ask_status")
    assert result["do_not_repeat"] is True
    assert Operation.objects.count() == 1
    assert len(creates(provider)) == 1


def test_b123_a_transcript_replayed_long_after_meets_what_it_made(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    transcript = [build.request(), build.request(amount_minor=1200)]
    caller = intake.Caller(agent=cast.echo)
    first, second = (intake.propose(each, caller).operation for each in transcript)
    approvals.approve(first.pk, cast.ben, build.shown(first))
    assert dispatch.send(str(first.pk)) == "confirmed"
    approvals.reject(second.pk, cast.ben, reason="not a damage", version=second.version)
    before = [events_of(first), events_of(second)]
    let_pass(100 * 24 * 3600)
    replayed = [intake.propose(each, caller) for each in transcript]
    assert [each.outcome for each in replayed] == ["same", "same"]
    assert [each.operation.pk for each in replayed] == [first.pk, second.pk]
    assert [events_of(first), events_of(second)] == before
    assert Operation.objects.count() == 2
    assert len(provider.refunds()) == 1


@pytest.mark.parametrize("expiry", ["2026-12-01", "2026-12-01T10:00:00", '"24 h"', "-1", "86400.0"])
def test_b125_an_expiry_that_is_no_number_of_seconds_stops_at_the_start(
    settings: Settings, tmp_path: Path, expiry: str
) -> None:
    text = settings.POLICY_FILE.read_text()
    assert "approval_valid_seconds = 86400" in text
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(
        text.replace("approval_valid_seconds = 86400", f"approval_valid_seconds = {expiry}")
    )
    policies.current.cache_clear()
    try:
        with pytest.raises(ImproperlyConfigured, match="approval_valid_seconds must be a whole"):
            policies.current()
        assert [each.id for each in checks.policy_is_readable()] == ["aftersend.E001"]
    finally:
        policies.current.cache_clear()


def test_b125_an_expired_approval_lapses_and_nothing_raises(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    assert Approval.objects.get().expires_at.tzinfo is not None
    let_pass(86401)
    assert dispatch.send(str(operation.pk)) == "lapsed"
    assert state_of(operation) == states.AWAITING_APPROVAL
    assert operation.stale_cause == "expired"
    assert provider.calls() == []
