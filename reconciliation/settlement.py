"""Comparing a settlement report with the ledger: missing, extra and different become cases (R26).

A report settles nothing by itself: what it shows of a refund of ours that has no end yet makes
that refund due for a lookup.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from reconciliation import outside
from reconciliation.cases import open_case, open_payment_case
from reconciliation.models import SettlementCover, SettlementLine
from reconciliation.settlement_csv import Line
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.money import display
from refunds.domain.outcome import RefundRecord
from refunds.ledger import lock
from refunds.ledger.external import LOST_DISPUTE, NOT_PAID, lock_payments
from refunds.models import ProviderRefund
from refunds.providers.account_list import ListedRefund

MATCH, DIFFERENT, EXTRA, MISSING = "match", "different", "extra", "missing"


def take(line: Line) -> str:
    """Compare one line and store it with what came of it; returns the verdict, "" if it is known.

    Raises Refusal line_changed: the same refund stood in the same report with other content.
    """
    assert not transaction.get_connection().in_atomic_block, "an unknown refund is learned first"
    known = SettlementLine.objects.filter(
        provider_account=line.provider_account,
        provider_refund_ref=line.provider_refund_ref,
        report_ref=line.report_ref,
    ).first()
    if known is not None:
        _require_same(known, line)
        return ""
    verdict, row = MATCH, _row(line)
    if row is None or _in_doubt(row):
        verdict = EXTRA if row is None else MATCH
        outside.learn(line.provider_account, _listed(line))
    with transaction.atomic():
        because = _compared(line) if verdict == MATCH else ""
        if because:
            verdict = DIFFERENT
        values = asdict(line)
        values["provider_created_at"] = values.pop("created_at")
        SettlementLine.objects.create(**values, verdict=verdict, because=because[:300])
    return verdict


def missing(account: str, since: datetime, until: datetime) -> list[str]:
    """Ask a person about every refund of the account that we count, made in that time, and that no
    report has; once for each. Returns their references.

    That the reports have all of that time is remembered: the standing check holds later refunds,
    and what people say of them, against it.
    """
    SettlementCover.objects.get_or_create(
        provider_account=account, covered_from=since, covered_until=until
    )
    reported = SettlementLine.objects.filter(provider_account=account)
    rows = (
        ProviderRefund.objects.filter(
            provider_account=account,
            counts=True,
            provider_created_at__gte=since,
            provider_created_at__lte=until,
        )
        .exclude(ref__in=reported.values("provider_refund_ref"))
        .exclude(provider_status=LOST_DISPUTE)
        .select_related("payment", "operation")
    )
    return [_missed(row, until) for row in rows.iterator()]


@transaction.atomic
def _missed(row: ProviderRefund, until: datetime) -> str:
    because = (
        f"{row.ref} is booked with {display(row.amount_minor, row.payment.currency)}, and no"
        f" settlement report until {until:%Y-%m-%d %H:%M} UTC has it."
    )
    _ask(row, "contradiction", because)
    SettlementLine.objects.create(
        provider_account=row.provider_account,
        provider_refund_ref=row.ref,
        payment_ref=row.payment.ref,
        amount_minor=row.amount_minor,
        currency=row.payment.currency,
        provider_status=row.provider_status,
        provider_created_at=row.provider_created_at,
        verdict=MISSING,
        because=because[:300],
    )
    return row.ref


def _row(line: Line) -> ProviderRefund | None:
    return (
        ProviderRefund.objects.filter(
            provider_account=line.provider_account, ref=line.provider_refund_ref
        )
        .select_related("payment", "operation")
        .first()
    )


def _in_doubt(row: ProviderRefund) -> bool:
    """Whether it is of an operation without an end: what the report says makes that one due."""
    return row.operation is not None and row.operation.state in states.UNCERTAIN


def _compared(line: Line) -> str:
    """What differs from our record, "" for nothing; records what was settled, and asks a person."""
    row = _row(line)
    assert row is not None, "a refund is never forgotten"
    if _is_newest(line):
        ProviderRefund.objects.filter(pk=row.pk).update(
            settled_minor=line.settled_minor,
            settled_currency=line.settled_currency,
            fee_minor=line.fee_minor,
        )
    wrong = _differences(row, line)
    if not wrong:
        return ""
    because = f"The settlement report {line.report_ref} differs about {row.ref}: {wrong}."
    _ask(row, "mismatch", because)
    return because


def _is_newest(line: Line) -> bool:
    """Whether no report that was stored before tells of a later settlement of this refund.

    Reports are imported in any order; one without an instant speaks for when it comes in.
    """
    stored = SettlementLine.objects.filter(
        provider_account=line.provider_account, provider_refund_ref=line.provider_refund_ref
    ).exclude(verdict=MISSING)
    at = line.settled_at or timezone.now()
    return not stored.filter(Q(settled_at__gt=at) | Q(settled_at=None, imported_at__gt=at)).exists()


def _differences(row: ProviderRefund, line: Line) -> str:
    ours = display(row.amount_minor, row.payment.currency)
    theirs = display(line.amount_minor, line.currency)
    said = [f"{theirs} instead of {ours}"] if ours != theirs else []
    if row.payment.ref != line.payment_ref:
        said.append(f"payment {line.payment_ref} instead of {row.payment.ref}")
    paid = line.provider_status.strip().lower() not in NOT_PAID
    if row.counts != paid and not _in_doubt(row):
        said.append(
            f"status {line.provider_status}, and we {'do' if row.counts else 'do not'} count it"
        )
    return "; ".join(said)


def _ask(row: ProviderRefund, reason: str, because: str) -> None:
    """A case about the operation of this refund, or about its payment where nobody here made it."""
    if row.operation_id is not None:
        open_case(lock(row.operation_id), reason, because)
        return
    [payment] = lock_payments(row.payment).values()
    open_payment_case(payment, "external", because)


def _listed(line: Line) -> ListedRefund:
    return ListedRefund(
        record=RefundRecord(
            ref=line.provider_refund_ref,
            payment_ref=line.payment_ref,
            amount_minor=line.amount_minor,
            currency=line.currency,
            provider_status=line.provider_status,
            marker=line.marker or None,
            created_at=line.created_at,
        ),
        payment_refs=(line.payment_ref,),
    )


def _require_same(known: SettlementLine, line: Line) -> None:
    before = (known.payment_ref, known.amount_minor, known.currency, known.provider_status)
    now = (line.payment_ref, line.amount_minor, line.currency, line.provider_status)
    if before != now:
        raise Refusal(
            "line_changed",
            f"{line.provider_refund_ref} stood in report {line.report_ref} with other content.",
            status=409,
            what_to_do="Give a corrected report a name of its own.",
            field="report_ref",
        )
