"""Processes that tell at once, or are killed while they do: nothing is lost, nothing told twice."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation.models import Delivery, Line
from refunds.models import Operation
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.stage import ready
from tests.outbox.receiver import make_due, receiving, tell
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

CLAIMED = "reconciliation.outbox_sending:send"
SENT = "reconciliation.outbox_sending:record"
EXPANDING = "reconciliation.outbox_lines:_delivery"


def test_two_workers_that_see_the_same_success_tell_it_once(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, settings: Any
) -> None:
    with receiving(settings, "merchant") as receiver:
        operation = sent(provider, cast, troupe)
        here = receiver.environ("merchant")
        one = troupe.actor("tell", [operation], stop_at=CLAIMED, environ=here)
        two = troupe.actor("tell", [operation], environ=here)
        one.go()
        one.reaches(CLAIMED)
        assert two.finish() == {str(operation.pk): "0"}
        assert one.finish() == {str(operation.pk): "1"}
        assert len(receiver.heard) == 1


def test_two_workers_that_expand_the_same_success_make_one_message(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, settings: Any
) -> None:
    with receiving(settings, "merchant") as receiver:
        operation = sent(provider, cast, troupe)
        here = receiver.environ("merchant")
        one = troupe.actor("tell", [operation], stop_at=EXPANDING, environ=here)
        two = troupe.actor("tell", [operation], environ=here)
        one.go()
        one.reaches(EXPANDING)
        assert two.finish() == {str(operation.pk): "0"}
        assert one.finish() == {str(operation.pk): "1"}
        assert len(receiver.heard) == Line.objects.count() == 1


def test_a_kill_between_the_move_and_the_delivery_loses_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, settings: Any
) -> None:
    with receiving(settings, "merchant") as receiver:
        operation = sent(provider, cast, troupe)  # whoever moved it is dead
        here = receiver.environ("merchant")
        for place in (EXPANDING, CLAIMED):
            teller = troupe.actor("tell", [operation], stop_at=place, environ=here)
            teller.go()
            teller.reaches(place)
            teller.kill()
            assert receiver.heard == []
        assert Delivery.objects.get().state == "sending"
        assert tell() == 0, "the lease of the dead still holds"
        make_due()
        assert tell() == 1
        (heard,) = receiver.heard
        assert heard.body["data"]["about"] == "confirmed"


def test_a_kill_after_the_receiver_took_it_repeats_it_under_the_same_id(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, settings: Any
) -> None:
    with receiving(settings, "merchant") as receiver:
        operation = sent(provider, cast, troupe)
        teller = troupe.actor(
            "tell", [operation], stop_at=SENT, environ=receiver.environ("merchant")
        )
        teller.go()
        teller.reaches(SENT)
        teller.kill()
        make_due()
        tell()
        one, two = receiver.heard
        assert (one.id, one.raw) == (two.id, two.raw)
    assert Delivery.objects.get().state == "delivered"


def sent(provider: SandboxProcess, cast: Cast, troupe: Troupe) -> Operation:
    """A refund that another process sent and recorded; that process was killed then."""
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation])
    assert sender.finish() == {str(operation.pk): "confirmed"}
    sender.kill()
    return operation
