"""What stops sending: a refused credential, an outage, a missing key, a person. Nothing that is
known not to have been sent is ever called unknown, and work goes on afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from reconciliation import probes
from refunds import dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import sending
from refunds.models import Operation, ProviderAccount
from refunds.providers import registry
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def approved(provider: SandboxProcess, cast: Cast, count: int) -> list[Operation]:
    operations = []
    for number in range(count):
        ref = f"90{number:02}"
        provider.payment(f"pi_{ref}")
        build.order(ref)
        operations.append(
            build.authorized(cast.fay, cast.ben, order_ref=ref, amount_minor=100 + number)
        )
    return operations


def send_all(operations: list[Operation]) -> list[str]:
    return [dispatch.send(str(each.pk)) for each in operations]


def make_due() -> None:
    Operation.objects.filter(state=states.AUTHORIZED).update(not_before=None)


def states_of(operations: list[Operation]) -> set[str]:
    pks = [each.pk for each in operations]
    return set(Operation.objects.filter(pk__in=pks).values_list("state", flat=True))


def test_a_revoked_credential_pauses_the_account_at_once_and_makes_nothing_unknown(
    provider: SandboxProcess, cast: Cast
) -> None:
    operations = approved(provider, cast, 5)
    provider.configure("plain-main", api_key="another-key")
    assert send_all(operations) == ["not_executed", "waiting", "waiting", "waiting", "waiting"]
    account = ProviderAccount.objects.get(name="plain-main")
    assert account.pause_kind == "credential"
    assert account.pause_reason.startswith("Turned away before execution")
    assert states_of(operations) == {states.AUTHORIZED}
    provider.configure("plain-main", api_key="sandbox-key-plain-main")
    assert probes.probe_accounts(timezone.now() + timedelta(days=1)) == []  # only a person resumes
    call_command("resume", "plain-main", by="olga")
    make_due()
    assert send_all(operations) == ["confirmed"] * 5
    assert len(provider.refunds("plain-main")) == 5


def test_three_refused_connections_pause_the_account_until_a_probe_is_answered(
    provider: SandboxProcess, cast: Cast
) -> None:
    operations = approved(provider, cast, 5)
    provider.fault("refuse_connect", seconds=60)
    outcomes = send_all(operations)
    assert outcomes.count("unanswered") == 0
    assert outcomes == ["not_executed"] * 3 + ["waiting"] * 2
    account = ProviderAccount.objects.get(name="plain-main")
    assert account.pause_kind == "outage"
    assert account.probe_at is not None
    assert probes.probe_accounts(timezone.now()) == []  # not yet time to ask
    provider.clear_faults()
    assert probes.probe_accounts(account.probe_at) == ["plain-main"]
    make_due()
    assert send_all(operations) == ["confirmed"] * 5
    assert len(provider.refunds("plain-main")) == 5
    assert {each.attempt_count for each in Operation.objects.all()} == {1, 2}


@pytest.fixture
def keyless(provider: SandboxProcess, settings: Any, tmp_path: Path) -> Iterator[str]:
    """An account of a providers file for which no key is set."""
    settings.PROVIDERS_FILE = tmp_path / "providers.toml"
    settings.PROVIDERS_FILE.write_text(
        "[plain-shop]\n"
        'adapter = "plain"\n'
        f'base_url = "{provider.plain_base()}"\n'
        'contract = "plain-main"\n'
    )
    registry.accounts.cache_clear()
    yield "plain-shop"
    registry.accounts.cache_clear()


def test_a_missing_credential_sends_nothing_says_so_and_ends_by_itself(
    provider: SandboxProcess, keyless: str, cast: Cast, settings: Any
) -> None:
    provider.payment()
    build.order(account=keyless)
    operation = build.authorized(cast.fay, cast.ben)
    assert dispatch.send(str(operation.pk)) == "waiting"
    account = ProviderAccount.objects.get(name=keyless)
    assert account.pause_reason == "No credential is set for plain-shop. Nothing was sent."
    assert probes.probe_accounts(timezone.now()) == []
    operation.refresh_from_db()
    assert (operation.state, operation.attempt_count) == (states.AUTHORIZED, 0)
    assert provider.calls("plain-main") == []
    settings.PROVIDER_KEYS = {keyless: "sandbox-key-plain-main"}
    registry.accounts.cache_clear()
    assert probes.probe_accounts(timezone.now()) == [keyless]
    assert dispatch.send(str(operation.pk)) == "confirmed"


def test_the_big_stop_halts_every_claim_until_another_person_starts_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    operations = approved(provider, cast, 2)
    call_command("pause", all=True, by="omar", reason="the provider looks odd")
    assert send_all(operations) == ["waiting", "waiting"]
    assert dispatch.ready(10) == []
    assert provider.calls("plain-main") == []
    with pytest.raises(Refusal) as refused:
        sending.start_again(by="person:omar")
    assert refused.value.code == "started_by_the_same_person"
    with pytest.raises(CommandError, match="needs one of the roles"):
        call_command("resume", all=True, by="ben")
    call_command("resume", all=True, by="olga")
    assert send_all(operations) == ["confirmed", "confirmed"]


def test_a_person_who_paused_an_account_does_not_resume_it(cast: Cast) -> None:
    build.order()
    call_command("pause", "plain-main", by="olga", reason="maintenance")
    with pytest.raises(CommandError, match="another person must resume it"):
        call_command("resume", "plain-main", by="olga")
    call_command("resume", "plain-main", by="ines")
    assert ProviderAccount.objects.get(name="plain-main").pause_kind == ""
