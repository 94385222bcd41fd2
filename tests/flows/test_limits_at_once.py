"""Limits that sum up hold for proposals that come at the same moment, each on an order of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from refunds import approvals, policies
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Agent, Approval, Operation
from tests import build
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
CALLERS = 12


def _propose_at_once(agents: list[Agent], amount_minor: int, customers: list[str]) -> None:
    for number, customer in enumerate(customers):
        build.order(f"S{number}", captured_minor=50_000, customer_ref=customer)
    gate = Barrier(len(customers))

    def go(number: int) -> None:
        gate.wait()
        try:
            build.proposed(agents[number % len(agents)], f"S{number}", amount_minor - number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(customers)) as pool:
        list(pool.map(go, range(len(customers))))


def test_an_agents_day_is_not_exceeded_by_asking_all_at_once(cast: Cast) -> None:
    _propose_at_once([cast.echo], 19_900, [f"cus_{number}" for number in range(CALLERS)])
    admitted = Operation.objects.exclude(state=states.DENIED)
    assert sum(each.amount_minor for each in admitted) <= 200_000
    assert Operation.objects.count() == CALLERS


def test_parts_for_one_customer_add_up_for_the_tier_whoever_proposes_them(cast: Cast) -> None:
    _propose_at_once([cast.echo, cast.foxtrot], 9_000, ["cus_204"] * CALLERS)
    tiers = sorted(Operation.objects.values_list("tier", flat=True))
    assert tiers == [1, *[2] * 10, 3], "90, 180, ... up to over 1 000, as if one after the other"


def test_the_approvals_of_an_hour_are_counted_one_after_the_other(
    cast: Cast, settings: Any, tmp_path: Path
) -> None:
    usual = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(
        usual.replace("approvals_per_person_hour_max = 60", "approvals_per_person_hour_max = 2")
    )
    policies.current.cache_clear()
    waiting = []
    for number in range(8):
        build.order(f"P{number}")
        waiting.append(build.proposed(cast.echo, f"P{number}", 100 + number))
    gate = Barrier(len(waiting))

    def go(operation: Operation) -> None:
        shown = build.shown(operation, tick=True)
        gate.wait()
        try:
            with suppress(Refusal):
                approvals.approve(operation.pk, cast.ben, shown)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(waiting)) as pool:
        list(pool.map(go, waiting))
    assert Approval.objects.count() == 2
