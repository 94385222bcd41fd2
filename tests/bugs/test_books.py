"""Public reports about books: corrections, entries that were not made, and what people settle by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from reconciliation import reconciler
from reconciliation.models import Case
from refunds import approvals, dispatch, feed, intake
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Evidence, Payment
from tests import build
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    events_of,
    open_reasons,
    state_of,
)
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.ledger.rulings import REASON, attached, ruled, signed, told, unknown_with_case
from tests.monitors.stage import fires
from tests.outside.steps import causes, later, turn
from tests.page import Page
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_b089_a_correction_of_a_late_failure_that_runs_twice_moves_money_once(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=4000)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    turn(provider, provider.refunds()[0]["id"], "failed")
    for _ in range(2):
        reconciler.look_up(operation.pk)
    assert causes() == ["first_seen", "reserved", "taken_back"]
    assert events_of(operation).count("taken_back") == 1
    assert balance_of() == (0, 0, 12900)
    [owed] = Case.objects.filter(closed_at=None)
    again = build.request(amount_minor=4000, separate_from=operation.pk)
    caller = intake.Caller(person=cast.ada)
    made = [intake.propose(again, caller) for _ in range(2)]
    assert [each.outcome for each in made] == ["created", "same"]
    correction = made[0].operation
    approvals.approve(correction.pk, cast.ben, build.shown(correction, tick=True))
    remedy = {"kind": "new_operation", "reference": correction.business_key}
    ruled(owed, cast.ben, "remedy", **remedy)
    with pytest.raises(Refusal):
        ruled(owed, cast.cleo, "remedy", **remedy)
    assert dispatch.send(str(correction.pk)) == "confirmed"
    assert dispatch.send(str(correction.pk)) == "gone"
    third = intake.propose(build.request(amount_minor=4000), intake.Caller(agent=cast.echo))
    assert (third.outcome, third.operation.pk) == ("already_done", correction.pk)
    assert [each["status"] for each in provider.refunds()] == ["failed", "succeeded"]
    assert balance_of() == (0, 4000, 8900)


def _paid_again(seconds_apart: float, captured_minor: int = 12900) -> None:
    """The feed shows a second capture on order 4821."""
    first = Payment.objects.get(ref="pi_4821")
    assert first.captured_at is not None
    second = feed.PaymentSnapshot(
        ref="pi_again",
        provider_account="plain-main",
        state="captured",
        captured_minor=captured_minor,
        captured_at=first.captured_at + timedelta(seconds=seconds_apart),
    )
    feed.upsert(
        feed.OrderSnapshot(
            ref="4821", currency="USD", facts_as_of=timezone.now(), payments=(second,)
        ),
        by="shop",
    )


@pytest.mark.parametrize(
    ("seconds_apart", "captured_minor"), [(2 * 86_400, 12900), (60, 4500)], ids=["later", "other"]
)
def test_b115_two_payments_that_are_no_pair_fire_nothing(
    cast: Cast, seconds_apart: float, captured_minor: int
) -> None:
    build.order()
    _paid_again(seconds_apart, captured_minor)
    assert fires("captured_twice") == {}


def test_b115_an_order_captured_twice_is_shown_until_an_approved_refund_has_gone_out(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment("pi_4821")
    provider.payment("pi_again")
    build.order()
    assert fires("captured_twice") == {}
    _paid_again(60)
    assert fires("captured_twice") == {"order 4821": "warn"}
    asked = build.proposed(
        cast.ada, amount_minor=12900, reason_code="duplicate_payment", payment_ref="pi_again"
    )
    assert dispatch.send(str(asked.pk)) == "gone"  # nothing leaves before people say so
    assert provider.refunds() == []
    for lead in (cast.ben, cast.cleo):
        approvals.approve(asked.pk, lead, build.shown(asked))
    assert dispatch.send(str(asked.pk)) == "confirmed"
    assert fires("captured_twice") == {}
    assert (balance_of("pi_4821"), balance_of("pi_again")) == ((0, 0, 12900), (0, 12900, 0))


@contextmanager
def _books_unwritable() -> Iterator[None]:
    """While it lasts, the database takes no refund into the books."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER out_of_order BEFORE INSERT ON provider_refund FOR EACH ROW"
            " EXECUTE FUNCTION aftersend_refuse('out of order')"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER out_of_order ON provider_refund")


def test_b140_what_the_provider_did_is_kept_and_stays_a_duty_until_it_is_in_the_books(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    with _books_unwritable(), pytest.raises(IntegrityError, match="out of order"):
        reconciler.look_up(operation.pk)
    # Done at the provider, and said so by what we stored; not booked, and nowhere called done.
    assert Evidence.objects.get(operation=operation, kind="lookup").facts["verdict"] == "match"
    assert state_of(operation) == states.UNKNOWN
    assert (balance_of(), operation.provider_refunds.count()) == ((7900, 0, 5000), 0)
    assert operation.due_at is not None
    at = operation.due_at + timedelta(seconds=1)
    assert list(reconciler.due(at, batch_max=10)) == [str(operation.pk)]
    assert str(operation.pk) in text(signed_in(cast.omar).get("/unknown?tab=auto"))
    later(provider, 120)
    for operation_id in reconciler.due(timezone.now(), batch_max=10):
        reconciler.look_up(UUID(operation_id))
    assert state_of(operation) == states.SUCCEEDED
    [refund] = provider.refunds()
    assert operation.provider_refunds.get().ref == refund["id"]
    assert balance_of() == (0, 7900, 5000)
    assert open_reasons(operation) == []


def test_b146_what_people_settled_by_hand_is_a_list_with_who_signed_and_on_what(
    provider: SandboxProcess, cast: Cast
) -> None:
    blind = unknown_with_case(provider, cast, account="plain-blind", fault="drop_after_commit")
    attached(blind, cast.omar)
    [refund] = provider.refunds("plain-blind")
    first = ruled(blind, cast.omar, "happened", testimony=told(refund["id"]))
    manager = signed_in(cast.mia)
    nothing = text(manager.get("/unknown/by-hand"))
    assert "Nobody has settled anything" in nothing
    assert 'href="/unknown/by-hand" aria-current="page"' in nothing
    assert 'href="/unknown?tab=second"' in nothing
    ruling = signed(first, cast.ines)
    page = Page("/unknown/by-hand", 200, text(manager.get("/unknown/by-hand")))
    row = page.part(f"row-{ruling.pk}")
    for word in ("The refund happened", "omar and ines", refund["id"], "november.pdf", REASON):
        assert word in row
    assert "ines 1, omar 1" in page.text
