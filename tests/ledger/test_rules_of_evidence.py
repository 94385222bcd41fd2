"""Rule 13: evidence is never fenced, and no answer is ever thrown away."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.models import Operation
from refunds.providers import registry
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import (
    history,
    outcomes,
    state_of,
    the_answer,
)
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    lease_ends,
    ready,
    refunds,
    run,
    tries_for_a_lock,
)
from tests.provider_process import SandboxProcess
from tests.providers.listener import http as said
from tests.providers.listener import listening

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("account", ["plain-main", "plain-blind", "stripe-main"])
def test_rule_13_an_answer_that_comes_after_the_lease_is_stored_and_decides(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, account: str
) -> None:
    """Where nothing can be looked up it is the only proof there will ever be."""
    operation = ready(provider, cast, account=account, amount_minor=4900)
    sender = troupe.actor("send", [operation], stop_at=ANSWER_IN_HAND)
    sender.go()
    sender.reaches(ANSWER_IN_HAND)
    lease_ends(operation)
    assert sender.finish() == {str(operation.pk): "late"}
    [refund] = refunds(provider, operation)
    evidence = the_answer(operation)
    assert (evidence.attempt_no, evidence.facts["ref"]) == (1, refund["id"])
    assert refund["id"].encode() in bytes(evidence.body)
    assert outcomes(operation) == ["confirmed"]
    operation.refresh_from_db()
    assert (operation.state, operation.halted) == (states.UNKNOWN, True)
    assert operation.due_at is not None
    assert operation.due_at <= timezone.now()
    assert history(operation)[-1] == "lease_ended"
    assert reconciler.look_up(operation.pk) == "Settle"
    assert (state_of(operation), operation.halted) == (states.SUCCEEDED, False)
    assert operation.provider_refunds.get().ref == refund["id"]


def test_rule_13_an_answer_whose_decision_the_database_refuses_is_stored_alone(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=ANSWER_IN_HAND)
    sender.go()
    sender.reaches(ANSWER_IN_HAND)
    # Booking would now take the held sum below zero.
    run("UPDATE payment SET held_minor = 0")
    assert sender.finish() == {str(operation.pk): "IntegrityError"}
    [refund] = refunds(provider, operation)
    assert the_answer(operation).facts["ref"] == refund["id"]
    operation.refresh_from_db()
    assert (operation.state, operation.halted) == (states.SUBMITTING, True)
    assert operation.due_at is not None
    assert operation.due_at <= timezone.now()
    assert outcomes(operation) == [None]
    assert dispatch.send(str(operation.pk)) == "gone"


def test_rule_13_an_answer_waits_for_whoever_sleeps_on_the_operation(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """A process stopped inside its transaction holds the row for longer than any lock waits."""
    operation = ready(provider, cast, account="plain-blind", amount_minor=4900)
    sender = troupe.actor("send", [operation], stop_at=ANSWER_IN_HAND, lock_timeout_ms=100)
    sender.go()
    sender.reaches(ANSWER_IN_HAND)
    with transaction.atomic():
        Operation.objects.select_for_update().get(pk=operation.pk)
        sender.go()
        tries_for_a_lock(4)
    assert sender.result() == {str(operation.pk): "OperationalError"}
    [refund] = refunds(provider, operation)
    assert the_answer(operation).facts["ref"] == refund["id"]
    lease_ends(operation)
    assert reconciler.look_up(operation.pk) == "Settle"
    assert state_of(operation) == states.SUCCEEDED


ODD: dict[str, tuple[dict[str, object], str]] = {
    # What no column takes: the decision fails, the proof does not.
    "a reference longer than any": ({"id": "rf_" + "9" * 200}, "DataError"),
    "a zero character": ({"id": "rf_\x00"}, "unanswered"),
    "half a character": ({"id": "rf_\ud800"}, "unanswered"),
    "an amount beyond all numbers": ({"amount_minor": 10**400}, "unanswered"),
    "a status of a thousand letters": ({"status": "x" * 1000}, "unanswered"),
    "a date before all dates": ({"created_at": "0001-01-01T00:00:00+23:59"}, "confirmed"),
    "a date after all dates": ({"created_at": 10**18}, "confirmed"),
}


@pytest.mark.parametrize("what", sorted(ODD))
def test_rule_13_no_answer_is_too_odd_to_be_kept(
    provider: SandboxProcess, cast: Cast, settings: Any, tmp_path: Path, what: str
) -> None:
    changes, word = ODD[what]
    operation: Operation | None = None

    def oddly(client: socket.socket) -> None:
        assert operation is not None
        shown = {
            "id": "rf_1",
            "payment": "pi_4821",
            "amount_minor": 7900,
            "currency": "USD",
            "aftersend_operation": operation.marker,
            "status": "succeeded",
        }
        client.sendall(said(json.dumps(shown | changes).encode(), status="201 Created"))

    with listening(oddly) as listener, elsewhere(settings, tmp_path, listener.url):
        operation = ready(provider, cast, account="plain-odd")
        try:
            came = dispatch.send(str(operation.pk))
        except DatabaseError as error:
            came = type(error).__name__
    assert came == word
    evidence = the_answer(operation)
    assert len(bytes(evidence.body)) > 100
    assert evidence.facts["status"] == 201
    operation.refresh_from_db()
    assert operation.halted is (word == "DataError")
    assert len(listener.requests) == 1


@contextmanager
def elsewhere(settings: Any, folder: Path, url: str) -> Iterator[None]:
    """An account of the plain dialect at another address."""
    settings.PROVIDERS_FILE = folder / "providers.toml"
    settings.PROVIDERS_FILE.write_text(
        f'[plain-odd]\nadapter = "plain"\nbase_url = "{url}"\ncontract = "plain-main"\n'
    )
    settings.PROVIDER_KEYS = {"plain-odd": "the-key"}
    registry.accounts.cache_clear()
    yield
    registry.accounts.cache_clear()
