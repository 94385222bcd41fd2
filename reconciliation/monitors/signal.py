"""What a signal is. It fires at `warn` when a reading is above it, at `page` above that: a page
wakes somebody.

Figures of seconds and shares are those of the operating rules; what must never be is above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from reconciliation.monitors.reading import Reading

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One thing that can be wrong. `says` is the rule in a sentence, `why` where it comes from;
    None for a threshold: it never fires at that level. `act` is what to do first. `falling`: it
    fires below its thresholds, as what is left of something does."""

    name: str
    says: str
    warn: float | None
    page: float | None
    unit: str
    why: str
    act: str
    falling: bool = False

    def level(self, value: float) -> str:
        """page, warn or nothing."""
        if self._is_beyond(self.page, value):
            return "page"
        return "warn" if self._is_beyond(self.warn, value) else ""

    def worst(self, values: Iterable[float]) -> float | None:
        """The one that is nearest to firing. Of none it is 0: nothing of it; or None: nothing that
        could run out."""
        return min(values, default=None) if self.falling else max(values, default=0.0)

    def _is_beyond(self, threshold: float | None, value: float) -> bool:
        if threshold is None:
            return False
        return value < threshold if self.falling else value > threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor(Signal):
    """A signal that is read from the database each minute."""

    read: Callable[[], list[Reading]]
