"""Where a provider cannot be asked, its verified notices decide: what exists, never what does not."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from django.utils import timezone

from reconciliation import notices, reconciler
from reconciliation.lookup import Looked, take_number
from reconciliation.matching import Finding, Verdict
from reconciliation.models import Notice
from refunds import dispatch
from refunds.domain import states
from refunds.models import Evidence, Operation, ProviderRefund
from tests.bugs.steps import answer_lost, authorized, balance_of, events_of, open_reasons, state_of
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.notices.telling import plain_body, plain_refund, tell
from tests.notices.work import Rung, sweep, told_of, work
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
HOOKS = "plain-hooks"


@pytest.fixture
def lost(provider: SandboxProcess, cast: Cast, rung: Rung) -> Operation:
    """Executed, and nobody heard; this account cannot be asked."""
    operation = answer_lost(provider, cast, HOOKS)
    rung.clear()
    return operation


def refund_of(operation: Operation, **fields: object) -> dict[str, object]:
    return plain_refund(aftersend_operation=str(operation.pk), **fields)


def tell_all(rung: Rung, *bodies: bytes) -> None:
    for body in bodies:
        assert tell(body, account=HOOKS).status == 200
        work(rung)


def test_a_verified_notice_settles_what_nobody_can_ask_about(
    provider: SandboxProcess, lost: Operation, rung: Rung
) -> None:
    seen = len(provider.calls())
    assert told_of(provider, account=HOOKS).status == 200
    work(rung)
    assert state_of(lost) == states.SUCCEEDED
    assert balance_of() == (0, 7900, 5000)
    [refund] = provider.refunds(HOOKS)
    assert ProviderRefund.objects.get().ref == refund["id"]
    evidence = Evidence.objects.get(kind="notice")
    assert (evidence.lookup_no, evidence.facts["verdict"]) == (1, "match")
    assert lost.events.get(event="found_succeeded").evidence_id == evidence.pk
    assert Notice.objects.get().outcome == "proof"
    assert len(provider.calls()) == seen


def test_a_proof_is_shown_as_one(
    provider: SandboxProcess, cast: Cast, lost: Operation, rung: Rung
) -> None:
    told_of(provider, account=HOOKS)
    work(rung)
    page = text(signed_in(cast.omar).get(f"/operations/{lost.pk}"))
    assert "Match: the provider holds this refund" in page
    assert "Signed by the provider under the id evt_1." in page


@pytest.mark.parametrize("order", list(itertools.permutations(("pending", "succeeded"))))
def test_a_status_on_the_way_and_its_end_are_one_story_in_both_orders(
    lost: Operation, rung: Rung, order: tuple[str, ...]
) -> None:
    for number, status in enumerate(order):
        tell_all(rung, plain_body(f"evt_{number}", refund_of(lost, status=status)))
    assert (state_of(lost), open_reasons(lost)) == (states.SUCCEEDED, [])


@pytest.mark.parametrize("order", list(itertools.permutations(("failed", "succeeded"))))
def test_two_ends_of_one_refund_are_for_a_person(
    lost: Operation, rung: Rung, order: tuple[str, ...]
) -> None:
    for number, status in enumerate(order):
        tell_all(rung, plain_body(f"evt_{number}", refund_of(lost, status=status)))
    assert open_reasons(lost) == ["mismatch"]
    assert "do not agree" in lost.cases.get().because


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({"amount_minor": 7800}, ["mismatch"]),
        ({"currency": "EUR"}, ["mismatch"]),
        ({"payment": "pi_other"}, ["mismatch"]),
        ({"amount_minor": None}, []),
        ({"currency": None}, []),
        ({"id": "pi_4821"}, []),
        ({"status": "refunded"}, ["mismatch"]),
    ],
)
def test_a_notice_that_is_not_all_ours_settles_nothing(
    lost: Operation, rung: Rung, changed: dict[str, object], reasons: list[str]
) -> None:
    tell_all(rung, plain_body("evt_1", refund_of(lost, **changed)))
    assert (state_of(lost), open_reasons(lost)) == (states.UNKNOWN, reasons)
    assert balance_of() == (7900, 0, 5000)
    if not reasons:
        assert Evidence.objects.get(kind="notice").facts["verdict"] == "cannot_tell"
        tell_all(rung, plain_body("evt_2", refund_of(lost)))
        assert state_of(lost) == states.SUCCEEDED


def test_two_refunds_of_one_operation_are_told_to_people_and_both_count(
    lost: Operation, rung: Rung
) -> None:
    tell_all(
        rung,
        plain_body("evt_1", refund_of(lost, id="rf_1", amount_minor=7900)),
        plain_body("evt_2", refund_of(lost, id="rf_2", amount_minor=7900)),
    )
    assert (state_of(lost), open_reasons(lost)) == (states.SUCCEEDED, ["duplicate"])
    assert balance_of() == (0, 15800, -2900)


def test_t26_no_notice_proves_that_there_is_no_refund(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = authorized(provider, cast, HOOKS)
    provider.fault("drop_before_commit", account=HOOKS)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    rung.clear()
    others = [
        plain_refund(id="rf_9", aftersend_operation="01900000-0000-7000-8000-000000000000"),
        plain_refund(id="rf_8", aftersend_operation=None),
        {},
    ]
    tell_all(rung, *(plain_body(f"evt_{no}", each) for no, each in enumerate(others)))
    sweep(rung, seconds=1000)
    assert state_of(operation) == states.UNKNOWN
    assert not Evidence.objects.filter(facts__verdict="absent").exists()
    assert events_of(operation)[-1] == "unanswered"


def test_a_second_message_under_a_known_id_moves_nothing_and_people_hear_of_it(
    lost: Operation, rung: Rung
) -> None:
    tell_all(rung, plain_body("evt_1", refund_of(lost, status="pending")))
    assert state_of(lost) == states.PENDING
    tell_all(rung, plain_body("evt_1", refund_of(lost, status="succeeded")))
    assert state_of(lost) == states.PENDING
    assert open_reasons(lost) == ["mismatch"]
    assert Notice.objects.get(verdict="odd").outcome == "odd"
    tell_all(rung, plain_body("evt_2", refund_of(lost, status="succeeded")))
    assert state_of(lost) == states.SUCCEEDED


def test_a_proof_that_was_overtaken_by_a_later_number_decides_with_the_next(
    provider: SandboxProcess, lost: Operation, rung: Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_of(provider, account=HOOKS)
    rung.clear()
    honest = notices._told

    def while_another_decides(*arguments: object) -> Finding:
        found = honest(*arguments)  # type: ignore[arg-type]
        Operation.objects.filter(pk=lost.pk).update(lookup_started=2, lookup_applied=2)
        return found

    with monkeypatch.context() as racing:
        racing.setattr(notices, "_told", while_another_decides)
        assert notices.apply(Notice.objects.get().pk) == "overtaken"
    assert state_of(lost) == states.UNKNOWN
    assert not Evidence.objects.filter(kind="notice").exists()
    Operation.objects.filter(pk=lost.pk).update(lookup_started=2)
    sweep(rung, seconds=20)
    assert state_of(lost) == states.SUCCEEDED


def test_an_older_finding_cannot_undo_what_a_notice_proved(
    provider: SandboxProcess, lost: Operation, rung: Rung
) -> None:
    number = take_number(lost.pk)
    told_of(provider, account=HOOKS)
    work(rung)
    assert (state_of(lost), number) == (states.SUCCEEDED, 1)
    older = Looked(
        no=1,
        evidence_id=Evidence.objects.get(kind="notice").pk,
        finding=Finding(verdict=Verdict.CANNOT_TELL, because="it is older"),
        started_at=timezone.now() - timedelta(seconds=5),
    )
    assert reconciler.conclude(lost.pk, older) == "overtaken"
    assert state_of(lost) == states.SUCCEEDED
