"""The small things that keep happening in a running demo: what they do, and where they end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch, feed
from refunds.domain import states
from refunds.models import Event, Operation, Order, OrderMove, Proposal
from review.demo import life as demo_life
from review.demo.life import Life
from review.demo.shop import Control, sandbox_address
from tests import build
from tests.cast import Cast
from tests.provider_process import CONTROL_TOKEN, SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def life(provider: SandboxProcess, cast: Cast, settings: Any) -> Life:
    settings.POLICY_FILE = settings.BASE_DIR / "review" / "demo" / "policy.toml"
    for number in range(6):
        ref = f"51{number:02d}"
        provider.payment(f"pi_{ref}", 20_000)
        build.order(ref, captured_minor=20_000)
    control = Control(sandbox_address(), CONTROL_TOKEN)
    return Life(control, cast.people, cast.agents)


def pulses(life: Life, count: int) -> None:
    """Each a minute after the one before, as the rows see it: what waits has been read by then."""
    for number in range(count):
        life.pulse(timezone.now() + timedelta(minutes=number))


def test_a_pulse_lets_an_agent_propose_and_a_later_one_lets_a_lead_decide(
    life: Life, provider: SandboxProcess
) -> None:
    pulses(life, 1)
    [operation] = Operation.objects.all()
    assert operation.state == states.AWAITING_APPROVAL
    assert operation.agent is not None
    life.pulse(timezone.now() + timedelta(minutes=1))
    operation.refresh_from_db()
    assert operation.state == states.AUTHORIZED
    approved = Event.objects.get(operation=operation, event="approved")
    assert approved.actor == f"person:{'ben' if operation.agent.name == 'Echo' else 'ada'}"


def test_an_answer_gets_lost_stays_unknown_for_a_while_and_is_found(
    life: Life, provider: SandboxProcess
) -> None:
    pulses(life, 2)  # the second one approves the first proposal and loses its answer
    operation = Operation.objects.get(state=states.AUTHORIZED)
    dispatch.send(str(operation.pk))
    operation.refresh_from_db()
    assert operation.state == states.UNKNOWN
    assert [each["aftersend_operation"] for each in provider.refunds()] == [operation.marker]
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    assert operation.state == states.UNKNOWN
    provider.advance(demo_life.LAG_SECONDS)
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    assert operation.state == states.SUCCEEDED


def test_few_wait_at_a_time_however_long_it_goes_on(
    life: Life, provider: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_life, "WAITING_MAX", 3)
    pulses(life, 12)
    waiting = Operation.objects.filter(state=states.AWAITING_APPROVAL).count()
    assert waiting <= 3
    assert Operation.objects.filter(state=states.AUTHORIZED).exists()


def test_nothing_more_is_asked_for_once_enough_was(
    life: Life, provider: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_life, "CALLS_MAX", 2)
    pulses(life, 6)
    assert Proposal.objects.filter(session_id=demo_life.SESSION).count() == 2


def test_the_shop_changes_orders_too(life: Life, provider: SandboxProcess) -> None:
    pulses(life, 3)
    changed = OrderMove.objects.filter(version__gt=1, cause__in=["feed", "external"])
    assert changed.count() == 1


def test_other_peoples_proposals_are_never_decided(
    life: Life, provider: SandboxProcess, cast: Cast
) -> None:
    operation = build.proposed(cast.echo, "5100", 777)
    pulses(life, 8)
    operation.refresh_from_db()
    assert operation.state == states.AWAITING_APPROVAL


def test_scenario_orders_and_orders_without_room_are_left_alone(
    life: Life, provider: SandboxProcess
) -> None:
    feed.upsert(
        feed.OrderSnapshot(
            ref="demo-answer-lost",
            currency="USD",
            payments=(
                feed.PaymentSnapshot(
                    ref="pi_demo-answer-lost",
                    provider_account="plain-main",
                    state="captured",
                    captured_minor=90_000,
                ),
            ),
        ),
        by="shop",
    )
    build.order("tiny", captured_minor=1_000)
    pulses(life, 8)
    touched = set(Operation.objects.values_list("order__ref", flat=True))
    assert touched
    assert touched <= set(Order.objects.filter(ref__startswith="51").values_list("ref", flat=True))


def test_it_slows_down_while_nobody_has_signed_in(
    life: Life, provider: SandboxProcess, cast: Cast
) -> None:
    now = timezone.now()
    assert not life.beat(now)
    assert not life.beat(now + timedelta(seconds=60))
    assert life.beat(now + timedelta(seconds=420))
    cast.cleo.last_login = now + timedelta(seconds=421)
    cast.cleo.save(update_fields=["last_login"])
    assert not life.beat(now + timedelta(seconds=425))
    assert life.beat(now + timedelta(seconds=461))
