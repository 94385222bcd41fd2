"""One lookup: take a number, ask with no transaction open, store the finding, then decide.

The finding is stored whoever asked and whatever follows; it may decide only if its number is
above the last one that did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from reconciliation import budget
from reconciliation.matching import Finding, Verdict, match
from refunds.dispatch import expected_of
from refunds.ledger import connections, database_now
from refunds.ledger.sending import pause
from refunds.models import Attempt, Evidence, Operation, ProviderRefund
from refunds.providers import registry
from refunds.providers.base import Account
from refunds.providers.listing import Listing, read_payment

# While one worker asks, sweeps leave the operation alone for so long.
_ASKING_SECONDS = 60
_REFUSED = "The provider refused the credential for a lookup (401 or 403)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A stored lookup: its number, its evidence row and what it found."""

    no: int
    evidence_id: int
    finding: Finding
    started_at: datetime


_NEXT_NUMBER = """
UPDATE operation SET lookup_started = lookup_started + 1,
  due_at = CASE WHEN state = 'submitting' THEN due_at  -- the end of its lease
                ELSE clock_timestamp() + %(asking)s * interval '1 second' END
WHERE id = %(id)s RETURNING lookup_started
"""


def take_number(operation_id: UUID) -> int | None:
    """The next lookup number of an operation, committed; None when there is no such operation."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_NUMBER, {"id": operation_id, "asking": _ASKING_SECONDS})
        row = cursor.fetchone()
    return row[0] if row else None


def ask(operation: Operation, no: int) -> Looked:
    """Ask the provider about one operation and store the finding."""
    started_at = database_now()
    account = registry.account(operation.provider_account)
    attempts = list(Attempt.objects.filter(operation=operation).order_by("no"))
    listing = _read(operation, account, attempts)
    if listing.pages:
        budget.note(account.name, ambiguous=not listing.complete)
    if listing.credential_refused:
        # What may not be asked must not be sent either: a revoked key would make unknowns only.
        pause(account.name, kind="credential", reason=_REFUSED, by="reconciler")
    finding = match(
        listing.records,
        expected_of(operation),
        complete=listing.complete,
        why_incomplete=listing.because,
        known_refs=known_refs(operation),
        first_recorded_at=attempts[0].recorded_at if attempts else operation.created_at,
        others_refs=None if account.contract.markers_returned else _others_refs(operation),
    )
    finding = replace(finding, gone=listing.gone)
    evidence = Evidence.objects.create(
        operation=operation,
        kind="lookup",
        lookup_no=no,
        started_at=started_at,
        body=listing.body,
        facts={
            "verdict": str(finding.verdict),
            "because": finding.because,
            "method": "list of the payment's refunds",
            "complete": listing.complete,
            "pages": listing.pages,
            "account": account.identity(),
            "candidates": [each.facts() for each in finding.candidates],
        },
    )
    return Looked(no=no, evidence_id=evidence.pk, finding=finding, started_at=started_at)


def known_refs(operation: Operation) -> frozenset[str]:
    """References of the refunds that are booked or accepted for this operation."""
    booked = ProviderRefund.objects.filter(operation=operation).values_list("ref", flat=True)
    return frozenset(booked)


def _others_refs(operation: Operation) -> frozenset[str]:
    """References of the refunds of the same payment that are booked for other operations."""
    booked = ProviderRefund.objects.filter(payment=operation.payment, operation__isnull=False)
    return frozenset(booked.exclude(operation=operation).values_list("ref", flat=True))


def _read(operation: Operation, account: Account, attempts: list[Attempt]) -> Listing:
    if account.contract.lookup == "none":
        return _cannot("this account has no lookup")
    if not account.credential:
        return _cannot(f"no credential is set for {account.name}")
    if any(not _same(each.account_identity, account.identity()) for each in attempts):
        return _cannot("the account, mode, address or API version is not the one we sent to")
    refs = known_refs(operation)
    connections.let_go()
    return read_payment(
        account,
        operation.payment.ref,
        known_ref=min(refs) if refs else None,
        pages_max=settings.LIMITS.lookup_pages_max,
        total_seconds=settings.LIMITS.call_total_seconds,
        body_bytes_max=settings.LIMITS.answer_bytes_max,
    )


def _same(recorded: dict[str, Any], today: dict[str, Any]) -> bool:
    """Whether an attempt went to this account; older ones named no API version, and asked for none."""
    return today | {k: v for k, v in recorded.items() if k != "api_version" or v} == today


def _cannot(because: str) -> Listing:
    return Listing(records=(), complete=False, pages=0, because=because, body=b"")


INCONCLUSIVE = frozenset({Verdict.ABSENT, Verdict.CANNOT_TELL})
