"""What the provider tells by itself: its own notices, handed in at the product's door.

They come twice, late, in any order, and some never; strangers forge them. What the door did not say
yes to stays in the provider's queue and comes again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tests.notices.telling import tell
from tests.simulation.provider import SandboxHere
from tests.simulation.weather import Weather

ACCOUNTS = ("plain-main", "plain-hooks", "stripe-main")
# A lie in the words of each dialect.
_LIE = '{"refund": {"status": "failed"}}'


@dataclass
class Postbox:
    """Hands in what the provider's book says is to be told."""

    provider: SandboxHere
    weather: Weather
    fates: Counter[str] = field(default_factory=Counter)

    def open(self) -> None:
        """From now on these accounts write a notice of every change."""
        for account in ACCOUNTS:
            self.provider.configure(account, webhook_url=f"http://127.0.0.1/webhooks/{account}")

    def acts(self) -> dict[str, Any]:
        return {"notice": self.one_comes}

    def one_comes(self) -> object:
        """Any one of those that are due, with what becomes of it on its way."""
        waiting = self.provider.notices_due()
        if not waiting:
            return None
        row, fate = self.weather.dice.choice(waiting), self.weather.notice()
        self.fates[f"notice {fate}"] += 1
        match fate:
            case "lost":
                self.provider.notice_ended(row, "lost")
                return fate
            case "forged":
                return fate, self._handed_in(
                    dict(row) | {"twist": "notice_forged", "options": _LIE}
                )
            case "stale":
                return fate, self._handed_in(dict(row) | {"twist": "notice_old"})
            case "twice":
                self._handed_in(row)
        said = self._handed_in(row)
        if 200 <= said < 300 and fate != "unheard":
            self.provider.notice_ended(row, "sent")
        return fate, said

    def all_come(self) -> None:
        """In calm weather each that is due is heard and said yes to."""
        for row in self.provider.notices_due():
            if 200 <= self._handed_in(row) < 300:
                self.provider.notice_ended(row, "sent")

    def _handed_in(self, row: sqlite3.Row | dict[str, Any]) -> int:
        body, (_, signature) = self.provider.notice_written(row)
        said = tell(body, account=row["account"], header=signature)
        # As the process does whose connection broke, whatever it answered.
        connection.close_if_unusable_or_obsolete()
        return said.status
