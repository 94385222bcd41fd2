"""Alarms: one per signal and subject while it lasts, told once per firing, seen by people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Max

from reconciliation.models import Acknowledgement, Alarm, SignalRun
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.signal import Signal
from refunds.domain.errors import Refusal
from refunds.models import Person
from refunds.text import check_text

log = structlog.get_logger(__name__)
# A reading that swings around its threshold is one firing, not one a minute.
QUIET = timedelta(minutes=2)
ACKNOWLEDGED = timedelta(minutes=30)
NOTE_LENGTH_MIN, NOTE_LENGTH_MAX = 10, 300
SUBJECTS_MAX = 200


def observe(
    signal: Signal,
    readings: Iterable[Reading],
    now: datetime,
    *,
    asked: frozenset[str] | None = None,
) -> list[Alarm]:
    """Store what a signal reads now; returns the alarms that began by it.

    `asked`: the subjects that were looked at, where that is not everything; an alarm about any
    other stays as it is. An alarm ends when its subject has been quiet for two minutes.
    """
    found = list(readings)
    firing = {each.subject[:200]: each for each in found if signal.level(each.value)}
    with transaction.atomic():
        # Two runs at once wait for each other here.
        SignalRun.objects.update_or_create(
            name=signal.name,
            defaults={
                "ran_at": now,
                "good_at": now,
                "value": signal.worst(each.value for each in found),
                "failed_since": None,
                "error": "",
            },
        )
        open_now = Alarm.objects.filter(name=signal.name, ended_at=None)
        known = {
            each.subject: each
            for each in open_now.annotate(seen_until=Max("acknowledgements__until"))
        }
        for subject, alarm in known.items():
            if subject in firing:
                _goes_on(alarm, signal, firing[subject], now)
            elif (asked is None or subject in asked) and now - alarm.last_fired_at >= QUIET:
                alarm.ended_at = now
                alarm.save(update_fields=["ended_at"])
                log.info("alarm_ended", alarm=alarm.name, subject=subject)
        fresh = [each for subject, each in firing.items() if subject not in known]
        return [_begins(signal, each, now) for each in fresh[:SUBJECTS_MAX]]


def _begins(signal: Signal, reading: Reading, now: datetime) -> Alarm:
    alarm = Alarm.objects.create(
        name=signal.name,
        subject=reading.subject[:200],
        level=signal.level(reading.value),
        value=reading.value,
        says=reading.says[:500],
        first_fired_at=now,
        last_fired_at=now,
        told_at=now,
    )
    _tell(alarm, signal)
    return alarm


def _goes_on(alarm: Alarm, signal: Signal, reading: Reading, now: datetime) -> None:
    rises = alarm.level == "warn" and signal.level(reading.value) == "page"
    seen_until: datetime | None = getattr(alarm, "seen_until", None)
    forgotten = (
        seen_until is not None and alarm.told_at is not None and (alarm.told_at < seen_until <= now)
    )
    if rises:
        alarm.level = "page"
    alarm.value, alarm.says, alarm.last_fired_at = reading.value, reading.says[:500], now
    if rises or forgotten:
        alarm.told_at = now
        _tell(alarm, signal)
    alarm.save(update_fields=["level", "value", "says", "last_fired_at", "told_at"])


def _tell(alarm: Alarm, signal: Signal) -> None:
    """Once per firing: when it begins, when it rises to a page, and when nobody ended what
    somebody had acknowledged. Here is the line of the log; the database itself writes to the
    outbox whenever `told_at` is set."""
    log.warning(
        "alarm_fired",
        alarm=alarm.name,
        subject=alarm.subject,
        urgency=alarm.level,
        value=alarm.value,
        says=alarm.says,
        act=signal.act,
    )


def acknowledge(alarm_id: int, *, by: Person, note: str, now: datetime) -> Acknowledgement:
    """Store that a person has seen it; it is told again after 30 minutes if it lasts.

    Raises Refusal: the note is too short, the alarm has ended, or somebody has it already.
    Raises Alarm.DoesNotExist.
    """
    note = note.strip()
    if len(note) < NOTE_LENGTH_MIN:
        raise Refusal(
            "reason_too_short",
            f"Not recorded. The note needs {NOTE_LENGTH_MIN} characters or more.",
            what_to_do="Say what you do about it, for whoever looks next.",
            field="note",
        )
    check_text(note, field="note", length_max=NOTE_LENGTH_MAX)
    with transaction.atomic():
        alarm = Alarm.objects.select_for_update().get(pk=alarm_id)
        if alarm.ended_at is not None:
            raise Refusal(
                "already_ended",
                "Not recorded. The alarm has ended by itself meanwhile.",
                status=409,
                what_to_do="Nothing to do: it is under Ended.",
            )
        last = alarm.acknowledgements.select_related("by").order_by("-until").first()
        if last is not None and last.until > now:
            raise Refusal(
                "already_acknowledged",
                f"{last.by.username} has it already. Your press changed nothing.",
                status=409,
                what_to_do="Talk to them, or wait until their half hour is over.",
            )
        return Acknowledgement.objects.create(
            alarm=alarm, by=by, note=note, until=now + ACKNOWLEDGED
        )
