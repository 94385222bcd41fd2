"""Refusals as values of one shape: a stable code, a sentence, and what to do next."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A named error at the edge; nothing was changed.

    `code` and `status` are those of the API table; `what_to_do` is a sentence for the caller;
    `field` names the input that is wrong; `operation_id` points at an existing operation.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int = 422,
        what_to_do: str = "",
        field: str | None = None,
        operation_id: object = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = status
        self.what_to_do = what_to_do
        self.field = field
        self.operation_id = operation_id
        self.facts = facts or {}


class StaleOperation(Exception):
    """The compare-and-swap found no row: somebody else moved the operation first."""


class CommitUnknown(Exception):
    """The database did not confirm a commit. Rule 2: nothing may be sent on it."""


class ClaimRefused(Exception):
    """The claim statement found no row: at least one of its conditions does not hold."""
