"""Refunds of one order side by side, for the rules of siblings."""

from __future__ import annotations

from refunds import approvals, dispatch
from refunds.domain import states
from refunds.models import Operation, Person
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

PARCELS = (1200, 1850, 725)


def proposals(provider: SandboxProcess, cast: Cast, *amounts: int) -> list[Operation]:
    """Proposals of one order, none of them decided."""
    provider.payment(captured_minor=90_000)
    build.order(captured_minor=90_000)
    return [build.proposed(cast.omar, amount_minor=minor) for minor in amounts or PARCELS]


def approved(by: Person, *operations: Operation) -> None:
    """Each approved on the picture of now, its siblings with it."""
    for operation in operations:
        approvals.approve(operation.pk, by, build.shown(operation, tick=True))


def said(*operations: Operation) -> list[str]:
    """What sending each of them led to, one after the other."""
    return [dispatch.send(str(operation.pk)) for operation in operations]


def ended_by(operation: Operation) -> tuple[str, str]:
    operation.refresh_from_db()
    return operation.state, operation.stale_cause


LAPSED = (states.AWAITING_APPROVAL, "order_changed")
