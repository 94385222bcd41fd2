"""Sends that met a fault, and what was looked up and accepted after them."""

from __future__ import annotations

from reconciliation import reconciler
from refunds import accepting, dispatch
from refunds.models import AcceptedFact, Operation
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess


def sent_with(
    provider: SandboxProcess,
    cast: Cast,
    fault: str,
    account: str = "plain-main",
    *,
    ref: str = "4821",
    amount_minor: int = 4000,
    **options: object,
) -> Operation:
    """An approved refund whose send met this fault."""
    provider.payment(f"pi_{ref}", account=account)
    build.order(ref, account=account)
    operation = build.authorized(cast.omar, cast.ben, order_ref=ref, amount_minor=amount_minor)
    provider.fault(fault, account=account, **options)  # type: ignore[arg-type]
    dispatch.send(str(operation.pk))
    operation.refresh_from_db()
    return operation


def looked_up(operation: Operation, times: int = 1) -> list[str]:
    """What each of so many lookups decided, in a word; the operation is read again."""
    said = [reconciler.look_up(operation.pk) for _ in range(times)]
    operation.refresh_from_db()
    return said


def sent_again(operation: Operation) -> str:
    """What the money queue makes of its bell for one more send."""
    said = dispatch.resend(str(operation.pk))
    operation.refresh_from_db()
    return said


def accepted(
    cast: Cast, account: str, fact: str, seconds: int, scope: str, days: int = 30
) -> AcceptedFact:
    """A figure that two people accepted."""
    reason = "a letter of the provider, 12 March"
    row = accepting.propose(account, fact, seconds, scope, reason=reason, days=days, by=cast.ines)
    return accepting.confirm(row.pk, by=cast.ava)
