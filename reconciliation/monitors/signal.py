"""What a signal is. It fires at `warn` when a reading is above it, at `page` above that: a page
wakes somebody.

Figures of seconds and shares are those of the operating rules; what must never be is above 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reconciliation.monitors.reading import Reading

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One thing that can be wrong. `says` is the rule in a sentence, `why` where it comes from;
    None for a threshold: it never fires at that level. `act` is what to do first."""

    name: str
    says: str
    warn: float | None
    page: float | None
    unit: str
    why: str
    act: str

    def level(self, value: float) -> str:
        """page, warn or nothing."""
        if self.page is not None and value > self.page:
            return "page"
        return "warn" if self.warn is not None and value > self.warn else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor(Signal):
    """A signal that is read from the database each minute."""

    read: Callable[[], list[Reading]]
