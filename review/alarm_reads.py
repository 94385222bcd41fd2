"""Reads of the page Alerts: what fires, who has it, what ended, and what is watched at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.urls import NoReverseMatch, reverse

from reconciliation.models import Acknowledgement, Alarm, SignalRun, VerifierRound
from reconciliation.monitors.signal import Signal
from reconciliation.monitors.table import MONITORS, SIGNALS
from review import intent
from review.intent import Hidden
from review.presenters import alarms as words

ENDED_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One alarm with the words of its signal; `seen` is the acknowledgement that holds now."""

    alarm: Alarm
    word: str
    rule: str
    reading: str
    against: str
    act: str
    url: str
    seen: Acknowledgement | None
    past: list[Acknowledgement]
    form: Hidden

    @property
    def draft_ref(self) -> str:
        """What the form's draft is about."""
        return object_ref(self.alarm.pk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One signal and whether it has data. `state`: firing, no data, quiet, not read yet."""

    word: str
    rule: str
    against: str
    reading: str
    state: str
    at: datetime | None
    error: str


def object_ref(alarm_id: int) -> str:
    """How presses and drafts name an alarm."""
    return f"alarm {alarm_id}"


def open_rows(now: datetime) -> list[Row]:
    """What fires: pages before warnings, the oldest first."""
    found = _with_people(Alarm.objects.filter(ended_at=None)).order_by(
        "level", "first_fired_at", "pk"
    )
    return [_row(each, now) for each in found]


def ended_rows(now: datetime) -> list[Row]:
    """The last that ended, newest first."""
    found = _with_people(Alarm.objects.exclude(ended_at=None)).order_by("-ended_at", "-pk")
    return [_row(each, now) for each in found[:ENDED_ROWS]]


def one(alarm_id: int) -> Alarm | None:
    """An alarm by its number."""
    return Alarm.objects.filter(pk=alarm_id).first()


def _with_people(alarms: QuerySet[Alarm]) -> QuerySet[Alarm]:
    people = Acknowledgement.objects.select_related("by").order_by("at")
    return alarms.prefetch_related(Prefetch("acknowledgements", people))


def _row(alarm: Alarm, now: datetime) -> Row:
    signal = SIGNALS.get(alarm.name) or _forgotten(alarm.name)
    past = list(alarm.acknowledgements.all())
    holds = [each for each in past if each.until > now and alarm.ended_at is None]
    return Row(
        alarm=alarm,
        word=words.name_word(alarm.name),
        rule=signal.says,
        reading=words.reading(alarm.value, signal.unit),
        against=words.held_against(signal.warn, signal.page, signal.unit, falling=signal.falling),
        act=signal.act,
        url=_url(alarm.subject),
        seen=holds[-1] if holds else None,
        past=past,
        # An alarm has no version: whether it ended, or somebody has it, is asked at the press.
        form=intent.drawn(version=0, shown_digest="alarm"),
    )


def _forgotten(name: str) -> Signal:
    """A signal of an earlier version of this program."""
    says = "This signal is not read any more."
    return Signal(name=name, says=says, warn=None, page=None, unit="", why="", act="Nothing.")


def _url(subject: str) -> str:
    """The page of what an alarm is about; empty where there is none."""
    kind, _, ref = subject.partition(" ")
    try:
        if kind == "order":
            return reverse("order", kwargs={"order_ref": ref})
        if kind == "operation":
            return reverse("operation", kwargs={"operation_id": UUID(ref)})
    except (NoReverseMatch, ValueError):
        return ""
    return reverse("search", query={"q": ref}) if ref else ""


def watched(firing: set[str]) -> list[Watched]:
    """Every signal, in the order of the table."""
    runs = {each.name: each for each in SignalRun.objects.all()}
    return [_watched(each, runs.get(each.name), firing) for each in SIGNALS.values()]


def _watched(signal: Signal, run: SignalRun | None, firing: set[str]) -> Watched:
    state = "quiet"
    if run is not None and run.failed_since is not None:
        state = "no data"
    elif signal.name in firing:
        state = "firing"
    elif run is None:
        state = "not read yet"
    value = run.value if run else None
    return Watched(
        word=words.name_word(signal.name),
        rule=signal.says,
        against=words.held_against(signal.warn, signal.page, signal.unit, falling=signal.falling),
        reading="" if value is None else words.reading(value, signal.unit),
        state=state,
        at=run.good_at if run else None,
        error=run.error if run else "",
    )


def heartbeat() -> tuple[datetime | None, datetime | None]:
    """When the monitors last ran, and the oldest good reading of any of them."""
    runs = SignalRun.objects.filter(name__in=[each.name for each in MONITORS])
    found = list(runs.values_list("ran_at", "good_at"))
    good = [at for _, at in found if at is not None]
    return max((at for at, _ in found), default=None), min(good, default=None)


def rounds() -> list[VerifierRound]:
    """How far each verifier is."""
    return list(VerifierRound.objects.order_by("name"))
