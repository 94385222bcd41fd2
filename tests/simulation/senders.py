"""Senders on paper: what becomes of an attempt between its claim and the last that is heard of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.simulation.chances import SENDS, Chances
from tests.simulation.hearsay import Paper
from tests.simulation.on_paper import LIMITS, Agenda, Refund, Try

# Between the last look at the clock and the first byte; a lease is a minute.
_SLEEPS_SECONDS: Final = (1.0, 14.0, 16.0, 70.0, 400.0, 2000.0)


@dataclass
class Senders:
    """`answered`: its own sender said what became of an attempt, however late."""

    provider: Paper
    agenda: Agenda
    chances: Chances
    seen: Counter[str]
    answered: Callable[[Try, str], None]

    def send(self, refund: Refund) -> Try:
        """One more attempt, and what chance has in store for it."""
        attempt = refund.tried(self.agenda.now)
        fate = self.chances.fate(SENDS, self.agenda.now)
        self.seen[f"send {fate}"] += 1
        dice = self.chances.dice
        match fate:
            case "not_sent" | "turned_away":
                self._says(0.2, attempt, fate)
            case "killed":
                if dice.random() < 0.5:
                    self._writes(attempt, late=dice.random() < 0.5, heard=False)
            case "slept":
                self._sleeps(attempt)
            case "lost":
                self._says(dice.choice((0.2, 30)), attempt, "unanswered")
            case _:
                self._writes(attempt, late=fate == "late", heard=fate == "good")
        return attempt

    def _says(self, seconds: float, attempt: Try, outcome: str) -> None:
        self.agenda.at(seconds, lambda: self.answered(attempt, outcome))

    def _sleeps(self, attempt: Try) -> None:
        """Between the last look at the clock and the first byte: the check was passed in time."""
        dice = self.chances.dice
        checked = dice.uniform(0, LIMITS.send_deadline_seconds)
        slept = dice.choice(_SLEEPS_SECONDS)
        closed = self.provider.closes_before(slept)

        def wakes() -> None:
            if closed:
                self.answered(attempt, "unanswered")
                return
            self.provider.flying -= 1
            self._writes(attempt, late=dice.random() < 0.5, heard=True)

        self.provider.flying += not closed  # it may still write
        self.agenda.at(checked + slept, wakes)

    def _writes(self, attempt: Try, *, late: bool, heard: bool) -> None:
        self.provider.flying += 1
        flight = self.provider.flight_seconds(late=late)
        gives_up = LIMITS.call_total_seconds
        in_time = heard and flight < gives_up

        def lands() -> None:
            made = self.provider.lands(self.agenda.now)
            if in_time:
                attempt.told = made
                self.answered(attempt, "refused" if made is None else "confirmed")

        self.agenda.at(flight, lands)
        if not in_time and (heard or self.chances.dice.random() < 0.5):
            self._says(gives_up if late or heard else 0.2, attempt, "unanswered")
