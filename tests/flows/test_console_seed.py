"""The demo's filling: once, by the product's own verbs, and the sandbox knows the same payments."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from refunds.credentials import authenticate
from refunds.domain import states
from refunds.models import Operation, Order, Payment, Person
from tests.flows.console import text
from tests.provider_process import CONTROL_TOKEN, SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run_dir(settings: Any, tmp_path: Path) -> Path:
    settings.ENV = settings.ENV.model_copy(
        update={"run_dir": tmp_path, "sandbox_token": CONTROL_TOKEN}
    )
    return tmp_path


def _seed() -> str:
    said = StringIO()
    call_command("seed_demo", stdout=said)
    return said.getvalue()


def _kept(run_dir: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((run_dir / "demo.json").read_text())
    return kept


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

    found = (Order.objects.count(), Operation.objects.count(), Person.objects.count())
    assert found[0] == 25
    assert found[1] >= 12
    again = _seed()
    assert "0 orders, 0 refunds" in again
    assert (Order.objects.count(), Operation.objects.count(), Person.objects.count()) == found
    assert _kept(run_dir) == kept


def test_every_payment_of_the_demo_stands_in_the_sandboxes_book(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
    book = {
        (each["account"], each["ref"], each["currency"], each["captured_minor"])
        for each in provider.book()["payments"]
    }
    ours = set(Payment.objects.values_list("provider_account", "ref", "currency", "captured_minor"))
    assert ours <= book


def test_the_demo_holds_refunds_in_different_states_and_a_lost_answer_in_waiting(
    provider: SandboxProcess, run_dir: Path
) -> None:
    _seed()
    by_state = set(Operation.objects.values_list("state", flat=True))
    assert by_state == {
        states.AWAITING_APPROVAL,
        states.AUTHORIZED,
        states.DENIED,
        states.REJECTED,
    }
    assert set(Operation.objects.values_list("tier", flat=True)) >= {1, 2, 3}
    assert {"JPY", "KWD"} <= set(Operation.objects.values_list("currency", flat=True))
    markers = {
        rule["match"].get("marker")
        for rule in provider.control("GET", "/faults")["rules"]
        if rule["fault"] == "drop_after_commit"
    }
    lost = Operation.objects.get(order__ref="A-1052")
    assert lost.state == states.AUTHORIZED
    assert str(lost.pk) in markers


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
