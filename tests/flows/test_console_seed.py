"""The demo's filling: a fortnight and a morning, once, and the sandbox's book agrees with it."""

from __future__ import annotations

import json
import tomllib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from reconciliation.models import Case
from refunds import dispatch
from refunds.domain import states
from refunds.domain.rejection import REJECTION_CODES
from refunds.models import (
    Approval,
    Event,
    Evidence,
    Operation,
    Order,
    OrderMove,
    Person,
)
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
