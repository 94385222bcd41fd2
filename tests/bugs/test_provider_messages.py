"""Public reports of messages from providers: B066 to B084, and what others ask of messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from reconciliation import inbox, notices, unmatched
from reconciliation.models import Case, Notice
from refunds import dispatch
from refunds.domain import states
from refunds.ledger import RECONCILER, lock, release, transition
from refunds.models import Evidence, ProviderRefund
from refunds.providers import registry
from tests import build
from tests.bugs.history import let_pass
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    creates,
    events_of,
    open_reasons,
    state_of,
)
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.notices.telling import (
    plain_body,
    plain_refund,
    secret_of,
    signature,
    stripe_body,
    tell,
)
from tests.notices.work import Rung, sweep, told_of, work
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
HOOKS = "plain-hooks"


@pytest.mark.parametrize("account", ["plain-main", HOOKS])
def test_b003_a_verified_message_that_it_was_refunded_is_not_dropped_by_a_final_state(
    provider: SandboxProcess, cast: Cast, rung: Rung, account: str
) -> None:
    operation = answer_lost(provider, cast, account)
    with transaction.atomic():
        locked = lock(operation.pk)
        release(locked, by=RECONCILER)
        transition(locked.operation, "found_failed", by=RECONCILER)
    rung.clear()
    told_of(provider, account=account)
    rung[:] = [bell for bell in rung if "notice" in bell[0]]
    work(rung)
    assert events_of(operation)[-2:] == ["found_failed", "contradicted"]
    assert open_reasons(operation) == ["contradiction"]
    assert balance_of() == (7900, 0, 5000)
    assert operation.provider_refunds.exists()


def test_b007_an_id_that_only_a_message_carried_is_stored_and_the_trail_says_how(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast, HOOKS)
    rung.clear()
    assert not operation.provider_refunds.exists()
    told_of(provider, account=HOOKS)
    work(rung)
    assert state_of(operation) == states.SUCCEEDED
    [refund] = provider.refunds(HOOKS)
    assert operation.provider_refunds.get().ref == refund["id"]
    moved = operation.events.get(event="found_succeeded")
    learnt = Evidence.objects.get(pk=moved.evidence_id or 0)
    assert (learnt.kind, learnt.facts["event_id"]) == ("notice", "evt_1")
    assert moved.detail["ref"] == refund["id"]
    assert "Notice: refund.updated" in text(signed_in(cast.omar).get(f"/operations/{operation.pk}"))


def test_b063_a_verified_message_without_an_amount_is_not_applied_and_a_lookup_is_asked(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("lookup_503", on="list", times=1)
    rung.clear()
    told_of(provider, amount_minor=None)
    work(rung)
    assert state_of(operation) == states.UNKNOWN
    assert Notice.objects.get().applied_at is None
    assert balance_of() == (7900, 0, 5000)
    sweep(rung, seconds=20)
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 7900, 5000))


def test_b066_a_notice_before_our_own_answer_leads_to_one_refund_in_both_books(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    provider.fault("hold")
    sent: list[str] = []

    def send() -> None:
        sent.append(dispatch.send(str(operation.pk)))
        connection.close()

    call = threading.Thread(target=send)
    call.start()
    provider.wait_for_hold()
    rung.clear()
    told_of(provider)
    work(rung)
    assert call.is_alive()
    provider.release()
    call.join()
    sweep(rung, seconds=20)
    assert state_of(operation) == states.SUCCEEDED
    assert len(provider.refunds()) == ProviderRefund.objects.count() == 1
    assert balance_of() == (0, 7900, 5000)
    assert Notice.objects.get().outcome == "looked_up"
    assert [each for each in events_of(operation) if "succeeded" in each or "confirmed" in each]


def test_b068_a_message_of_a_part_refunded_elsewhere_counts_it_and_puts_it_into_review(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    provider.payment(captured_minor=1000)
    build.order(captured_minor=1000)
    external = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 200}
    provider.control("POST", "/external_refund", external)
    told_of(provider)
    work(rung)
    assert balance_of() == (0, 200, 800)
    assert Case.objects.get(operation=None).reasons == ["external"]
    assert Notice.objects.get().outcome == "outside"


@pytest.mark.parametrize("moment", ["stored", "matched", "asked"])
def test_b070_a_crash_at_any_point_after_the_store_is_made_good_by_a_repeat_or_the_sweep(
    provider: SandboxProcess,
    cast: Cast,
    rung: Rung,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    operation = answer_lost(provider, cast)
    told_of(provider)
    rung.clear()
    notice = Notice.objects.get()
    assert (notice.stored_at is None, notice.applied_at) == (False, None)
    if moment == "asked":
        assert notices.apply(notice.pk) == "asked"
        rung.clear()
    elif moment == "matched":
        with monkeypatch.context() as crash:
            crash.setattr(notices, "_seen", _dies)
            with pytest.raises(_Killed):
                notices.apply(notice.pk)
    told_of(provider)
    assert Notice.objects.get().deliveries == 2
    assert rung == []
    sweep(rung, seconds=20)
    assert state_of(operation) == states.SUCCEEDED
    assert Notice.objects.get().outcome == "looked_up"
    assert Evidence.objects.filter(kind="notice").count() == 1


class _Killed(BaseException):
    """The worker is gone: no handler of the product hears of it."""


def _dies(*_: object) -> None:
    raise _Killed


def test_b072_without_a_database_the_answer_is_a_5xx_and_nothing_is_half_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = plain_body("evt_1", plain_refund())
    connection.close()
    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        away.setitem(connection.settings_dict, "PORT", "1")
        assert tell(body).status == 503
    connection.close()
    assert not Notice.objects.exists()
    assert tell(body).status == 200


def test_b074_a_notice_is_verified_when_it_comes_and_applied_however_late(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    told_of(provider)
    rung.clear()
    let_pass(600)
    assert timezone.now() - Notice.objects.get().signed_at > timedelta(seconds=590)
    sweep(rung, seconds=10)
    assert (state_of(operation), Notice.objects.get().outcome) == (states.SUCCEEDED, "looked_up")


def test_b076_a_stamp_from_the_future_is_refused_like_one_from_the_past() -> None:
    body = plain_body("evt_1", plain_refund())
    for hours in (1, -1):
        said = tell(body, signed_at=time.time() + hours * 3600)
        assert (said.status, said.body["code"]) == (400, "stale")
    assert not Notice.objects.exists()
    since = timezone.now() - timedelta(minutes=5)
    assert inbox.refused_since(since) == {("plain-main", "stale"): 2}


def test_b078_while_a_secret_is_changed_every_signature_and_both_secrets_are_tried(
    two_secrets: tuple[str, str],
) -> None:
    old, new = two_secrets
    for number, secrets in enumerate([(old,), (new,), ("some-other-secret", new), (new, old)]):
        body = plain_body(f"evt_{number}", plain_refund())
        assert tell(body, header=signature(body, *secrets)).status == 200
    body = plain_body("evt_9", plain_refund())
    assert tell(body, header=signature(body, "some-other-secret")).status == 400


@pytest.fixture
def two_secrets(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    old, new = secret_of("plain-main"), "the-secret-from-now-on"
    known = dict(registry.accounts())
    known["plain-main"] = replace(known["plain-main"], webhook_secrets=(new, old))
    monkeypatch.setattr(registry, "accounts", lambda: known)
    return old, new


def test_b080_a_message_of_the_other_mode_is_kept_as_foreign_and_says_nothing_here(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast, "stripe-main")
    rung.clear()
    shown = {
        "id": "re_9",
        "object": "refund",
        "payment_intent": "pi_4821",
        "amount": 7900,
        "currency": "usd",
        "status": "succeeded",
        "metadata": {"aftersend_operation": operation.marker},
    }
    assert tell(stripe_body("evt_1", shown, livemode=False), account="stripe-main").status == 200
    work(rung)
    notice = Notice.objects.get()
    assert (notice.verdict, notice.outcome) == ("foreign", "foreign")
    assert "mode test" in notice.because
    assert state_of(operation) == states.UNKNOWN
    assert not Evidence.objects.filter(kind="notice").exists()


def test_b080_an_answer_that_names_the_other_mode_cannot_tell(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("wrong_mode", on="list")
    told_of(provider)
    rung[:] = [bell for bell in rung if "notice" in bell[0]]
    work(rung)
    assert state_of(operation) == states.UNKNOWN
    finding = Evidence.objects.get(kind="lookup").facts
    assert finding["verdict"] == "cannot_tell"
    assert "mode test" in finding["because"]


def test_b082_a_payments_id_in_place_of_the_refunds_is_shown_with_candidates_and_not_guessed(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("lookup_503", on="list", times=None)
    rung.clear()
    told_of(provider, id="pi_4821", aftersend_operation=None)
    work(rung)
    let_pass(1000)
    rung.clear()
    sweep(rung)
    assert state_of(operation) == states.UNKNOWN
    assert not ProviderRefund.objects.exists()
    assert unmatched.candidates(Notice.objects.get()) == [operation]
    case = Case.objects.get(operation=None)
    assert case.reasons == ["unmatched_notice"]
    assert str(operation.pk) in case.because
    assert "tells of pi_4821" in text(signed_in(cast.omar).get("/unknown"))


def test_b084_a_running_total_of_a_charge_only_makes_us_look(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast, "stripe-main")
    rung.clear()
    charge = {"object": "charge", "id": "ch_1", "payment_intent": "pi_4821", "amount_refunded": 500}
    tell(stripe_body("evt_1", charge, type="charge.refunded"), account="stripe-main")
    work(rung)
    assert state_of(operation) == states.SUCCEEDED
    assert operation.provider_refunds.get().amount_minor == 7900
    assert Notice.objects.get().outcome == "looked_up"
    told = Evidence.objects.get(kind="notice")
    assert told.facts["candidates"] == []


def test_b085_a_message_days_later_that_it_failed_is_followed_by_a_look_and_a_case(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    let_pass(3 * 86_400)
    provider.advance(3 * 86_400)
    provider.control("POST", f"/refunds/{provider.refunds()[0]['id']}/status", {"to": "failed"})
    rung.clear()
    told_of(provider)
    work(rung)
    assert state_of(operation) == states.RETURNED
    assert open_reasons(operation)
    assert balance_of() == (0, 0, 12900)
    assert Notice.objects.get().outcome == "looked_up"


def test_b093_with_notices_switched_off_for_the_whole_run_the_end_is_the_same(
    provider: SandboxProcess, cast: Cast, run_schedule: Callable[[], None]
) -> None:
    operation = answer_lost(provider, cast)
    provider.control("POST", "/notices", {"deliver": "never"})
    let_pass(3 * 86_400)
    run_schedule()
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 7900, 5000))
    assert not Notice.objects.exists()


def test_sequence_1_message_before_the_lookup_a_lookup_that_lags_and_repeats_with_restarts(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    """Between all the steps every message of the queue is lost with its worker."""
    operation = answer_lost(provider, cast)
    provider.fault("list_lag", on="list", seconds=60, times=None)
    told_of(provider)
    rung.clear()
    sweep(rung, seconds=3)
    assert state_of(operation) == states.UNKNOWN, "the list is empty still, and that is no proof"
    for _ in range(2):
        told_of(provider)
        rung.clear()
    assert Notice.objects.get().deliveries == 3
    assert Notice.objects.get().applied_at is None
    provider.advance(61)
    sweep(rung, seconds=30)
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 7900, 5000))
    assert Notice.objects.get().outcome == "looked_up"
    assert len(creates(provider)) == len(provider.refunds()) == 1
