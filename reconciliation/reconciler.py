"""Applying decisions: one transaction under the row locks, fenced by the lookup's number."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from reconciliation.booking import Booked, book_found, book_surplus
from reconciliation.cases import close_by_evidence, open_case
from reconciliation.decide import (
    AttemptView,
    Decision,
    LookUpAgain,
    OpenCase,
    Rest,
    Settle,
    View,
    decide,
    next_look,
)
from reconciliation.lookup import INCONCLUSIVE, Looked, ask, take_number
from reconciliation.matching import Finding, Verdict, match
from reconciliation.models import Case
from refunds import doorbell
from refunds.dispatch import expected_of
from refunds.domain import states
from refunds.domain.outcome import RefundRecord
from refunds.ledger import RECONCILER, Locked, bump, hold_again, lock, release, transition
from refunds.models import Attempt, Evidence, Operation, ProviderRefund
from refunds.providers import registry
from refunds.providers.base import instant

log = structlog.get_logger(__name__)


def look_up(operation_id: UUID) -> str:
    """Ask about one operation and do what follows; returns the decision in a word.

    An operation whose reading fails three times becomes a `poison` case; the failure is raised
    all the same.
    """
    no = take_number(operation_id)
    if no is None:
        return "gone"
    operation = Operation.objects.select_related("payment").get(pk=operation_id)
    try:
        looked = ask(operation, no)
        return conclude(operation_id, looked)
    except Exception:
        _count_failure(operation_id)
        raise


def conclude(operation_id: UUID, looked: Looked) -> str:
    """Decide on a stored finding, under the locks, if no later one has decided already."""
    with transaction.atomic():
        locked = lock(operation_id)
        if looked.no <= locked.operation.lookup_applied:
            return "overtaken"
        decision = _decide(locked, looked.finding)
        _apply(locked, decision, looked)
        return type(decision).__name__


def _decide(locked: Locked, finding: Finding) -> Decision:
    operation = locked.operation
    account = registry.account(operation.provider_account)
    if finding.verdict in INCONCLUSIVE:
        finding = _from_answers(operation) or finding
    return decide(
        view_of(operation),
        finding,
        contract=account.contract,
        words=registry.adapter(account).words,
        limits=settings.LIMITS,
        now=timezone.now(),
    )


def view_of(operation: Operation) -> View:
    """The operation as `decide` sees it."""
    attempts = Attempt.objects.filter(operation=operation).order_by("no")
    inconclusive = Evidence.objects.filter(
        operation=operation,
        kind="lookup",
        facts__verdict__in=[str(each) for each in INCONCLUSIVE],
    ).values_list("started_at", flat=True)
    booked = ProviderRefund.objects.filter(operation=operation, counts=True).first()
    return View(
        state=operation.state,
        entered_at=operation.entered_at,
        unknown_since=operation.unknown_since,
        attempts=tuple(
            AttemptView(
                no=each.no,
                outcome=each.outcome,
                recorded_at=each.recorded_at,
                send_deadline=each.send_deadline,
                stop_proof_at=each.stop_proof_at,
                settled_by_evidence=each.settled_by_evidence is not None,
            )
            for each in attempts
        ),
        has_case=Case.objects.filter(operation=operation, closed_at=None).exists(),
        inconclusive_at=tuple(inconclusive),
        booked_ref=booked.ref if booked else None,
    )


def _from_answers(operation: Operation) -> Finding | None:
    """What our own stored answers show: they decide where no lookup can (and beside one)."""
    answers = Evidence.objects.filter(operation=operation, kind="answer").exclude(facts__ref=None)
    records = {each.facts["ref"]: _record_of(each.facts) for each in answers}
    if not records:
        return None
    first = Attempt.objects.filter(operation=operation).order_by("no").first()
    finding = match(
        records.values(),
        expected_of(operation),
        complete=True,
        why_incomplete="",
        known_refs=frozenset(records),
        first_recorded_at=first.recorded_at if first else operation.created_at,
    )
    return None if finding.verdict is Verdict.ABSENT else finding


def _record_of(facts: dict[str, object]) -> RefundRecord:
    amount = facts["amount_minor"]
    return RefundRecord(
        ref=str(facts["ref"]),
        payment_ref=str(facts["payment_ref"]),
        amount_minor=amount if isinstance(amount, int) else None,
        currency=str(facts["currency"]) if facts["currency"] else None,
        provider_status=str(facts["provider_status"]),
        marker=str(facts["marker"]) if facts["marker"] else None,
        created_at=instant(facts.get("created_at")),
    )


def _apply(locked: Locked, decision: Decision, looked: Looked) -> None:
    operation = locked.operation
    match decision:
        case Settle(event, because, record, surplus):
            if surplus:
                open_case(locked, "duplicate", because)
            _settle(locked, event, because, record, looked)
            _count_surplus(locked, surplus)
        case OpenCase(reason, because, surplus):
            open_case(locked, reason, because)
            _count_surplus(locked, surplus)
            _applied(operation, looked, _slow_look(operation))
        case LookUpAgain(at):
            # Findings that conclude nothing do not raise the fence; they only move the clock.
            Operation.objects.filter(pk=operation.pk).update(due_at=_jittered(at))
        case Rest():
            close_by_evidence(locked, "Looked again: the record agrees.")
            _applied(operation, looked, _due_at_rest(operation))


def _settle(
    locked: Locked, event: str, because: str, record: RefundRecord | None, looked: Looked
) -> None:
    operation = locked.operation
    booked = Booked.NOTHING
    if record is not None:
        booked = book_found(locked, record, counts=event == "found_succeeded")
    if booked is Booked.ANOTHERS:
        open_case(
            locked, "mismatch", f"{record and record.ref} is known for another operation or order."
        )
        _applied(operation, looked, _slow_look(operation))
        return
    sets: dict[str, object] = {"lookup_applied": looked.no}
    if event == "found_failed":
        release(locked, by=RECONCILER)
    elif event == "found_pending":
        sets["due_at"] = timezone.now() + timedelta(seconds=5)
        needs_customer = record is not None and record.provider_status == "requires_action"
        sets["pending_reason"] = "needs_customer" if needs_customer else "provider_working"
    elif event == "contradicted":
        hold_again(locked, by=RECONCILER)
        sets["due_at"] = timezone.now() + timedelta(
            seconds=settings.LIMITS.lookup_with_case_seconds
        )
    transition(
        operation,
        event,
        by=RECONCILER,
        sets=sets,
        detail={"because": because, "ref": record.ref if record else None},
        evidence_id=looked.evidence_id,
    )
    if event == "contradicted":
        open_case(locked, "contradiction", because)
    elif operation.state in states.ENDED:
        close_by_evidence(locked, because)


def _count_surplus(locked: Locked, surplus: tuple[RefundRecord, ...]) -> None:
    """Further refunds of this operation left the payment too: they count, and move the order."""
    for record in surplus:
        if book_surplus(locked, record):
            bump(
                locked.order,
                "external",
                by=RECONCILER,
                operation=locked.operation,
                amount_minor=record.amount_minor,
                detail={"ref": record.ref},
            )


def _applied(operation: Operation, looked: Looked, due_at: datetime | None) -> None:
    Operation.objects.filter(pk=operation.pk, lookup_applied__lt=looked.no).update(
        lookup_applied=looked.no, due_at=due_at
    )


def _due_at_rest(operation: Operation) -> datetime | None:
    """What falls due next where nothing is to be found out: its send, or the end of its wait."""
    if operation.state == states.AUTHORIZED:
        return operation.not_before or timezone.now()
    return operation.expires_at if operation.state == states.AWAITING_APPROVAL else None


def _slow_look(operation: Operation) -> datetime:
    account = registry.account(operation.provider_account)
    return next_look(view_of(operation), account.contract, settings.LIMITS, timezone.now())


def _jittered(at: datetime) -> datetime:
    """Up to a tenth later or earlier, so that many that became due together do not stay so."""
    ahead = (at - timezone.now()).total_seconds()
    spread = random.uniform(-0.1, 0.1)  # noqa: S311 - spreading load, not a secret
    return at + timedelta(seconds=ahead * spread)


def _count_failure(operation_id: UUID) -> None:
    with transaction.atomic():
        locked = lock(operation_id)
        Operation.objects.filter(pk=operation_id).update(failure_count=F("failure_count") + 1)
        locked.operation.refresh_from_db()
        if locked.operation.failure_count >= settings.LIMITS.poison_failures_max:
            open_case(locked, "poison", "Looking it up fails every time; see the log.")
            # Not by the contract: the account may be what is missing.
            slow = timedelta(seconds=settings.LIMITS.lookup_with_case_seconds)
            Operation.objects.filter(pk=operation_id).update(due_at=timezone.now() + slow)


def end_leases(now: datetime, *, batch_max: int) -> int:
    """submitting -> unknown for every lease that ended; returns how many (rule 14).

    The slot is closed and the attempt's outcome left empty: only its own sender may say more.
    """
    late = Operation.objects.filter(state=states.SUBMITTING, due_at__lte=now).values_list(
        "pk", flat=True
    )[:batch_max]
    ended = 0
    for operation_id in list(late):
        ended += _end_lease(operation_id, now)
    return ended


def _end_lease(operation_id: UUID, now: datetime) -> bool:
    with transaction.atomic():
        # Whoever holds the row decides about it; waiting would keep every other lease open.
        operation = (
            Operation.objects.select_for_update(skip_locked=True).filter(pk=operation_id).first()
        )
        if operation is None:
            return False
        # The attempt's own answer may have closed it without a decision: the lease ends all the same.
        held = Attempt.objects.filter(
            operation=operation, no=operation.attempt_count, lease_until__lte=now
        ).first()
        if operation.state != states.SUBMITTING or held is None:
            return False
        account = registry.accounts().get(operation.provider_account)
        first_look = account.contract.lookup_schedule[0] if account else 0
        transition(
            operation,
            "lease_ended",
            by=RECONCILER,
            attempt_no=held.no,
            sets={"due_at": now + timedelta(seconds=first_look)},
            detail={"because": "The worker did not come back before its lease ended."},
        )
        Attempt.objects.filter(operation=operation, no=held.no, closed_at=None).update(
            closed_at=now
        )
    doorbell.ring_lookup(operation_id)
    return True


def due(now: datetime, *, batch_max: int) -> Iterable[str]:
    """Ids whose next lookup is due, whatever their state: evidence came late, or time did."""
    wanted = Q(state__in=[states.UNKNOWN, states.PENDING, *sorted(states.ENDED)]) | Q(
        state__in=[states.AUTHORIZED, states.AWAITING_APPROVAL], halted=True
    )
    rows = Operation.objects.filter(wanted, due_at__lte=now).order_by("due_at")
    return [str(pk) for pk in rows.values_list("pk", flat=True)[:batch_max]]
