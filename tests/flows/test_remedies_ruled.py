"""What people rule about one remedy, and what was to be paid beside it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from reconciliation import remedies
from refunds import dispatch
from refunds.domain import states
from refunds.ledger import RECONCILER, transition
from refunds.models import Operation
from tests import build
from tests.bugs.steps import open_reasons, state_of
from tests.cast import Cast
from tests.flows.console import signed_in
from tests.flows.test_remedies import approved, fail, failed, propose, proposed
from tests.ledger.rulings import asked, looked, ruled, signed
from tests.outside.steps import by_hand
from tests.provider_process import SandboxProcess


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("left_minor", "stopped"), [(4000, ["contradiction"]), (2000, [])])
def test_a_remedy_ruled_to_have_paid_all_of_it_stops_the_one_beside_it(
    provider: SandboxProcess, cast: Cast, left_minor: int, stopped: list[str]
) -> None:
    provider.payment()
    first = failed(cast)
    cleo = signed_in(cast.cleo)
    lost = proposed(cleo, first, amount="25.00")
    approved(lost, cast.ben)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(lost.pk)) == "unanswered"
    assert propose(cleo, first, amount="15.00").status_code == 303
    beside = Operation.objects.filter(remedy_of=first).latest("created_at")
    ref = by_hand(provider, left_minor)
    looked(lost)
    ruling = ruled(asked(lost), cast.omar, "different", ref=ref, confirmed_minor=left_minor)
    signed(ruling, cast.ines)
    assert state_of(lost) == states.MISMATCHED
    assert open_reasons(beside) == stopped


@pytest.mark.django_db
def test_refunds_that_ended_and_moved_on_keep_no_other_from_being_owed(cast: Cast) -> None:
    """What a batch takes first must be what it can do something about."""
    build.order("4820")
    moved_on = build.authorized(cast.echo, cast.ben, order_ref="4820", amount_minor=1000)
    fail(moved_on)
    moved_on.refresh_from_db()
    transition(moved_on, "contradicted", by=RECONCILER)
    build.order()
    ended = build.authorized(cast.echo, cast.ben, amount_minor=1000)
    fail(ended)
    soon = timezone.now() + timedelta(seconds=1)
    assert remedies.owe_for_ended(soon, batch_max=1) == 1
    assert (open_reasons(moved_on), open_reasons(ended)) == ([], ["remedy"])
