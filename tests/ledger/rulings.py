"""Scenes for rulings: cases as they come about, and people who sign."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from reconciliation import lookup, reconciler, resolutions, statements
from reconciliation.cases import open_case
from reconciliation.choices import Said
from reconciliation.choices import Testimony as Told
from reconciliation.models import Case, Ruling
from reconciliation.ruling_room import seen
from refunds import dispatch
from refunds.ledger import lock
from refunds.models import Attempt, Operation, Person
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

REASON = "Read in the provider's own dashboard, line by line."
PDF = b"%PDF-1.7\nThe provider's statement of November.\n%%EOF\n"


def unknown_with_case(
    provider: SandboxProcess,
    cast: Cast,
    *,
    account: str = "plain-main",
    fault: str = "drop_before_commit",
    amount_minor: int = 4000,
    ref: str = "4821",
) -> Case:
    """A refund of fay's whose answer was lost, looked at once, and now a person's to find out."""
    provider.payment(f"pi_{ref}", account=account)
    build.order(ref, account=account)
    operation = build.authorized(cast.fay, cast.ben, order_ref=ref, amount_minor=amount_minor)
    provider.fault(fault, account=account)
    dispatch.send(str(operation.pk))
    Operation.objects.filter(pk=operation.pk).update(
        unknown_since=timezone.now() - timedelta(hours=25)
    )
    reconciler.look_up(operation.pk)
    return asked(operation)


def asked(operation: Operation) -> Case:
    """The case of an operation; where the machine has patience left, it is asked for now."""
    if not Case.objects.filter(operation=operation, closed_at=None).exists():
        opened(operation, "unresolved")
    return Case.objects.get(operation=operation, closed_at=None)


def quiet_is_over(operation: Operation) -> None:
    """Its sender is known to have stopped long ago: what it wrote would show by now."""
    stopped = timezone.now() - timedelta(minutes=5)
    Attempt.objects.filter(operation=operation).update(stop_proof_at=stopped)


def looked(operation: Operation) -> None:
    """A lookup that was stored, whose worker did not come to decide on it."""
    no = lookup.take_number(operation.pk)
    assert no is not None
    lookup.ask(Operation.objects.select_related("payment").get(pk=operation.pk), no)


def attached(case: Case, by: Person, content: bytes = PDF) -> None:
    statements.attach(case, statements.stored(content), name="november.pdf", by=by, intent=None)


def told(ref: str, amount_minor: int = 4000, currency: str = "USD") -> Told:
    return Told(
        ref=ref,
        amount_minor=amount_minor,
        currency=currency,
        provider_status="succeeded",
        created="2026-11-29T14:02:11Z",
        where_seen="dashboard, payments",
    )


def screen(case: Case) -> dict[str, Any]:
    """What the case's page carries in its forms now."""
    fresh = Case.objects.select_related(
        "operation__order", "operation__payment", "payment__order"
    ).get(pk=case.pk)
    return {
        "version": fresh.version,
        "shown_digest": seen(fresh, timezone.now()).screen_digest,
    }


def ruled(case: Case, by: Person, choice: str, **more: Any) -> Ruling:
    """The first signature, on what the screen shows now."""
    confirmed = more.pop("confirmed_minor", None)
    values = {"reason": REASON, **screen(case), **more.pop("screen", {})}
    if confirmed is None and case.operation is not None:
        confirmed = more.get("amount_minor") or case.operation.amount_minor
    said = Said(choice=choice, **more)
    return resolutions.rule(case.pk, by, said, confirmed_minor=confirmed, **values)


def signed(ruling: Ruling, by: Person) -> Ruling:
    """The second signature, on what the screen shows now."""
    return resolutions.sign(ruling.pk, by, **screen(ruling.case))


def opened(operation: Operation, reason: str) -> Case:
    """A case of another reason, opened as the machine would."""
    with transaction.atomic():
        return open_case(lock(operation.pk), reason, "Opened by the scene.")
