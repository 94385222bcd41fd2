"""How fast an account may be asked: one budget for all workers, and a breaker on its answers.

In the database and by its clock, so that the rate holds however many workers there are. Only
lookups are paced here: sends have their own queue and never wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from refunds.domain.contract import ProviderContract

_CALLS_MIN = 20
_WINDOW_SECONDS = 900
_TRIAL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Pace:
    """So many lookups a second, and so many at once after a rest."""

    per_second: float
    burst: int

    @property
    def interval_seconds(self) -> float:
        return 1 / self.per_second


def pace(contract: ProviderContract, asked: int, ambiguous: int, *, stopped: bool) -> Pace:
    """How fast to go on: the contract's rate, half of it, or a trial a minute (rule of the breaker).

    `asked` and `ambiguous` are of the last quarter of an hour; `stopped`: the provider refused the
    credential.
    """
    share = ambiguous / asked if asked >= _CALLS_MIN else 0
    if stopped or share > 0.05:
        return Pace(1 / _TRIAL_SECONDS, 1)
    rate, burst = contract.lookups_per_second, contract.lookups_burst
    return Pace(rate / 2, burst) if share > 0.01 else Pace(rate, burst)


_STANDING = """
SELECT coalesce((SELECT sum(asked_count) FROM lookup_minute
                 WHERE account = %(account)s AND minute > now() - %(window)s * interval '1 s'), 0),
       coalesce((SELECT sum(ambiguous_count) FROM lookup_minute
                 WHERE account = %(account)s AND minute > now() - %(window)s * interval '1 s'), 0),
       EXISTS (SELECT FROM provider_account
               WHERE name = %(account)s AND pause_kind = 'credential')
"""
# One slot of an even pace; no row: none is free now.
_TAKE = """
INSERT INTO lookup_budget AS b (account, next_at)
VALUES (%(account)s, clock_timestamp() + %(interval)s * interval '1 s')
ON CONFLICT (account) DO UPDATE
  SET next_at = greatest(b.next_at, clock_timestamp()) + %(interval)s * interval '1 s'
  WHERE b.next_at - %(slack)s * interval '1 s' <= clock_timestamp()
RETURNING next_at
"""
_FREE = """
SELECT extract(epoch FROM clock_timestamp() - next_at)::float8 FROM lookup_budget WHERE account = %(account)s
"""
_NOTE = """
INSERT INTO lookup_minute AS m (account, minute, asked_count, ambiguous_count)
VALUES (%(account)s, date_trunc('minute', now()), %(asked)s, %(ambiguous)s)
ON CONFLICT (account, minute) DO UPDATE
  SET asked_count = m.asked_count + excluded.asked_count,
      ambiguous_count = m.ambiguous_count + excluded.ambiguous_count
"""
_FORGET = "DELETE FROM lookup_minute WHERE minute < now() - interval '1 day'"


def pace_now(account: str, contract: ProviderContract) -> Pace:
    """The pace of an account by its answers of the last quarter of an hour."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, {"account": account, "window": _WINDOW_SECONDS})
        asked, ambiguous, stopped = cursor.fetchone()
    return pace(contract, int(asked), int(ambiguous), stopped=stopped)


def take(account: str, at: Pace) -> bool:
    """Take one lookup out of the budget; False when none is left now."""
    slack = (at.burst - 1) * at.interval_seconds
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"account": account, "interval": at.interval_seconds, "slack": slack})
        return cursor.fetchone() is not None


def room(account: str, at: Pace) -> int:
    """How many lookups could begin now."""
    with connection.cursor() as cursor:
        cursor.execute(_FREE, {"account": account})
        row = cursor.fetchone()
    if row is None:
        return at.burst
    ahead = row[0] + (at.burst - 1) * at.interval_seconds
    return max(0, min(at.burst, int(ahead * at.per_second) + 1)) if ahead >= 0 else 0


def note(account: str, *, ambiguous: bool) -> None:
    """Remember that a lookup was made, and whether its answer was none."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, {"account": account, "asked": 1, "ambiguous": int(ambiguous)})


def forget() -> None:
    """Drop the counts of earlier days."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)
