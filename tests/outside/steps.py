"""Steps of the tests about what happens at the provider without us."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from reconciliation import account_sweep, reconciler
from reconciliation.models import Case
from refunds import feed
from refunds.domain.outcome import RefundRecord
from refunds.models import Operation, Order
from refunds.providers.account_list import ListedRefund
from tests.bugs.history import let_pass
from tests.provider_process import SandboxProcess

DAY = 86_400


def by_hand(
    provider: SandboxProcess,
    amount_minor: int = 3000,
    *,
    account: str = "plain-main",
    payment: str = "pi_4821",
) -> str:
    """Somebody refunds in the provider's dashboard; the reference."""
    fields = {"account": account, "payment": payment, "amount_minor": amount_minor}
    made: str = provider.control("POST", "/external_refund", fields)["id"]
    return made


def turn(provider: SandboxProcess, ref: str, status: str) -> None:
    """The refund has another status at the provider from now on."""
    provider.control("POST", f"/refunds/{ref}/status", {"to": status})


def dispute(provider: SandboxProcess, state: str, account: str = "plain-main") -> None:
    """A dispute of the payment is opened, won or lost."""
    fields = {"account": account, "payment": "pi_4821", "state": state}
    provider.control("POST", "/dispute", fields)


def history(provider: SandboxProcess, *refunds: dict[str, Any]) -> None:
    """Refunds that stand in the provider's book, with any marker and instant."""
    provider.control("POST", "/history", {"refunds": list(refunds)})


def past(
    ref: str,
    *,
    amount_minor: int = 3000,
    marker: str | None = None,
    payment: str = "pi_4821",
    account: str = "plain-main",
) -> dict[str, Any]:
    """One refund of a minute ago, for `history`."""
    return {
        "id": ref,
        "account": account,
        "payment": payment,
        "amount_minor": amount_minor,
        "marker": marker,
        "statuses": [[timezone.now().isoformat(), "succeeded"]],
    }


def later(provider: SandboxProcess, seconds: float) -> None:
    """So much time goes by, at the provider and here."""
    let_pass(seconds)
    provider.advance(seconds)


def tick() -> list[str]:
    """One tick of the schedule: the lists that are due are read, and what is due looked up."""
    outcomes = []
    for name in account_sweep.ring_for_due(timezone.now()):
        outcomes += account_sweep.sweep_account(name)
    look_up_due()
    return outcomes


def look_up_due() -> None:
    for operation_id in list(reconciler.due(timezone.now(), batch_max=100)):
        reconciler.look_up(Operation.objects.get(pk=operation_id).pk)


def causes(ref: str = "4821") -> list[str]:
    """Why the order moved, oldest first."""
    return [each.cause for each in Order.objects.get(ref=ref).moves.order_by("version")]


def cases() -> list[tuple[list[str], bool]]:
    """Every open case: its reasons, and whether it is about an operation."""
    found = Case.objects.filter(closed_at=None).order_by("pk")
    return [(each.reasons, each.operation_id is not None) for each in found]


def feed_again(ref: str = "4821", **facts: Any) -> feed.Fed:
    """The merchant's feed sends the order as of now."""
    order = Order.objects.get(ref=ref)
    snapshot = feed.OrderSnapshot(
        ref=ref, currency=order.currency, facts_as_of=timezone.now(), **facts
    )
    return feed.upsert(snapshot, by="shop")


def listed(ref: str, status: str = "succeeded", amount_minor: int | None = 3000) -> ListedRefund:
    """A refund of the payment as a list shows it."""
    record = RefundRecord(
        ref=ref,
        payment_ref="pi_4821",
        amount_minor=amount_minor,
        currency="USD",
        provider_status=status,
        marker=None,
        created_at=timezone.now(),
    )
    return ListedRefund(record=record, payment_refs=("pi_4821",))
