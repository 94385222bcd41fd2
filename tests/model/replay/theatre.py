"""What all replays of a run share: workers, the provider's book, and a clock for each."""

from __future__ import annotations

from pathlib import Path

from tests.cast import Cast, assemble
from tests.model.replay.crew import Crew
from tests.model.replay.notice import NoticePlayer
from tests.model.replay.order import OrderPlayer
from tests.model.replay.player import Player
from tests.model.replay.traces import NoticeTrace, OrderTrace, Trace
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere


class Theatre:
    """Each `play` begins with an empty database, and says what was wrong; prints its steps."""

    def __init__(self, book: Path) -> None:
        self._book = book
        self._provider = SandboxHere(book)
        self._clock = Clock()
        self._crew = Crew(lambda: self._clock.shows_here())

    def close(self) -> None:
        self._crew.end()
        self._provider.stop()

    def play(self, trace: Trace) -> list[str]:
        return self._played(Player(trace, *self._stage()))

    def play_order(self, trace: OrderTrace) -> list[str]:
        return self._played(OrderPlayer(trace, *self._stage()))

    def play_notices(self, trace: NoticeTrace) -> list[str]:
        return self._played(NoticePlayer(trace, *self._stage()))

    def _stage(self) -> tuple[SandboxHere, Cast, Crew, Clock]:
        self._provider.reset()
        self._clock = Clock()
        return self._provider, assemble(), self._crew, self._clock

    def _played(self, player: Player | OrderPlayer | NoticePlayer) -> list[str]:
        wrong = player.play(self._book)
        print(*player.told, sep="\n")
        return wrong
