"""What the demo's filling holds, told once for all who only read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from refunds.credentials import authenticate
from refunds.domain import states
from refunds.models import Agent, Operation, Order, Payment, Person
from review.demo import scenarios, wishes
from review.demo.past.fortnight import Fortnight
from tests.provider_process import CONTROL_TOKEN, ROOT, SandboxProcess

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Filled:
    """What the filling printed, what it kept for the next start, and its provider."""

    said: str
    kept: dict[str, Any]
    provider: SandboxProcess


@pytest.fixture(scope="module")
def filled(
    django_db_setup: None,
    django_db_blocker: Any,
    sandbox_process: SandboxProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Filled]:
    """Committed, so that every test of this module finds it; each one's own changes are undone."""
    run_dir = tmp_path_factory.mktemp("demo")
    environment = {"run_dir": run_dir, "sandbox_token": CONTROL_TOKEN}
    sandbox_process.reset()
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(settings, "ENV", settings.ENV.model_copy(update=environment))
        patch.setattr(settings, "POLICY_FILE", ROOT / "review" / "demo" / "policy.toml")
        said = StringIO()
        call_command("seed_demo", stdout=said)
        kept = json.loads((run_dir / "demo.json").read_text())
        yield Filled(said.getvalue(), kept, sandbox_process)
        call_command("flush", verbosity=0, interactive=False)


def test_the_provider_holds_every_payment_of_the_shop(filled: Filled) -> None:
    book = {
        (each["account"], each["ref"], each["currency"], each["captured_minor"])
        for each in filled.provider.book()["payments"]
    }
    ours = set(Payment.objects.values_list("provider_account", "ref", "currency", "captured_minor"))
    assert ours == book


def test_everything_is_told_at_whatever_hour_the_demo_starts(filled: Filled) -> None:
    people = {each.username: each for each in Person.objects.all()}
    agents = {each.name: each for each in Agent.objects.all()}
    for hours in range(0, 14 * 24, 61):
        now = datetime(2026, 11, 23, tzinfo=UTC) + timedelta(hours=hours, minutes=hours % 60)
        rows = Fortnight(now, people, agents).played()
        given = {each.approver.username for past in rows.operations for _, each in past.approvals}
        assert given == {"ada", "ben", "cleo", "fay"}
        assert {past.row.tier for past in rows.operations} == {1, 2, 3}
        said_no = {each.detail["code"] for each in rows.events if each.event == "rejected"}
        assert said_no == {"amount_wrong", "not_owed", "proof_missing", "order_wrong"}
        found = {each.facts["verdict"] for each in rows.evidence if each.kind == "lookup"}
        assert found >= {"match", "absent", "cannot_tell", "differs"}


def test_the_fortnight_lies_in_the_fourteen_days_before_the_start_and_mostly_in_office_hours(
    filled: Filled,
) -> None:
    now = timezone.now()
    at = list(
        Operation.objects.filter(proposals__session_id="demo-past").values_list(
            "created_at", flat=True
        )
    )
    assert min(at) > now - timedelta(days=14, minutes=5)
    assert len({each.date() for each in at}) >= 12
    office = sum(8 <= each.hour < 18 for each in at)
    assert len(at) * 0.8 < office < len(at)


def test_customers_have_more_than_one_order_with_lines_facts_and_links(filled: Filled) -> None:
    orders = Order.objects.filter(operations__proposals__session_id="demo-past").distinct()
    customers = [each.customer_ref for each in orders]
    assert len(set(customers)) < len(customers)
    for each in orders:
        assert each.lines
        assert {"label", "value", "source", "at"} <= set(each.facts[0])
        assert set(each.links) == {"order", "ticket"}
    assert orders.filter(version__gte=4).exists()


def test_the_morning_holds_a_lost_answer_in_waiting_and_different_ends(filled: Filled) -> None:
    morning = Operation.objects.filter(proposals__session_id=wishes.SESSION)
    assert set(morning.values_list("state", flat=True)) == {
        states.AWAITING_APPROVAL,
        states.AUTHORIZED,
        states.DENIED,
        states.REJECTED,
    }
    assert set(morning.values_list("tier", flat=True)) >= {1, 2, 3}
    markers = {
        rule["match"].get("marker")
        for rule in filled.provider.control("GET", "/faults")["rules"]
        if rule["fault"] == "drop_after_commit"
    }
    lost = Operation.objects.get(order__ref="A-1052")
    assert lost.state == states.AUTHORIZED
    assert str(lost.pk) in markers


def test_every_scenario_order_is_there_with_its_payment(filled: Filled) -> None:
    for each in scenarios.SCENARIOS:
        assert each.name in filled.said
        payment = Payment.objects.get(order__ref=each.name)
        assert (payment.ref, payment.provider_account) == (each.payment_ref, each.account)


def test_the_agents_have_a_key_each_and_the_feed_one_of_its_own(filled: Filled) -> None:
    keys = filled.kept["keys"]
    echo, shop = authenticate(keys["Echo"]), authenticate(keys["Shop"])
    assert (echo.agent.owner.username, sorted(echo.scopes)) == (
        "ada",
        ["refund:propose", "refund:read"],
    )
    assert shop.scopes == ["order:write"]
    assert authenticate(keys["Foxtrot"]).agent.owner.username == "ben"
