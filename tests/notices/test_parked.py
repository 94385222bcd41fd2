"""Notices that no operation explains: kept, matched again, shown to people, never forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciliation import unmatched
from reconciliation.models import Case, Notice
from refunds.domain import states
from refunds.models import Payment
from tests import build
from tests.bugs.history import let_pass
from tests.bugs.steps import answer_lost, balance_of, state_of
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.notices.telling import plain_body, plain_refund, stripe_body, tell
from tests.notices.work import Rung, sweep, told_of, work
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def parked(rung: Rung, refund: dict[str, object], event_id: str = "evt_1") -> Notice:
    """A notice that matched nothing when it came."""
    assert tell(plain_body(event_id, refund)).status == 200
    work(rung)
    notice = Notice.objects.get(event_id=event_id)
    assert (notice.applied_at, notice.tries, notice.case_id) == (None, 1, None)
    return notice


@pytest.mark.parametrize(
    ("age_seconds", "next_seconds"),
    [(0, 60), (59, 60), (60, 300), (301, 900), (900, 3600), (3600, 7200), (90_000, 93_600)],
)
def test_a_parked_notice_is_matched_again_ever_more_seldom(
    age_seconds: int, next_seconds: int
) -> None:
    now = NOON + timedelta(seconds=age_seconds)
    assert unmatched.next_match(NOON, now) == NOON + timedelta(seconds=next_seconds)


def test_a_notice_of_a_payment_that_nobody_knows_becomes_a_case_of_its_account(
    cast: Cast, rung: Rung
) -> None:
    first = parked(rung, plain_refund(payment="pi_9", id="rf_9"))
    second = parked(rung, plain_refund(payment="pi_8", id="rf_8"), "evt_2")
    let_pass(890)
    sweep(rung)
    assert not Case.objects.exists()
    let_pass(20)
    sweep(rung, seconds=100)
    assert first.pk != second.pk
    case = Case.objects.get()
    assert (case.reasons, case.payment, case.account) == (["unmatched_notice"], None, "plain-main")
    assert "pi_" in case.because
    assert "No payment of that name is known here" in case.because
    assert "plain-main tells of" in text(signed_in(cast.omar).get("/unknown"))


def test_a_restored_database_that_learns_of_the_operation_applies_what_it_kept(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    """The operation is known again only later: as after a restore, or when a feed comes late."""
    operation = answer_lost(provider, cast)
    provider.fault("lookup_503", on="list", times=None)
    rung.clear()
    shown = provider.refunds()[0]
    notice = parked(rung, plain_refund(id=shown["id"], aftersend_operation=None))
    let_pass(1000)
    sweep(rung)
    case = Case.objects.get()
    assert (case.payment, case.operation) == (operation.payment, None)
    assert str(operation.pk) in case.because, "a candidate to compare, and no more"
    assert state_of(operation) == states.UNKNOWN, "nothing is guessed by payment and amount"
    provider.clear_faults()
    told_of(provider, "evt_2")
    work(rung)
    assert state_of(operation) == states.SUCCEEDED
    sweep(rung, seconds=4000)
    notice.refresh_from_db()
    case.refresh_from_db()
    assert notice.outcome == "looked_up"
    assert "explained now" in case.closed_because


def test_a_refund_that_was_fed_from_outside_is_known(cast: Cast, rung: Rung) -> None:
    build.order()
    build.external_refund("4821", 3000, ref="rf_9")
    tell(plain_body("evt_1", plain_refund(id="rf_9", aftersend_operation=None)))
    work(rung)
    assert Notice.objects.get().outcome == "outside"


@pytest.mark.parametrize("told", ["succeeded", "pending"])
def test_a_refund_made_elsewhere_is_read_back_and_counts_as_the_provider_shows_it(
    provider: SandboxProcess, cast: Cast, rung: Rung, told: str
) -> None:
    provider.payment()
    build.order()
    external = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 3000}
    provider.control("POST", "/external_refund", external)
    seen = len(provider.calls())
    told_of(provider, aftersend_operation=None, amount_minor=9999, status=told)
    work(rung)
    assert [call["on"] for call in provider.calls()[seen:]] == ["list"]
    assert (balance_of(), Notice.objects.get().outcome) == ((0, 3000, 9900), "outside")
    [case] = Case.objects.all()
    assert (case.reasons, case.payment) == (["external"], Payment.objects.get())
    assert "30.00 USD" in case.because


def test_a_refund_made_elsewhere_where_nobody_can_be_asked_counts_as_it_was_told(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    build.order(account="plain-hooks")
    for number, amount in enumerate((None, 3000)):
        refund = plain_refund(aftersend_operation=None, amount_minor=amount)
        assert tell(plain_body(f"evt_{number}", refund), account="plain-hooks").status == 200
    work(rung)
    assert balance_of() == (0, 3000, 9900)
    assert [each.outcome for each in Notice.objects.order_by("pk")] == ["", "outside"]


def test_a_case_of_a_payment_closes_only_when_all_of_its_notices_are_explained(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    build.order()
    for number in (1, 2):
        parked(rung, plain_refund(id=f"rf_{number}", aftersend_operation=None), f"evt_{number}")
    let_pass(1000)
    sweep(rung)
    case = Case.objects.get()
    assert Notice.objects.filter(case=case).count() == 2
    build.external_refund("4821", 7900, ref="rf_1")
    sweep(rung, seconds=4000)
    case.refresh_from_db()
    assert case.closed_at is None
    build.external_refund("4821", 100, ref="rf_2")
    sweep(rung, seconds=4000)
    case.refresh_from_db()
    assert case.closed_at is not None


def test_after_thirty_days_it_is_given_up_with_its_case_left_open(cast: Cast, rung: Rung) -> None:
    notice = parked(rung, plain_refund(payment="pi_9"))
    let_pass(1000)
    sweep(rung)
    let_pass(31 * 86_400)
    sweep(rung)
    notice.refresh_from_db()
    assert notice.outcome == "given_up"
    assert Case.objects.get().closed_at is None


def test_an_event_about_no_refund_of_any_payment_is_nothing(cast: Cast, rung: Rung) -> None:
    tell(
        stripe_body("evt_1", {"object": "payment_intent", "id": "pi_1"}, type="payment_intent.x"),
        account="stripe-main",
    )
    work(rung)
    assert Notice.objects.get().outcome == "nothing"


def test_a_notice_that_cannot_be_applied_is_tried_again_and_shown_after_three_failures(
    cast: Cast, rung: Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(plain_body("evt_1", plain_refund()))
    rung.clear()
    notice = Notice.objects.get()

    def broken(notice: Notice) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as failing:
        failing.setattr(unmatched, "match", broken)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                sweep(rung, seconds=100_000)
    assert Case.objects.get().reasons == ["poison"]
    sweep(rung, seconds=100_000)
    notice.refresh_from_db()
    assert (notice.failures, notice.tries) == (3, 1)
