"""Tries of passwords and codes, counted in the shared cache: so many, then a wait that is said."""

from __future__ import annotations

import hashlib
import time
import unicodedata
from contextlib import suppress
from dataclasses import dataclass

from django.core.cache import cache
from django.http import HttpRequest

from refunds.models import Person

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
            with suppress(ValueError):  # the window has ended meanwhile, and its count with it
                cache.decr(key)


def begin(request: HttpRequest, name: str) -> Attempt:
    """Count a try on a sign-in name from this address; ask `wait_seconds` before trying.

    Every way of writing a name that signs in the same person counts as one name.
    """
    plain = unicodedata.normalize("NFKC", name.strip()).casefold()
    return _begin(request, f"name:{hashlib.sha256(plain.encode()).hexdigest()}")


def begin_proof(request: HttpRequest, person: Person) -> Attempt:
    """The same for a password or factor of somebody whose name is known already."""
    return _begin(request, f"proof:{person.pk}")


def _begin(request: HttpRequest, whose: str) -> Attempt:
    address = request.META.get("REMOTE_ADDR", "")
    limits = {
        f"sign-in:{whose}": FAILURES_PER_NAME,
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
