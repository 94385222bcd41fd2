"""Calling a refund off: by its proposer or a lead, until it is sent, and twice is once."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from refunds import approvals, dispatch, withdrawal
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger.lapse import expire
from refunds.models import Operation
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.ledger.rows import everything, history, state_of
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def refused(operation_id: UUID, by: Caller, reason: str = "") -> Refusal:
    """The refusal of a withdrawal that changes nothing."""
    before = everything()
    with pytest.raises(Refusal) as refusal:
        withdrawal.withdraw(operation_id, by=by, reason=reason)
    assert everything() == before
    return refusal.value


def test_an_agent_withdraws_what_it_proposed_and_for_others_there_is_none(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    other = refused(operation.pk, Caller(agent=cast.foxtrot))
    nobody = refused(uuid4(), Caller(agent=cast.foxtrot))
    assert (other.code, other.status) == ("not_found", 404)
    assert (other.detail, other.operation_id) == (nobody.detail, None)
    withdrawal.withdraw(operation.pk, by=Caller(agent=cast.echo), reason=" the parcel came ")
    event = operation.events.get(event="withdrawn")
    assert (event.actor_kind, event.actor) == ("caller", "agent:Echo")
    assert event.detail == {"reason": "the parcel came"}


def test_an_agent_without_the_account_withdraws_nothing_there(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    cast.echo.accounts = ["stripe-eu"]
    cast.echo.save()
    assert refused(operation.pk, Caller(agent=cast.echo)).code == "not_found"


def test_a_person_withdraws_their_own_a_lead_any_and_others_are_told_whom_to_ask(
    cast: Cast,
) -> None:
    build.order()
    operation = build.proposed(cast.omar, amount_minor=100)
    stranger = refused(operation.pk, Caller(person=cast.rosa))
    assert (stranger.code, stranger.status) == ("role_missing", 403)
    assert stranger.what_to_do == "Ask its proposer or a support lead."
    withdrawal.withdraw(operation.pk, by=Caller(person=cast.omar))
    others = build.proposed(cast.echo, amount_minor=200)
    withdrawal.withdraw(others.pk, by=Caller(person=cast.cleo))
    event = others.events.get(event="withdrawn")
    assert (event.actor_kind, event.actor) == ("lead", "person:cleo")


def test_who_is_no_lead_any_more_withdraws_nothing_of_others(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    cast.cleo.is_active = False
    cast.cleo.save()
    assert refused(operation.pk, Caller(person=cast.cleo)).code == "role_missing"


def test_withdrawing_twice_is_the_same_result(cast: Cast, provider: SandboxProcess) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    withdrawal.withdraw(operation.pk, by=Caller(agent=cast.echo))
    once = everything()
    again = withdrawal.withdraw(operation.pk, by=Caller(person=cast.cleo), reason="as asked")
    assert (again.state, everything()) == (states.WITHDRAWN, once)
    assert refused(operation.pk, Caller(agent=cast.foxtrot)).code == "not_found"
    assert dispatch.send(str(operation.pk)) == "gone"
    assert provider.refunds() == []


def test_a_reason_is_checked_like_every_text(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    caller = Caller(agent=cast.echo)
    assert refused(operation.pk, caller, "x" * 501).code == "text_too_long"
    assert refused(operation.pk, caller, "card 4111 1111 1111 1111").code == "text_card_number"
    assert refused(operation.pk, caller, "bell\x07").code == "text_control"
    assert state_of(operation) == states.AWAITING_APPROVAL


def test_what_was_sent_or_has_ended_is_not_withdrawn(cast: Cast, provider: SandboxProcess) -> None:
    provider.payment()
    build.order()
    caller = Caller(agent=cast.echo)
    sent = build.authorized(cast.echo, cast.ben, amount_minor=100)
    assert dispatch.send(str(sent.pk)) == "confirmed"
    late = refused(sent.pk, caller)
    assert (late.code, late.status, late.operation_id) == ("already_sent", 409, sent.pk)
    turned_down = build.proposed(cast.echo, amount_minor=200)
    approvals.reject(
        turned_down.pk, cast.ben, reason="the customer kept it", version=turned_down.version
    )
    ended = refused(turned_down.pk, caller)
    assert (ended.code, ended.status) == ("already_decided", 409)
    assert ended.detail == "Not withdrawn: it is rejected already. Nothing was sent."
    out_of_time = build.proposed(cast.echo, amount_minor=300)
    Operation.objects.filter(pk=out_of_time.pk).update(due_at=timezone.now())
    Operation.objects.filter(pk=out_of_time.pk).update(expires_at=timezone.now())
    assert expire(timezone.now() + timedelta(seconds=1), batch_max=10) == 1
    assert refused(out_of_time.pk, caller).code == "already_decided"
    assert "withdrawn" not in history(sent) + history(turned_down) + history(out_of_time)
