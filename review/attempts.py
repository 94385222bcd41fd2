"""Tries of passwords and codes, counted in the shared cache: so many, then a wait that is said."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.core.cache import cache
from django.http import HttpRequest

FAILURES_PER_NAME = 5
FAILURES_PER_ADDRESS = 20
WINDOW_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try. It counts as failed from its beginning, so that many at once are counted too."""

    keys: tuple[str, ...]
    wait_seconds: int

    @property
    def minutes_to_wait(self) -> int:
        """Whole minutes, rounded up; 0 when the try is free."""
        return -(-self.wait_seconds // 60)

    def succeeded(self) -> None:
        """It was no failure after all."""
        for key in self.keys:
            cache.decr(key)


def begin(request: HttpRequest, whose: str) -> Attempt:
    """Count a try on `whose` name or factor from this address; ask `wait_seconds` before trying."""
    address = request.META.get("REMOTE_ADDR", "")
    limits = {
        f"sign-in:name:{whose[:150].casefold().encode().hex()[:180]}": FAILURES_PER_NAME,
        f"sign-in:address:{address}": FAILURES_PER_ADDRESS,
    }
    now = int(time.time())
    waits = []
    for key, allowed in limits.items():
        cache.add(f"{key}:until", now + WINDOW_SECONDS, WINDOW_SECONDS)
        cache.add(key, 0, WINDOW_SECONDS)
        if cache.incr(key) > allowed:
            waits.append(max(cache.get(f"{key}:until", now) - now, 1))
    return Attempt(tuple(limits), max(waits, default=0))
