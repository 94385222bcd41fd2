"""The way out of a quarantine: what is missing is said, found out by itself, and two people lift it."""

from __future__ import annotations

from functools import cache

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from reconciliation import account_sweep, quarantine, reconciler
from refunds import dispatch
from refunds.domain.contract import UNKNOWN_FACT
from refunds.domain.errors import Refusal
from refunds.ledger.sending import begin_quarantine
from refunds.models import Operation, Quarantine
from refunds.providers import registry
from refunds.providers.plain_contracts import CONTRACTS
from tests import build
from tests.bugs.history import let_pass
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def _begun() -> Quarantine:
    """A minute ago: whatever had been sent by then has landed and shows."""
    begin_quarantine("The database does not know a send that it permitted.", {})
    let_pass(60)
    return Quarantine.objects.get()


def _uncertain(provider: SandboxProcess, cast: Cast, account: str) -> Operation:
    provider.payment(account=account)
    build.order(account=account)
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    provider.fault("drop_after_commit", account=account)
    dispatch.send(str(operation.pk))
    return operation


def call_account_lists() -> None:
    account_sweep.ring_for_due(timezone.now())
    account_sweep.sweep_account("plain-main")


def _missing() -> list[str]:
    return [each.says for each in quarantine.missing(Quarantine.objects.get())]


def test_what_is_uncertain_is_looked_up_before_anything_is_sent_again(
    provider: SandboxProcess, cast: Cast, rung: list[tuple[str, str]]
) -> None:
    operation = _uncertain(provider, cast, "plain-main")
    _begun()
    listed, looked = _missing()
    assert listed.startswith("The refunds of plain-main since ")
    assert looked == "1 uncertain refund of plain-main was not looked up since it began."
    assert quarantine.tend(timezone.now()) == 2
    assert ("reconciliation.tasks.look_up", str(operation.pk)) in rung
    call_account_lists()
    assert _missing() == [looked]
    reconciler.look_up(operation.pk)
    assert _missing() == []
    assert quarantine.tend(timezone.now()) == 0


def test_a_lookup_that_cannot_tell_is_no_lookup(provider: SandboxProcess, cast: Cast) -> None:
    operation = _uncertain(provider, cast, "plain-main")
    _begun()
    provider.fault("lookup_503", on="list")
    reconciler.look_up(operation.pk)
    assert "1 uncertain refund of plain-main was not looked up since it began." in _missing()


def test_an_account_without_a_list_is_compared_by_hand_and_its_unknowns_have_their_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = _uncertain(provider, cast, "plain-blind")
    _begun()
    by_hand, looked = quarantine.missing(Quarantine.objects.get())
    assert by_hand.by_hand
    assert "plain-blind has no list that can be read here" in by_hand.says
    assert not looked.by_hand
    with pytest.raises(CommandError, match="plain-blind was not looked up"):
        call_command("lift_quarantine", by="ines", with_="adam", by_hand=["plain-blind"])
    reconciler.look_up(operation.pk)  # there is nothing to look up: it becomes a case
    with pytest.raises(CommandError, match="has no list that can be read here"):
        call_command("lift_quarantine", by="ines", with_="adam")
    call_command("lift_quarantine", by="ines", with_="adam", by_hand=["plain-blind"])
    lifted = Quarantine.objects.get()
    assert (lifted.lifted_by, lifted.lifted_with) == ("ines", "adam")
    assert lifted.by_hand == ["plain-blind"]


def test_where_nobody_says_how_late_a_request_without_a_key_may_land_a_person_compares(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its list is read all the same; a second send of what lands later would pay twice."""
    boundless = CONTRACTS["plain-nokeys"].with_changes(flight_max=UNKNOWN_FACT)
    monkeypatch.setitem(CONTRACTS, "plain-nokeys", boundless)
    monkeypatch.setattr(registry, "accounts", cache(registry.accounts.__wrapped__))
    build.order(account="plain-nokeys")
    _begun()
    account_sweep.ring_for_due(timezone.now())
    quarantine.tend(timezone.now())
    account_sweep.sweep_account("plain-nokeys")
    [left] = quarantine.missing(Quarantine.objects.get())
    assert left.by_hand
    assert left.says.startswith("plain-nokeys does not say how late a request may still land.")
    call_command("lift_quarantine", by="ines", with_="adam", by_hand=["plain-nokeys"])


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("ines", "ines", "two_people_needed"),
        ("ines", "olga", "two_people_needed"),
        ("adam", "ava", "two_people_needed"),
        ("ines", "omar", "role_missing"),
        ("ines", "adam", ""),
        ("adam", "olga", ""),
    ],
)
def test_an_ops_lead_and_an_admin_lift_it_together(
    cast: Cast, first: str, second: str, code: str
) -> None:
    _begun()
    quarantine.ask(by=cast.people[first], by_hand=frozenset())
    if not code:
        quarantine.lift(by=cast.people[second])
        assert not Quarantine.objects.filter(lifted_at=None).exists()
        return
    with pytest.raises(Refusal) as refused:
        quarantine.lift(by=cast.people[second])
    assert refused.value.code == code
    assert Quarantine.objects.filter(lifted_at=None).exists()


def test_nobody_lifts_what_nobody_asked_for_and_nobody_without_the_role_asks(cast: Cast) -> None:
    with pytest.raises(Refusal, match="There is no quarantine"):
        quarantine.ask(by=cast.ines, by_hand=frozenset())
    _begun()
    with pytest.raises(Refusal, match="Nobody has asked"):
        quarantine.lift(by=cast.ines)
    with pytest.raises(Refusal, match="neither an ops lead nor an admin"):
        quarantine.ask(by=cast.ben, by_hand=frozenset())
