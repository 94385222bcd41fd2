"""What a second program can be told to do: the product's own verbs, with plain arguments."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from reconciliation import reconciler, sweep
from refunds import approvals, dispatch, intake
from refunds.consent import Shown
from refunds.domain.errors import Refusal
from refunds.ledger import Sibling
from refunds.models import Agent, Person
from refunds.providers import http


def approve(
    *,
    operation: str,
    person: str,
    fingerprint: str,
    order_version: int,
    siblings: list[tuple[str, int]],
) -> str:
    shown = Shown(
        fingerprint=bytes.fromhex(fingerprint),
        order_version=order_version,
        siblings=tuple(Sibling(UUID(id_), minor) for id_, minor in siblings),
        separate_refund_confirmed=True,
    )
    approvals.approve(UUID(operation), Person.objects.get(username=person), shown)
    return "approved"


def propose(
    *, request: dict[str, Any], agent: str | None = None, person: str | None = None
) -> list[str]:
    caller = intake.Caller(
        agent=Agent.objects.get(name=agent) if agent else None,
        person=Person.objects.get(username=person) if person else None,
    )
    found = intake.propose(intake.ProposalRequest(**request), caller)
    return [found.outcome, str(found.operation.pk)]


def send(*, operation: str, at_the_wire: str | None = None) -> str:
    """`at_the_wire`: a signal this program gives itself between its claim and the call."""
    if at_the_wire is None:
        return dispatch.send(operation)
    with _signalled_at_the_wire(signal.Signals[at_the_wire]):
        return dispatch.send(operation)


@contextmanager
def _signalled_at_the_wire(number: signal.Signals) -> Iterator[None]:
    real = http.call

    def call(*args: Any, **options: Any) -> Any:
        os.kill(os.getpid(), number)
        return real(*args, **options)

    http.call = call
    try:
        yield
    finally:
        http.call = real


def look_up(*, operation: str) -> str:
    return reconciler.look_up(UUID(operation))


def end_leases() -> int:
    return sweep.end_leases(timezone.now())


def ready() -> list[str]:
    return dispatch.ready(10)


VERBS: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each for each in (approve, propose, send, look_up, end_leases, ready)
}


def answer(line: str) -> dict[str, Any]:
    """What the verb returned, or the refusal it ended in; anything else ends the program."""
    order = json.loads(line)
    try:
        return {"result": VERBS[order.pop("verb")](**order)}
    except Refusal as refusal:
        return {
            "refused": refusal.code,
            "detail": refusal.detail,
            "facts": refusal.facts,
            "operation": str(refusal.operation_id),
        }
