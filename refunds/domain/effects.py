"""The effects on others, all of them, declared in one place: what can move money, and what tells.
Pure.

The wire refuses a request that is not a reading and names no effect of this table
(`refunds.providers.http`), and a test walks the sources for other ways out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

READINGS: Final = frozenset({"GET", "HEAD"})


class UndeclaredEffect(Exception):
    """A request that may change something elsewhere is not declared here. Nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect. `adapter_method` builds its request; `started_by` is the only caller of that.

    `committed_before`: the events of the state table, one of which, with its attempt, is committed
    before the request leaves; empty for what moves no money, whose own row is committed then.
    """

    name: str
    adapter_method: str
    started_by: str
    committed_before: tuple[str, ...] = ()


REFUND_CREATE: Final = Effect(
    name="refund.create",
    adapter_method="create_refund",
    started_by="refunds.dispatch",
    committed_before=("submission_started", "resubmitted"),
)
MESSAGE_POST: Final = Effect(
    name="message.post",
    adapter_method="signed_post",
    started_by="reconciliation.outbox_sending",
)
EFFECTS: Final = (REFUND_CREATE, MESSAGE_POST)


def require_declared(http_method: str, effect: Effect | None) -> None:
    """Raise UndeclaredEffect unless this is a reading, or an effect of this table."""
    if effect is None and http_method in READINGS:
        return
    if effect not in EFFECTS:
        name = effect.name if effect else "no effect"
        raise UndeclaredEffect(f"{http_method} names {name}; declare it in refunds/domain/effects")
