"""The steps of a trace, as sentences with a verb for each."""

from __future__ import annotations

import re
from collections.abc import Callable


class Script:
    """`said` does what a sentence says; the groups of its pattern are given to its verb."""

    def __init__(self, verbs: dict[str, Callable[..., object]]) -> None:
        self._verbs = [(re.compile(pattern), verb) for pattern, verb in verbs.items()]

    def said(self, step: str) -> object:
        """Raises AssertionError for a sentence that nobody knows."""
        for pattern, verb in self._verbs:
            if found := pattern.fullmatch(step):
                return verb(*found.groups())
        raise AssertionError(f"no such step: {step!r}")
