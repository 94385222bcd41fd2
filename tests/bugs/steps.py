"""Steps that many rows begin or end with."""

from __future__ import annotations

from typing import Any

from reconciliation.models import Case
from refunds import dispatch
from refunds.domain import states
from refunds.models import Operation, Payment, Person
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess


def authorized(
    provider: SandboxProcess,
    cast: Cast,
    account: str = "plain-main",
    *,
    amount_minor: int = 7900,
    captured_minor: int = 12900,
    currency: str = "USD",
    approvers: tuple[Person, ...] | None = None,
) -> Operation:
    """One payment at the provider and here, and an approved refund of it."""
    provider.payment(account=account, captured_minor=captured_minor, currency=currency)
    build.order(account=account, captured_minor=captured_minor, currency=currency)
    return build.authorized(
        cast.echo, *(approvers or (cast.ben,)), amount_minor=amount_minor, currency=currency
    )


def answer_lost(
    provider: SandboxProcess, cast: Cast, account: str = "plain-main", **more: Any
) -> Operation:
    """A refund that the provider executed and whose answer nobody got: unknown."""
    operation = authorized(provider, cast, account, **more)
    provider.fault("drop_after_commit", account=account)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    return operation


def state_of(operation: Operation) -> str:
    """The stored state, read back."""
    operation.refresh_from_db()
    return operation.state


def creates(provider: SandboxProcess, account: str = "plain-main") -> list[dict[str, Any]]:
    """Every request to make a refund that reached the provider, executed or not."""
    return [call for call in provider.calls(account) if call["on"] == "create"]


def balance_of(ref: str = "pi_4821") -> tuple[int, int, int]:
    """(held, refunded, available) of a payment, in minor units."""
    payment = Payment.objects.get(ref=ref)
    return payment.held_minor, payment.refunded_minor, payment.available_minor


def open_reasons(operation: Operation) -> list[str]:
    """The reasons of the operation's open case; empty when there is none."""
    case = Case.objects.filter(operation=operation, closed_at=None).first()
    return list(case.reasons) if case else []


def events_of(operation: Operation) -> list[str]:
    """The names of its moves, oldest first."""
    return list(operation.events.order_by("seq").values_list("event", flat=True))
