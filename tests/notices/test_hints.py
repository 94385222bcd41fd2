"""A notice is a hint: it leads to a lookup that starts after it, and changes nothing by itself."""

from __future__ import annotations

import pytest

from reconciliation import lookup, notices, reconciler
from reconciliation.models import Case, Notice
from refunds import dispatch
from refunds.domain import states
from refunds.models import Evidence, Operation, ProviderRefund
from tests.bugs.history import let_pass
from tests.bugs.steps import answer_lost, authorized, balance_of, open_reasons, state_of
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.notices.telling import plain_body, plain_refund, tell
from tests.notices.work import Rung, sweep, told_of, work
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def lookups(operation: Operation) -> list[int]:
    found = Evidence.objects.filter(operation=operation, kind="lookup").order_by("lookup_no")
    return [number for number in found.values_list("lookup_no", flat=True) if number]


def test_a_lost_answer_is_found_by_the_lookup_that_a_notice_causes(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    rung.clear()
    seen = len(provider.calls())
    assert told_of(provider).status == 200
    assert state_of(operation) == states.UNKNOWN
    work(rung)
    assert state_of(operation) == states.SUCCEEDED
    [fetch] = [call for call in provider.calls()[seen:] if call["on"] == "list"]
    assert fetch["answered"] == 200
    notice = Notice.objects.get()
    assert (notice.outcome, notice.operation_id) == ("looked_up", operation.pk)
    assert balance_of() == (0, 7900, 5000)


def test_a_notice_alone_changes_no_state_whatever_it_claims(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    rung.clear()
    for number, status in enumerate(("succeeded", "failed", "pending", "refunded")):
        refund = plain_refund(aftersend_operation=str(operation.pk), status=status)
        assert tell(plain_body(f"evt_{number}", refund)).status == 200
    work(rung)
    assert state_of(operation) == states.UNKNOWN
    assert balance_of() == (7900, 0, 5000)
    assert not ProviderRefund.objects.exists()
    assert Evidence.objects.filter(operation=operation, kind="notice").count() == 4


def test_a_lookup_that_ran_when_the_notice_came_does_not_count(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    number = lookup.take_number(operation.pk)
    assert number == 1
    told_of(provider)
    rung.clear()
    assert notices.apply(Notice.objects.get().pk) == "asked"
    running = Operation.objects.select_related("payment").get(pk=operation.pk)
    reconciler.conclude(operation.pk, lookup.ask(running, number))
    notices.after_lookup(operation.pk)
    assert Notice.objects.get().applied_at is None
    assert Notice.objects.get().lookup_after == 1
    work(rung)
    assert lookups(operation) == [1, 2]
    assert Notice.objects.get().outcome == "looked_up"


def test_no_bell_is_needed_the_sweep_finds_what_was_stored(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    told_of(provider)
    rung.clear()
    sweep(rung)
    assert Notice.objects.get().applied_at is None, "the bell has two seconds"
    sweep(rung, seconds=3)
    assert (state_of(operation), Notice.objects.get().outcome) == (states.SUCCEEDED, "looked_up")


def test_while_lookups_cannot_tell_the_news_is_not_forgotten(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    provider.control("POST", f"/refunds/{provider.refunds()[0]['id']}/status", {"to": "failed"})
    provider.fault("lookup_503", on="list", times=2)
    told_of(provider)
    rung[:] = [bell for bell in rung if "apply" in bell[0]]
    work(rung)
    assert Notice.objects.get().applied_at is None
    sweep(rung, seconds=3)
    assert Notice.objects.get().applied_at is None
    sweep(rung, seconds=20)
    assert Notice.objects.get().outcome == "looked_up"
    assert open_reasons(operation) or state_of(operation) == states.RETURNED


def test_a_list_that_lags_is_not_believed_about_what_was_told(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast, "plain-lagged")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    provider.advance(5)
    provider.control("POST", f"/refunds/{provider.refunds()[0]['id']}/status", {"to": "failed"})
    rung.clear()
    told_of(provider, account="plain-lagged")
    work(rung)
    assert Notice.objects.get().applied_at is None, "the list shows how it was three seconds ago"
    provider.advance(5)
    sweep(rung, seconds=3)
    assert Notice.objects.get().outcome == "looked_up"
    assert open_reasons(operation) or state_of(operation) == states.RETURNED


def test_what_was_told_and_never_shows_becomes_a_case(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    rung.clear()
    refund = plain_refund(aftersend_operation=str(operation.pk), id="rf_nowhere", status="failed")
    tell(plain_body("evt_1", refund))
    work(rung)
    notice = Notice.objects.get()
    assert notice.applied_at is None
    let_pass(901)
    sweep(rung, seconds=3)
    assert open_reasons(operation) == ["mismatch"]
    assert "rf_nowhere" in Case.objects.get().because
    assert state_of(operation) == states.SUCCEEDED


def test_what_was_told_as_it_is_booked_asks_nobody_while_lookups_are_down(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    provider.fault("lookup_503", on="list", times=None)
    provider.fault("lookup_503", on="retrieve", times=None)
    rung.clear()
    told_of(provider)
    work(rung)
    let_pass(901)
    sweep(rung, seconds=3)
    assert open_reasons(operation) == []
    assert Notice.objects.get().applied_at is None, "a lookup that starts after it is still due"


def test_news_of_money_that_moved_stop_a_send_that_was_about_to_begin(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    rung.clear()
    tell(plain_body("evt_1", plain_refund(aftersend_operation=str(operation.pk))))
    work(rung)
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert open_reasons(operation) == ["contradiction"]
    assert [call for call in provider.calls() if call["on"] == "create"] == []


def test_a_lookup_of_what_waits_to_be_sent_leaves_it_due(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    rung.clear()
    refund = plain_refund(aftersend_operation=str(operation.pk), status="failed")
    tell(plain_body("evt_1", refund))
    work(rung)
    assert lookups(operation)
    assert str(operation.pk) in set(dispatch.ready(batch_max=10))
    assert dispatch.send(str(operation.pk)) == "confirmed"


@pytest.mark.parametrize("told", [True, False])
def test_no_list_proves_absence_against_what_a_verified_notice_tells(
    provider: SandboxProcess, cast: Cast, rung: Rung, told: bool
) -> None:
    operation = authorized(provider, cast, "plain-nokeys")
    provider.fault("drop_before_commit", account="plain-nokeys")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    if told:
        refund = plain_refund(aftersend_operation=str(operation.pk))
        assert tell(plain_body("evt_1", refund), account="plain-nokeys").status == 200
        rung[:] = [bell for bell in rung if "notice" in bell[0]]
        work(rung)
    let_pass(120)
    provider.advance(120)
    reconciler.look_up(operation.pk)
    assert (state_of(operation) == states.UNKNOWN) is told
    if told:
        assert balance_of() == (7900, 0, 5000)


def test_the_page_of_the_operation_shows_what_was_told(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    rung.clear()
    told_of(provider)
    work(rung)
    evidence = Evidence.objects.get(operation=operation, kind="notice")
    page = text(signed_in(cast.omar).get(f"/operations/{operation.pk}?evidence={evidence.pk}"))
    assert "Notice: refund.updated" in page
    assert "only a lookup decides" in page
    assert "evt_1" in page
