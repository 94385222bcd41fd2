"""A program whose threads share connections: none is kept while nothing is asked."""

from __future__ import annotations

from django.db import connection


def let_go() -> None:
    """Give this thread's connection back before it waits for somebody else, a provider say. Where
    each thread keeps its own, nothing happens.

    Fewer connections than threads are enough then, and each of them, with the plans that it keeps,
    is in use all the time.
    """
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()
