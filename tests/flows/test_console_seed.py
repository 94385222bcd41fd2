"""The demo's filling: a fortnight and a morning, once, and the sandbox's book agrees with it."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from reconciliation.models import Case
from refunds import dispatch
from refunds.credentials import authenticate
from refunds.domain import states
from refunds.domain.rejection import REJECTION_CODES
from refunds.models import (
    Agent,
    Approval,
    Event,
    Evidence,
    Operation,
    Order,
    OrderMove,
    Payment,
    Person,
)
from review.demo import scenarios, wishes
from review.demo.past.fortnight import Fortnight
from tests.audit_book import audit, is_clean
from tests.flows.console import text
from tests.provider_process import CONTROL_TOKEN, ROOT, SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

# A proposal is judged in the transaction that stores it: nothing ever rests there.
AT_REST = set(states.STATES) - {states.PROPOSED}


@pytest.fixture
def run_dir(settings: Any, tmp_path: Path) -> Path:
    settings.ENV = settings.ENV.model_copy(
        update={"run_dir": tmp_path, "sandbox_token": CONTROL_TOKEN}
    )
    settings.POLICY_FILE = ROOT / "review" / "demo" / "policy.toml"
    return tmp_path


def _seed() -> str:
    said = StringIO()
    call_command("seed_demo", stdout=said)
    return said.getvalue()


def _kept(run_dir: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((run_dir / "demo.json").read_text())
    return kept


def _counts() -> tuple[int, int, int]:
    return Order.objects.count(), Operation.objects.count(), Person.objects.count()


def _audited(provider: SandboxProcess, settings: Any) -> dict[str, Any]:
    name = connection.settings_dict["NAME"]
    address = settings.DATABASE_URL.replace("/aftersend?", f"/{name}?")
    return audit(str(provider.book_file), address)


def test_the_demo_is_filled_once_and_says_how_to_sign_in(
    provider: SandboxProcess, run_dir: Path, client: Any
) -> None:
    said = _seed()
    kept = _kept(run_dir)
    assert kept["password"] in said
    assert "rosa" in said
    assert "no role: a stranger" in said
    assert kept["keys"]["Echo"] in said
    answer = client.post("/sign-in", {"username": "ada", "password": kept["password"]}, follow=True)
    assert "Waiting for my approval" in text(answer)

    found = _counts()
    assert 280 <= found[1] <= 340
    again = _seed()
    assert "0 refunds of the past fortnight, 0 orders, 0 refunds asked for" in again
    assert _counts() == found


def test_a_start_that_broke_off_after_the_book_was_told_tells_the_same_past(
    provider: SandboxProcess, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("review.demo.past.written.write", _no_database)
        with pytest.raises(ConnectionError):
            _seed()
    told = provider.book()["payments"]
    assert Operation.objects.count() == 0
    _seed()
    assert provider.book()["payments"][: len(told)] == told
    markers = {str(pk) for pk in Operation.objects.values_list("pk", flat=True)}
    assert {each["aftersend_operation"] for each in provider.refunds()} <= markers | {None}


def _no_database(rows: object) -> None:
    raise ConnectionError("the database went away")


def test_the_provider_holds_every_payment_of_the_shop(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
    book = {
        (each["account"], each["ref"], each["currency"], each["captured_minor"])
        for each in provider.book()["payments"]
    }
    ours = set(Payment.objects.values_list("provider_account", "ref", "currency", "captured_minor"))
    assert ours == book


def test_every_state_people_and_cases_are_there_and_the_book_agrees(
    provider: SandboxProcess, run_dir: Path, settings: Any
) -> None:
    _seed()
    past = Operation.objects.filter(proposals__session_id="demo-past")
    assert set(past.values_list("state", flat=True)) == AT_REST
    assert set(past.values_list("tier", flat=True)) == {1, 2, 3}
    assert set(past.values_list("currency", flat=True)) == {"USD", "EUR", "GBP", "JPY", "KWD"}
    assert set(past.values_list("provider_account", flat=True)) == {
        "plain-main",
        "stripe-main",
        "plain-blind",
    }
    reasons = {reason for case in Case.objects.all() for reason in case.reasons}
    assert reasons >= {"unresolved", "mismatch", "contradiction", "overdue_pending", "remedy"}
    assert Case.objects.filter(closed_at=None, owner__isnull=False).exists()
    assert Case.objects.filter(closed_at=None, owner__isnull=True).exists()
    assert {each.approver.username for each in Approval.objects.select_related("approver")} >= {
        "ada",
        "ben",
        "cleo",
        "fay",
    }
    verdicts = set(Evidence.objects.filter(kind="lookup").values_list("facts__verdict", flat=True))
    assert verdicts >= {"match", "absent", "cannot_tell", "differs"}
    assert past.exclude(stale_cause="").filter(state=states.AWAITING_APPROVAL).count() >= 4
    said_no = set(Event.objects.filter(event="rejected").values_list("detail__code", flat=True))
    assert said_no > {"amount_wrong"}
    assert said_no <= REJECTION_CODES.keys()
    moved = set(OrderMove.objects.values_list("cause", flat=True))
    assert moved >= {"first_seen", "feed", "reserved", "released", "external", "taken_back"}

    for each in Operation.objects.filter(state=states.AUTHORIZED, not_before__lte=timezone.now()):
        dispatch.send(str(each.pk))  # the morning's approvals, as the demo's workers do
    counts = _audited(provider, settings)
    assert is_clean(counts), counts["found"]
    assert counts["operations"] == Operation.objects.count()


def test_everything_is_told_at_whatever_hour_the_demo_starts(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
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
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
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


def test_customers_have_more_than_one_order_with_lines_facts_and_links(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
    orders = Order.objects.filter(operations__proposals__session_id="demo-past").distinct()
    customers = [each.customer_ref for each in orders]
    assert len(set(customers)) < len(customers)
    for each in orders:
        assert each.lines
        assert {"label", "value", "source", "at"} <= set(each.facts[0])
        assert set(each.links) == {"order", "ticket"}
    assert orders.filter(version__gte=4).exists()


def test_the_morning_holds_a_lost_answer_in_waiting_and_different_ends(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
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
        for rule in provider.control("GET", "/faults")["rules"]
        if rule["fault"] == "drop_after_commit"
    }
    lost = Operation.objects.get(order__ref="A-1052")
    assert lost.state == states.AUTHORIZED
    assert str(lost.pk) in markers


def test_every_scenario_order_is_there_with_its_payment(
    provider: SandboxProcess, run_dir: Path
) -> None:
    said = _seed()
    for each in scenarios.SCENARIOS:
        assert each.name in said
        payment = Payment.objects.get(order__ref=each.name)
        assert (payment.ref, payment.provider_account) == (each.payment_ref, each.account)


def test_the_agents_have_a_key_each_and_the_feed_one_of_its_own(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
    keys = _kept(run_dir)["keys"]
    echo, shop = authenticate(keys["Echo"]), authenticate(keys["Shop"])
    assert (echo.agent.owner.username, sorted(echo.scopes)) == (
        "ada",
        ["refund:propose", "refund:read"],
    )
    assert shop.scopes == ["order:write"]
    assert authenticate(keys["Foxtrot"]).agent.owner.username == "ben"


def test_the_demos_policy_is_the_policy_but_for_the_values_it_names() -> None:
    usual = tomllib.loads((ROOT / "policy.toml").read_text())
    demo = tomllib.loads((ROOT / "review" / "demo" / "policy.toml").read_text())
    for table, name in (
        (demo, "sum_window_seconds"),
        (demo, "approvals_per_person_hour_max"),
        (demo["agent"], "per_day_minor"),
        (demo["agent"], "per_order_count_24h"),
    ):
        original = usual["agent"] if table is demo["agent"] else usual
        assert table[name] != original[name]
        table[name] = original[name]
    assert demo == usual
