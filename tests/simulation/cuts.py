"""The connection to the database breaks at a commit, before it took place or after.

The caller sees the same error either way. What took place stays, and what did not is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection

_WRITES = ("INSERT INTO", "UPDATE ", "DELETE FROM")


@dataclass
class Cuts:
    """Within `striking`, each commit asks `fate`: good, cut_before or cut_after."""

    fate: Callable[[], str]
    struck: Counter[str] = field(default_factory=Counter)
    _strikes: bool = False

    @contextmanager
    def striking(self) -> Iterator[None]:
        """Nested turns of others are struck as their own; outside nothing is."""
        before, self._strikes = self._strikes, True
        try:
            yield
        finally:
            self._strikes = before

    def __enter__(self) -> Cuts:
        self._commit = connection._commit  # type: ignore[attr-defined]
        connection._commit = self._committing  # type: ignore[attr-defined]
        self._wrapper = connection.execute_wrapper(self._executing)
        self._wrapper.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._wrapper.__exit__(*exc)
        connection._commit = self._commit  # type: ignore[attr-defined]

    def _executing(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """A statement outside a transaction is its own commit."""
        writes = any(each in str(sql) for each in _WRITES)
        if connection.in_atomic_block or not writes:
            return execute(sql, params, many, context)
        return self._struck(lambda: execute(sql, params, many, context))

    def _committing(self) -> Any:
        return self._struck(self._commit)

    def _struck(self, commit: Callable[[], Any]) -> Any:
        fate = self.fate() if self._strikes else "good"
        if fate == "cut_before":
            self._cut(fate)
        done = commit()
        if fate == "cut_after":
            self._cut(fate)
        return done

    def _cut(self, fate: str) -> None:
        self.struck[fate] += 1
        assert connection.connection is not None, "a commit has its connection"
        connection.connection.close()
        raise OperationalError(f"the connection is gone ({fate})")
