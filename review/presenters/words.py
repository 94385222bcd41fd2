"""Times, spans, names and amounts as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from refunds.domain.money import display

# state -> name of its shape in the sprite; one silhouette may serve states of one kind.
SHAPES = {
    "proposed": "proposed",
    "awaiting_approval": "proposed",
    "authorized": "authorized",
    "submitting": "submitting",
    "pending": "pending",
    "unknown": "unknown",
    "succeeded": "succeeded",
    "mismatched": "mismatched",
    "returned": "returned",
    "failed": "failed",
    "denied": "barred",
    "rejected": "barred",
    "withdrawn": "barred",
    "expired": "stale",
    "stale": "stale",
}


@dataclass(frozen=True, slots=True)
class Clock:
    """The instant a page was drawn and the zone of its reader."""

    now: datetime
    zone: ZoneInfo

    def local(self, at: datetime) -> datetime:
        return at.astimezone(self.zone)

    @property
    def local_now(self) -> datetime:
        """Now as an instant that carries the reader's zone."""
        return self.local(self.now)

    @property
    def zone_label(self) -> str:
        """Short name of the reader's zone now: "UTC", "CET"; "+04" where it has no letters."""
        return self.zone_at(self.now)

    def zone_at(self, at: datetime) -> str:
        """The same at another instant: summer time has a name of its own."""
        return self.local(at).tzname() or self.zone.key

    def seconds(self, at: datetime) -> str:
        """ "14:31:07", with the day in front when it is not today."""
        return self._with_day(at, f"{self.local(at):%H:%M:%S}")

    def minutes(self, at: datetime) -> str:
        """ "14:31", with the day in front when it is not today."""
        return self._with_day(at, f"{self.local(at):%H:%M}")

    def exact(self, at: datetime) -> str:
        """ "14:31:07.214", without a day."""
        local = self.local(at)
        return f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"

    def dated(self, at: datetime) -> str:
        """The same with the day in front when it is not today."""
        return self._with_day(at, self.exact(at))

    def day(self, at: datetime) -> str:
        """ "Sunday 29 November 2026"."""
        local = self.local(at)
        return f"{local:%A} {local.day} {local:%B %Y}"

    def utc(self, at: datetime) -> str:
        """The full instant in UTC with its age, for a title."""
        return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {self.ago(at)}"

    def iso_utc(self, at: datetime) -> str:
        """ "2026-11-29T14:31:07Z", for copying."""
        return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"

    def age(self, at: datetime) -> str:
        """How long ago, as a span: "30 min 54 s"."""
        return span(self.now - at)

    def ago(self, at: datetime) -> str:
        """ "12 s ago", or "in 12 s" for an instant to come."""
        coming = at - self.now >= timedelta(seconds=1)
        return f"in {span(at - self.now)}" if coming else f"{self.age(at)} ago"

    def left(self, until: datetime) -> str:
        """ "22 min left" or "ended 3 min ago"."""
        over = until <= self.now
        return f"ended {self.age(until)} ago" if over else f"{span(until - self.now)} left"

    def _with_day(self, at: datetime, time: str) -> str:
        local = self.local(at)
        today = self.local(self.now)
        if local.date() == today.date():
            return time
        year = "" if local.year == today.year else f" {local.year}"
        return f"{local.day} {local:%b}{year} {time}"


def span(length: timedelta) -> str:
    """A length of time in its two largest fitting units: "12 s", "3 min 41 s", "2 d 4 h"."""
    seconds = max(int(length.total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 60:
        return f"{seconds} s"
    if minutes < 60:
        return f"{minutes} min" + (f" {seconds % 60} s" if seconds % 60 else "")
    if hours < 24:
        return f"{hours} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{days} d" + (f" {hours % 24} h" if hours % 24 else "")


def short(identity: object) -> str:
    """The last six characters of an id, as pages show it: "…4f2a91"."""
    return f"…{str(identity)[-6:]}"


def state_word(state: str) -> str:
    """ "awaiting approval"."""
    return state.replace("_", " ")


def field_word(name: str) -> str:
    """The label of a stored field: "provider_status" -> "Provider status"."""
    return name.removesuffix("_minor").replace("_", " ").capitalize()


def actor_word(actor: str) -> str:
    """A stored actor for people: "person:ada" -> "ada", "dispatcher:web:12" -> "the dispatcher"."""
    names = []
    for part in actor.split(", "):
        kind, _, name = part.partition(":")
        if kind == "person":
            names.append(name)
        elif kind == "agent":
            names.append(f"agent {name}")
        elif kind in ("dispatcher", "reconciler"):
            names.append(f"the {kind}")
        else:
            names.append(part)
    return " and ".join(names)


def amounts(count_minor: dict[str, int]) -> str:
    """Sums by currency: "45.00 EUR, 6 800 JPY"."""
    return ", ".join(display(minor, code) for code, minor in sorted(count_minor.items()))


def count_of(number: int, one: str, many: str = "") -> str:
    """ "1 refund", "3 refunds"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
