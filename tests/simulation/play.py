"""One schedule after the other, each on an empty ledger and a new book."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test.utils import setup_test_environment

from refunds import policies, witness
from refunds.models import Event
from refunds.providers import registry
from tests import emptying
from tests.cast import assemble
from tests.simulation import RAISED
from tests.simulation.checkers import faults
from tests.simulation.clock import movable
from tests.simulation.provider import SandboxHere
from tests.simulation.world import World


class Playground:
    """A database of its own, gone afterwards; with KEEP_DATABASE=1 that of the tests, which stays."""

    def __enter__(self) -> Playground:
        setup_test_environment()
        self._after = ExitStack()
        usual = connection.settings_dict["NAME"]
        stays = bool(os.environ.get("KEEP_DATABASE"))
        name = f"test_{usual}" if stays else f"test_simulation_{os.getpid()}"
        connection.settings_dict["TEST"]["NAME"] = name
        connection.creation.create_test_db(verbosity=0, autoclobber=True, keepdb=stays)
        self._after.callback(connection.creation.destroy_test_db, usual, verbosity=0, keepdb=stays)
        empty()
        self._after.enter_context(movable())
        self._folder = Path(self._after.enter_context(tempfile.TemporaryDirectory()))
        settings.WITNESS_DIR = self._folder / "witness"
        registry.accounts.cache_clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._after.close()

    def play(self, seed: int) -> tuple[list[str], Counter[str]]:
        """What was wrong, and what happened, by name."""
        book = self._folder / f"book-{seed}.sqlite3"
        found, what = played(seed, book)
        book.unlink()  # the same seed may be asked for again
        empty()
        return found, what


def empty() -> None:
    """Nothing of the last schedule is left."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names()
        cursor.execute("".join(emptying.statements(tables)))
    cache.clear()
    policies.current.cache_clear()
    witness.forget()


def played(seed: int, book: Path) -> tuple[list[str], Counter[str]]:
    """The schedule of this seed, on an empty ledger."""
    provider = SandboxHere(book)
    try:
        world = World(provider, assemble(), seed)
        wrong = world.run(faults) + [f"{RAISED}{each}" for each in world.raised]
        if wrong and os.environ.get("TRACE"):
            wrong += world.told
    finally:
        provider.stop()
    events = Event.objects.values_list("event", flat=True)
    seen = Counter(f"event {name}" for name in events)
    acts = Counter(f"act {each}" for each in world.acts.elements())
    cuts = Counter(f"commit {each}" for each in world.cuts.struck.elements())
    return wrong, seen + world.wire.fates + world.postbox.fates + acts + cuts
