"""A message is a bell: "look at operation 41". Losing every one of them costs latency only."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import transaction

log = structlog.get_logger(__name__)

Bell = Callable[[str, str, float], None]
_bells: list[Bell] = []


def connect(bell: Bell) -> None:
    """Give the callable that puts (task name, operation or notice id, delay in seconds) on a
    queue. Without an id the task finds by itself what to do."""
    _bells[:] = [bell]


def ring_send(operation_id: object, after_seconds: float = 0) -> None:
    """After the commit: tell a worker of the money queue that this operation may be ready."""
    _ring_on_commit("refunds.tasks.send", operation_id, after_seconds)


def ring_ready() -> None:
    """Now: tell a worker of the money queue that something is ready, whatever it is."""
    _ring("refunds.tasks.send_ready", "", 0)


def ring_resend(operation_id: object) -> None:
    """After the commit: tell a worker of the money queue that this operation may be sent again."""
    _ring_on_commit("refunds.tasks.resend", operation_id, 0)


def ring_lookup(operation_id: object, after_seconds: float = 0) -> None:
    """After the commit: tell a worker of the lookup queue that this operation is due."""
    _ring_on_commit("reconciliation.tasks.look_up", operation_id, after_seconds)


def ring_account_sweep(account: str) -> None:
    """After the commit: tell a worker of the lookup queue that this account's lists are due."""
    _ring_on_commit("reconciliation.tasks.sweep_account", account, 0)


def ring_notice(notice_id: object) -> None:
    """After the commit: tell a worker of the lookup queue that a notice came."""
    _ring_on_commit("reconciliation.tasks.apply_notice", notice_id, 0)


def _ring_on_commit(task: str, operation_id: object, after_seconds: float) -> None:
    transaction.on_commit(lambda: _ring(task, str(operation_id), after_seconds))


def _ring(task: str, operation_id: str, after_seconds: float) -> None:
    for bell in _bells:
        try:
            bell(task, operation_id, after_seconds)
        except Exception as error:
            # Whatever the broker's library raises, the decision is committed and the sweep
            # finds it within seconds; failing the caller's request would say the opposite.
            log.warning("bell_not_heard", task=task, operation=operation_id, error=repr(error))
