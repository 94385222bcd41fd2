"""Rule 36: one reservation, kept from the first send to the last, and given back once."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation import reconciler
from refunds import approvals, dispatch, withdrawal
from refunds.domain import states
from refunds.models import Operation, Payment
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.ledger.rows import (
    held,
    held_equals_reservations,
    state_of,
)
from tests.ledger.stage import (
    creates,
    make_due,
    ready,
    run,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def turned_away(provider: SandboxProcess, cast: Cast) -> Operation:
    operation = ready(provider, cast)
    provider.fault("rate_429")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    operation.refresh_from_db()
    assert held(operation) == (7900, "held")
    return operation


def test_rule_36_the_second_send_takes_no_money_again(provider: SandboxProcess, cast: Cast) -> None:
    """Twice the amount would not even fit into the payment."""
    operation = turned_away(provider, cast)
    version = operation.send_version
    make_due(operation)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert held(operation) == (7900, "held")
    operation.refresh_from_db()
    assert operation.send_version == version == operation.order.version
    assert reconciler.look_up(operation.pk) == "Settle"
    assert held(operation) == (0, "booked")
    assert Payment.objects.get().refunded_minor == 7900


def expires(operation: Operation, cast: Cast) -> None:
    run("UPDATE operation SET expires_at = clock_timestamp(), not_before = NULL")
    assert dispatch.send(str(operation.pk)) == "lapsed"


RELEASES: dict[str, Any] = {
    "withdrawn": lambda o, c: withdrawal.withdraw(o.pk, by=Caller(person=c.ben)),
    "revoked": lambda o, c: approvals.revoke(o.pk, c.ben, version=o.version),
    "lapsed": expires,
}


@pytest.mark.parametrize("how", sorted(RELEASES))
def test_rule_36_whatever_ends_the_approval_gives_the_money_back(
    provider: SandboxProcess, cast: Cast, how: str
) -> None:
    operation = turned_away(provider, cast)
    RELEASES[how](operation, cast)
    assert held(operation) == (0, "released")
    assert operation.order.moves.filter(cause="released").count() == 1
    assert state_of(operation) in (states.WITHDRAWN, states.AWAITING_APPROVAL)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(creates(provider)) == 1


def test_rule_36_approved_again_it_takes_the_money_anew(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = turned_away(provider, cast)
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    approvals.approve(operation.pk, cast.cleo, build.shown(operation))
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert held(operation) == (7900, "held")
    assert held_equals_reservations()


@pytest.mark.parametrize("what", ["the order moved", "the approver has lost the role", "halted"])
def test_rule_36_the_second_send_passes_every_check_of_the_first(
    provider: SandboxProcess, cast: Cast, what: str
) -> None:
    operation = turned_away(provider, cast)
    make_due(operation)
    if what == "the order moved":
        build.external_refund("4821", 1000)
    elif what == "halted":
        run("UPDATE payment SET halted = true")
    else:
        cast.ben.groups.clear()
    assert dispatch.send(str(operation.pk)) == ("waiting" if what == "halted" else "lapsed")
    assert held(operation) == ((7900, "held") if what == "halted" else (0, "released"))
    assert len(creates(provider)) == 1
