"""A frozen order: nothing on it is proposed, approved or sent until somebody lifts the freeze."""

from __future__ import annotations

import pytest
from django.db import transaction

from refunds import approvals, dispatch, freezing, withdrawal
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Operation, Order, OrderMove, Payment, Person
from refunds.proposal import Caller
from refunds.queries import results
from tests import build
from tests.cast import Cast
from tests.flows.console import opened, signed_in
from tests.ledger.actors import Troupe
from tests.ledger.rows import everything, held, state_of
from tests.ledger.stage import creates, make_due, ready, refunds, somebody_waits_for_a_lock
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "the customer says that it never came"


def frozen(by: Person, ref: str = "4821") -> Order:
    """The order, frozen at the version that it has now."""
    return freezing.freeze(ref, by, reason=WHY, version=Order.objects.get(ref=ref).version)


def lifted(by: Person, ref: str = "4821") -> Order:
    version = Order.objects.get(ref=ref).version
    return freezing.unfreeze(ref, by, reason="the parcel was found", version=version)


def refused(by: Person, *, reason: str = WHY, version: int = 1, ref: str = "4821") -> Refusal:
    before = everything()
    with pytest.raises(Refusal) as refusal:
        freezing.freeze(ref, by, reason=reason, version=version)
    assert everything() == before
    return refusal.value


def told(operation: Operation) -> tuple[str, str]:
    """What the proposer of a refund is told: outcome and sentence."""
    found = results.find(operation.pk)
    assert found is not None
    answer = results.result(found, found.entered_at)
    return answer["outcome"], answer["sentence"]


def test_a_freeze_moves_the_version_once_and_keeps_who_and_why(cast: Cast) -> None:
    build.order()
    assert frozen(cast.ines).version == 2
    move = OrderMove.objects.get(version=2)
    assert (move.cause, move.actor, move.detail) == ("frozen", "person:ines", {"reason": WHY})
    again = freezing.freeze("4821", cast.olga, reason="once more, to be sure", version=1)
    assert (again.frozen, again.version) == (True, 2)
    assert lifted(cast.olga).version == 3
    assert OrderMove.objects.get(version=3).cause == "unfrozen"
    assert freezing.unfreeze("4821", cast.ines, reason="it was lifted", version=2).version == 3


def test_only_an_ops_lead_freezes_with_a_reason_on_the_version_that_was_shown(cast: Cast) -> None:
    build.order()
    for person in (cast.omar, cast.ben, cast.adam):
        refusal = refused(person)
        assert (refusal.code, refusal.status) == ("role_missing", 403)
    assert refused(cast.ines, reason="  too short ").code == "reason_too_short"
    assert refused(cast.ines, reason="x" * 501).code == "text_too_long"
    assert (refused(cast.ines, ref="no such").code) == "order_unknown"
    build.external_refund("4821", 100)
    stale = refused(cast.ines, version=1)
    assert (stale.code, stale.status) == ("stale_page", 409)
    assert stale.facts == {"version_then": 1, "version_now": 2}


def test_on_a_frozen_order_nothing_is_proposed_or_approved(cast: Cast) -> None:
    build.order()
    waiting = build.proposed(cast.omar, amount_minor=100)
    frozen(cast.ines)
    denied = build.proposed(cast.omar, amount_minor=200)
    assert denied.state == states.DENIED
    assert [check.name for check in denied.checks.filter(passed=False)] == ["order_known"]
    with pytest.raises(Refusal) as blocked:
        approvals.approve(waiting.pk, cast.ben, build.shown(waiting))
    assert "is frozen by a person" in blocked.value.detail
    withdrawal.withdraw(waiting.pk, by=Caller(person=cast.omar))


def test_what_was_approved_before_a_freeze_is_not_sent_and_not_after_it_either(
    cast: Cast, provider: SandboxProcess
) -> None:
    operation = ready(provider, cast)
    frozen(cast.ines)
    lifted(cast.olga)
    assert dispatch.send(str(operation.pk)) == "lapsed"
    operation.refresh_from_db()
    assert (operation.state, operation.stale_cause) == (states.AWAITING_APPROVAL, "order_changed")
    assert creates(provider) == []
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(refunds(provider, operation)) == 1


def test_a_second_send_does_not_pass_a_freeze_either(cast: Cast, provider: SandboxProcess) -> None:
    operation = ready(provider, cast)
    provider.fault("rate_429")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    make_due(operation)
    frozen(cast.ines)
    assert dispatch.send(str(operation.pk)) == "lapsed"
    assert held(operation) == (0, "released")
    assert len(creates(provider)) == 1


def test_waiting_proposals_are_stale_until_the_freeze_is_lifted(cast: Cast) -> None:
    build.order()
    build.order("4822")
    waiting = build.proposed(cast.echo, amount_minor=100)
    elsewhere = build.proposed(cast.echo, "4822", amount_minor=100)
    before = told(waiting)
    frozen(cast.ines)
    outcome, sentence = told(waiting)
    assert outcome == "stale"
    assert sentence.startswith("The order is frozen by a person: nothing on it can be approved")
    assert told(elsewhere)[0] == "awaiting_approval"
    assert "Stale: the order is frozen by a person" in opened(signed_in(cast.ben), waiting)
    lifted(cast.olga)
    assert told(waiting) == before
    approvals.approve(waiting.pk, cast.ben, build.shown(waiting))
    assert state_of(waiting) == states.AUTHORIZED


def test_a_freeze_leaves_a_proposal_the_cause_it_had(cast: Cast, provider: SandboxProcess) -> None:
    operation = ready(provider, cast)
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    frozen(cast.ines)
    lifted(cast.olga)
    operation.refresh_from_db()
    assert operation.stale_cause == "taken_back"


def test_a_claim_that_waited_for_the_freeze_sends_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation])
    with transaction.atomic():
        frozen(cast.ines)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(operation.pk): "lapsed"}
    assert creates(provider) == []
    assert Payment.objects.get().held_minor == 0
