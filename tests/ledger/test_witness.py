"""The records beside the database, by whichever clock and in whatever shape they are met (rule 3)."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from reconciliation.quarantine import known_until
from refunds import dispatch, witness
from refunds.ledger import database_now
from refunds.models import Quarantine
from tests.cast import Cast
from tests.ledger.stage import ready, several
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def kept(settings: Any, text: str) -> Path:
    settings.WITNESS_DIR.mkdir(parents=True, exist_ok=True)
    path: Path = settings.WITNESS_DIR / "4711.json"
    path.write_text(text)
    return path


def test_what_may_be_lost_begins_before_the_lost_send_also_where_its_machine_was_ahead(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    """Its file says when that machine believed to write it, by a clock that is minutes off."""
    first, second = several(provider, cast, 2)
    assert dispatch.send(str(first.pk)) == "confirmed"
    lost_at = database_now()
    assert dispatch.send(str(second.pk)) == "confirmed"
    record = {"operation": str(uuid4()), "seq": 4, "at": lost_at.isoformat()}
    path = kept(settings, json.dumps(witness.identity() | record))
    ahead = time.time() + 300
    os.utime(path, (ahead, ahead))
    assert not witness.check()
    assert known_until(Quarantine.objects.get()) < lost_at


def test_a_record_that_cannot_be_read_stops_sending(cast: Cast, settings: Any) -> None:
    kept(settings, '{"operation": "01')
    assert not witness.check()
    assert "cannot be read" in Quarantine.objects.get().reason


def test_a_sender_that_has_not_noted_anything_yet_has_sent_nothing(
    cast: Cast, settings: Any
) -> None:
    kept(settings, "")
    assert witness.check()


def test_each_send_of_a_sender_takes_the_place_of_the_one_before(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    first, second = several(provider, cast, 2)
    began = database_now()
    for operation in (first, second):
        assert dispatch.send(str(operation.pk)) == "confirmed"
    [path] = settings.WITNESS_DIR.glob("*.json")
    record = json.loads(path.read_text())
    assert record["operation"] == str(second.pk)
    assert witness._permitted_at(record, path) - began < timedelta(minutes=1)


def test_a_thread_that_takes_over_a_shared_connection_need_not_ask_again(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    """What a new connection showed is known to the process: a restore ends every one of them."""
    operation = ready(provider, cast)
    witness.check_new_connection()
    kept(settings, json.dumps(witness.identity() | {"operation": str(uuid4()), "seq": 4}))
    witness.check_new_connection()
    assert not Quarantine.objects.exists()
    connection.close()
    witness.check_new_connection()
    assert Quarantine.objects.exists()
    assert dispatch.send(str(operation.pk)) == "waiting"
