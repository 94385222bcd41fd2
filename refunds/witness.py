"""A witness outside the database: what was claimed last, so that a lost tail is noticed (rule 3).

Each process keeps one small record: the database's identity (system identifier, timeline) and the
last event that permitted a send. If the database that answers is another one, has moved to another
timeline, or does not know that event, rows that permitted sends may be lost, and every claim stops.
Asked at start, every minute, and by each sender before its first claim on a new connection: a
database is never exchanged under a connection that lives on.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Max

from refunds.ledger.sending import begin_quarantine
from refunds.models import Event, Quarantine

_RECORD_BYTES = 512


def identity() -> dict[str, str]:
    """System identifier and timeline of the database that answers."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT system_identifier::text, timeline_id::text"
            " FROM pg_control_system(), pg_control_checkpoint()"
        )
        row = cursor.fetchone()
    return {"system": row[0], "timeline": row[1]}


def note(operation_id: UUID, seq: int, at: datetime) -> None:
    """Remember, before the first byte, the event that permits this send; `at` by the database's
    clock, against which its events are held."""
    record = _own() | {"operation": str(operation_id), "seq": seq, "at": at.isoformat()}
    _write(record)


_identity_of_process: dict[int, dict[str, str]] = {}


def _own() -> dict[str, Any]:
    pid = os.getpid()
    if pid not in _identity_of_process:
        _identity_of_process[pid] = identity()
    return dict(_identity_of_process[pid])


def _write(record: dict[str, Any]) -> None:
    # A record for each sender: one process, or one of its threads.
    sender = str(os.getpid())
    if threading.current_thread() is not threading.main_thread():
        sender += f"-{threading.get_native_id()}"
    path = settings.WITNESS_DIR / f"{sender}.json"
    # In place and always as long: a new name each time waits for the disk's own log, where the
    # database keeps it busy.
    text = json.dumps(record).encode().ljust(_RECORD_BYTES)
    assert len(text) == _RECORD_BYTES, "a record has one size"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    except FileNotFoundError:
        settings.WITNESS_DIR.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        if os.pwrite(file, text, 0) != _RECORD_BYTES:
            raise OSError(f"{path} could not be written whole")
    finally:
        os.close(file)


def _read(path: Path) -> dict[str, Any] | None:
    """A sender's record; None where it has sent nothing yet, or people have just dropped it.

    Raises ValueError for one that is damaged.
    """
    try:
        text = path.read_bytes()
        if not text:
            return None
        try:
            record: dict[str, Any] = json.loads(text)
        except ValueError:  # perhaps met while it was written
            record = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return record


def forget() -> None:
    """Drop every record, after people have lifted a quarantine: the present is the new start."""
    _identity_of_process.clear()
    for path in settings.WITNESS_DIR.glob("*.json"):
        path.unlink(missing_ok=True)


# The threads of a process share connections: which ones were asked is known to all of them.
_checked: weakref.WeakSet[Any] = weakref.WeakSet()


def check_new_connection() -> None:
    """Compare the records with the database if this process talks to it by a connection of which
    that was not asked yet. What follows from a difference, the claim's own statement sees."""
    connection.ensure_connection()
    if connection.connection not in _checked:
        check()
        _checked.add(connection.connection)


def check() -> bool:
    """Compare every record with the database; True when they agree, else a quarantine begins."""
    now = identity()
    troubles = []
    for path in sorted(settings.WITNESS_DIR.glob("*.json")):
        try:
            record = _read(path)
        except ValueError:
            record, trouble = {}, "A sender's record of its last send cannot be read."
        else:
            trouble = _trouble(record, now) if record else ""
        if trouble:
            troubles.append((_permitted_at(record, path), trouble, record or {}))
    if not troubles:
        return True
    at, trouble, record = min(troubles, key=lambda each: each[0])
    known_until = _newest_event_before(at)
    begin_quarantine(
        trouble,
        {"witness": record, "database": now, "known_until": known_until.isoformat()},
    )
    return False


def _permitted_at(record: dict[str, Any] | None, path: Path) -> datetime:
    """When that send was permitted; of a record that does not say, when it was written."""
    if record and "at" in record:
        return datetime.fromisoformat(record["at"])
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _newest_event_before(at: datetime) -> datetime:
    """Up to when the database knows what was done: what was sent after it may be lost.

    No event of the lost span is left, and what came after a restore is younger than `at`.
    """
    day = timedelta(days=1)
    known = Event.objects.filter(at__lt=at, at__gte=at - day).aggregate(newest=Max("at"))
    return known["newest"] or at - day


def _trouble(record: dict[str, Any], now: dict[str, str]) -> str:
    began = {name: record[name] for name in now}
    if began != now and not _accepted(began, now):
        if began["system"] != now["system"]:
            return "Another database answers than the one that permitted the last sends."
        return "The database moved to another timeline (a failover or a restore)."
    known = Event.objects.filter(operation_id=record["operation"], seq=record["seq"]).exists()
    return "" if known else "The database does not know a send that it permitted."


def _accepted(began: dict[str, str], now: dict[str, str]) -> bool:
    """Whether people lifted a quarantine over this very change of database.

    A worker that lived through it goes on noting the database it began with.
    """
    return Quarantine.objects.filter(
        lifted_at__isnull=False,
        detail__database=now,
        detail__witness__system=began["system"],
        detail__witness__timeline=began["timeline"],
    ).exists()
