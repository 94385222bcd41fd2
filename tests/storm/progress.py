"""How far the storm has come: what its parts wait for and tell each other."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

# So far may the refunds be ahead of the kills and faults, as a share of the whole.
AHEAD_MAX = 0.05
FAULTS_BEHIND_MAX = 0.3
DISASTERS_BEHIND_MAX = 0.05
NO_DISASTER = 1.0


@dataclass
class Progress:
    """Shared by all threads. `over` ends them; `troubles` are sentences that fail the run.

    `again`: refunds that were taken, and that the database has forgotten. `next_disaster`: the
    share of all refunds at which the next one is foreseen.
    """

    operations: int
    kills: int
    over: threading.Event = field(default_factory=threading.Event)
    proposed: int = 0
    killed: int = 0
    killed_while_sending: int = 0
    killed_after_paying: int = 0
    restarts: int = 0
    faults_share: float = 0
    next_disaster: float = NO_DISASTER
    disasters: dict[str, int] = field(default_factory=dict)
    in_flight: list[int] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, **counts: int) -> None:
        """Count up, from any thread."""
        with self._lock:
            for name, by in counts.items():
                setattr(self, name, getattr(self, name) + by)

    def happened(self, disaster: str) -> None:
        with self._lock:
            self.disasters[disaster] = self.disasters.get(disaster, 0) + 1

    def number(self) -> int | None:
        """The next refund to propose; None when all are."""
        with self._lock:
            if self.again:
                return self.again.pop()
            if self.proposed >= self.operations:
                return None
            self.proposed += 1
            return self.proposed - 1

    @property
    def share(self) -> float:
        """Of all refunds, those that were proposed."""
        return self.proposed / self.operations

    @property
    def all_proposed(self) -> bool:
        return self.proposed >= self.operations and not self.again

    @property
    def kills_due(self) -> bool:
        """Whether the kills are behind the refunds."""
        return self.killed < self.kills and self.killed / self.kills <= self.share

    @property
    def ahead(self) -> bool:
        """Whether the refunds have left the kills, the faults or the disasters behind."""
        kills = self.killed / self.kills if self.kills else 1.0
        faults = self.faults_share + FAULTS_BEHIND_MAX
        disasters = self.next_disaster + DISASTERS_BEHIND_MAX
        return self.share > min(kills, faults, disasters) + AHEAD_MAX
