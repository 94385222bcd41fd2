"""How the verifiers come through everything: what changed every five minutes, all of it each night.

A million operations are many batches over many runs; the cursor says how far the round has come.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import structlog
from django.db import transaction

from reconciliation import alarms
from reconciliation.models import Alarm, VerifierRound
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.signal import Signal
from reconciliation.monitors.signals_of_machinery import (
    LOOKUPS_DISAGREE,
    SETTLEMENT_DISAGREES,
    TABLES_DISAGREE,
)
from reconciliation.verifiers import lookups, settled, tables
from reconciliation.verifiers.finding import Finding, one_snapshot
from refunds.ledger.sending import stop_for_cause

log = structlog.get_logger(__name__)
BATCH: Final = 500
BUDGET_SECONDS: Final = 20.0  # of one run; a task is ended after 60
NIGHT_HOUR: Final = 2  # UTC
SLICE = timedelta(minutes=1)
# A transaction may commit what it stamped a little earlier.
OVERLAP = timedelta(minutes=1)
FIRST_LOOK_BACK = timedelta(minutes=10)


class Comparison(Protocol):
    """A module of this package: which things there are, and what contradicts itself among some."""

    def check(self, ids: Sequence[Any], /) -> list[Finding]: ...
    def changed(self, since: datetime, until: datetime, /) -> list[Any]: ...
    def after(self, cursor: str, batch: int, /) -> list[Any]: ...
    def under_alarm(self, subjects: Sequence[str], /) -> list[Any]: ...
    def subjects(self, ids: Sequence[Any], /) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Verifier:
    """One standing check, and the signal that tells what it finds."""

    name: str
    signal: Signal
    of: Comparison


VERIFIERS: Final = (
    Verifier("tables", TABLES_DISAGREE, tables),
    Verifier("lookups", LOOKUPS_DISAGREE, lookups),
    Verifier("settlement", SETTLEMENT_DISAGREES, settled),
)


def verify_changes(now: datetime) -> int:
    """Check what changed since the last run, and what alarms are open about; returns how many
    contradictions were found."""
    return sum(_changes(each, now) for each in VERIFIERS)


def _changes(verifier: Verifier, now: datetime) -> int:
    row, _ = VerifierRound.objects.get_or_create(name=verifier.name)
    open_now = Alarm.objects.filter(name=verifier.signal.name, ended_at=None)
    found = _checked(
        verifier, verifier.of.under_alarm(list(open_now.values_list("subject", flat=True))), now
    )
    began = time.monotonic()
    since = (row.changes_until or now - FIRST_LOOK_BACK) - OVERLAP
    for start, end in _slices(since, now):
        found += _checked(verifier, verifier.of.changed(start, end), now)
        VerifierRound.objects.filter(pk=row.pk).update(changes_until=end)
        if time.monotonic() - began > BUDGET_SECONDS:
            log.warning("verifier_behind", verifier=verifier.name, until=end.isoformat())
            break
    return found


def _slices(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    while since < until:
        end = min(since + SLICE, until)
        yield since, end
        since = end


def verify_everything(now: datetime) -> int:
    """Go on with tonight's round of each verifier, for some seconds; returns what was found."""
    return sum(_round(each, now) for each in VERIFIERS)


def _round(verifier: Verifier, now: datetime) -> int:
    row, _ = VerifierRound.objects.get_or_create(name=verifier.name)
    if row.began_at is None:
        if not _is_due(row, now):
            return 0
        row.began_at, row.cursor, row.checked_count, row.found_count = now, "", 0, 0
    began, found = time.monotonic(), 0
    while time.monotonic() - began < BUDGET_SECONDS:
        ids = verifier.of.after(row.cursor, BATCH)
        if not ids:
            row.last_ended_at, row.began_at = now, None
            row.last_checked_count, row.last_found_count = row.checked_count, row.found_count
            log.info("verifier_ended", verifier=verifier.name, checked=row.checked_count)
            break
        here = _checked(verifier, ids, now)
        found += here
        row.cursor = str(ids[-1])
        row.checked_count += len(ids)
        row.found_count += here
        row.save(update_fields=_OF_A_ROUND)
    row.save(update_fields=_OF_A_ROUND)
    return found


# The run over changes writes the rest of the row at the same time.
_OF_A_ROUND: Final = [
    "cursor",
    "began_at",
    "checked_count",
    "found_count",
    "last_ended_at",
    "last_checked_count",
    "last_found_count",
]


def _is_due(row: VerifierRound, now: datetime) -> bool:
    tonight = now.replace(hour=NIGHT_HOUR, minute=0, second=0, microsecond=0)
    if tonight > now:
        tonight -= timedelta(days=1)
    return row.last_ended_at is None or row.last_ended_at < tonight


def _checked(verifier: Verifier, ids: Sequence[Any], now: datetime) -> int:
    found = 0
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        with one_snapshot():
            findings = verifier.of.check(some)
            asked = verifier.of.subjects(some)
        _stop_and_tell(verifier, findings, asked, now)
        found += len(findings)
    return found


def _stop_and_tell(
    verifier: Verifier, findings: Sequence[Finding], asked: frozenset[str], now: datetime
) -> None:
    """An alarm for each subject; a fresh one stops its accounts. One that a person has seen and
    resumed stops nothing again."""
    by_subject: dict[str, list[Finding]] = {}
    for each in findings:
        by_subject.setdefault(each.subject, []).append(each)
    readings = [
        Reading(subject, len(some), f"{'; '.join(each.says for each in some)}.")
        for subject, some in by_subject.items()
    ]
    with transaction.atomic():
        for alarm in alarms.observe(verifier.signal, readings, now, asked=asked):
            for account in sorted({each.account for each in by_subject[alarm.subject]}):
                reason = f"{alarm.subject.capitalize()}: {alarm.says}"
                by = f"verifier of the {verifier.name}"
                stop_for_cause(account, kind="verifier", reason=reason, by=by)
