"""Applying decisions: one transaction under the row locks, fenced by the lookup's number."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from reconciliation import late_truth
from reconciliation.booking import Booked, book_found
from reconciliation.cases import close_by_evidence, open_case
from reconciliation.decide import (
    Decision,
    LookUpAgain,
    OpenCase,
    Resend,
    Rest,
    Settle,
    decide,
    next_look,
)
from reconciliation.lateness import proved_false
from reconciliation.lookup import INCONCLUSIVE, Looked, ask, take_number
from reconciliation.pacing import clock, jittered, must_wait
from reconciliation.pacing import due as due
from reconciliation.paid_twice import count_surplus, is_news, stop_account
from reconciliation.shown import shown
from reconciliation.view import view_of
from reconciliation.withdrawing import withdraw_false
from refunds import doorbell
from refunds.domain import states
from refunds.ledger import (
    RECONCILER,
    Locked,
    accepted_now,
    connections,
    database_now,
    held_to,
    hold_again,
    lock,
    release,
    transition,
)
from refunds.models import Attempt, Operation
from refunds.providers import registry

log = structlog.get_logger(__name__)

_FAR = timedelta(days=1)
_CONTRADICTS = frozenset({"contradicted", "ruling_contradicted"})


def look_up(operation_id: UUID) -> str:
    """Ask about one operation and do what follows; returns the decision in a word.

    `later`: the account is asked as often as it may be already, and this one is due again soon.
    An operation whose reading fails three times in a row becomes a `poison` case, unless it was
    the database that went away; the failure is raised all the same.
    """
    operation = Operation.objects.select_related("payment").filter(pk=operation_id).first()
    if operation is None:
        return "gone"
    if must_wait(operation):
        return "later"
    no = take_number(operation_id)
    assert no is not None, "an operation is never deleted"
    try:
        looked = ask(operation, no)
        return conclude(operation_id, looked)
    except Exception as error:
        if not connections.is_lost(error):
            _count_failure(operation_id)
        raise


def conclude(operation_id: UUID, looked: Looked) -> str:
    """Decide on a stored finding, under the locks, if no later one has decided already."""
    name = Operation.objects.values_list("provider_account", flat=True).get(pk=operation_id)
    account = registry.account(name)
    with transaction.atomic():
        accepted = accepted_now(name, to_withdraw=looked.finding.verdict not in INCONCLUSIVE)
        locked = lock(operation_id)
        if locked.operation.failure_count:
            Operation.objects.filter(pk=operation_id).update(failure_count=0)
        if looked.no <= locked.operation.lookup_applied:
            return "overtaken"
        contract = held_to(locked.operation, account.contract)
        words = registry.adapter(account).words
        late_truth.follow_surplus(locked, looked.finding, words)
        # What shows a refund leads to no send.
        view = view_of(locked.operation, contract, to_send=looked.finding.verdict in INCONCLUSIVE)
        finding = shown(locked.operation, view, looked, contract)
        decision = decide(
            view,
            finding,
            contract=contract,
            words=words,
            limits=settings.LIMITS,
            now=database_now(),
            looked_at=looked.started_at,
            accepted=accepted,
        )
        _apply(locked, decision, looked)
        withdraw_false(locked, proved_false(view, finding, contract, accepted, settings.LIMITS))
        return type(decision).__name__


def _apply(locked: Locked, decision: Decision, looked: Looked) -> None:
    operation = locked.operation
    match decision:
        case Settle(because=because, surplus=surplus) if surplus:
            news = is_news(locked)
            open_case(locked, "duplicate", because)
            _settle(locked, decision, looked)
            if count_surplus(locked, surplus) or news:
                stop_account(locked, because)
        case Settle():
            _settle(locked, decision, looked)
        case Resend():
            # On the money queue, and by a statement that compares everything again.
            _applied(operation, looked, _slow_look(operation))
            doorbell.ring_resend(operation.pk)
        case OpenCase(reason, because, surplus):
            news = reason == "duplicate" and is_news(locked)
            open_case(locked, reason, because)
            if count_surplus(locked, surplus) or news:
                stop_account(locked, because)
            _applied(operation, looked, _slow_look(operation))
        case LookUpAgain(at, not_before):
            # Findings that conclude nothing do not raise the fence; they only move the clock.
            due_at = max(jittered(at), not_before or at - _FAR)
            clock(operation.pk).update(due_at=due_at)
        case Rest():
            close_by_evidence(locked, "Looked again: the record agrees.")
            _applied(operation, looked, _due_at_rest(operation))


def _settle(locked: Locked, decision: Settle, looked: Looked) -> None:
    operation, event, record = locked.operation, decision.event, decision.record
    booked = Booked.NOTHING
    back_minor = 0
    if event == "taken_back" and record is not None:
        back_minor = late_truth.take_back(locked, record)
    elif record is not None:
        booked = book_found(locked, record, counts=event == "found_succeeded")
    if booked is Booked.ANOTHERS:
        open_case(
            locked, "mismatch", f"{record and record.ref} is known for another operation or order."
        )
        _applied(operation, looked, _slow_look(operation))
        return
    sets: dict[str, object] = {"lookup_applied": looked.no}
    if decision.covers:
        _cover(operation, looked.evidence_id)
    if event in ("found_failed", "proved_not_executed"):
        release(locked, by=RECONCILER)
    elif event == "proved_absent":
        sets["due_at"] = database_now()
    elif event == "found_pending":
        sets["due_at"] = database_now() + timedelta(seconds=5)
        needs_customer = record is not None and record.provider_status == "requires_action"
        sets["pending_reason"] = "needs_customer" if needs_customer else "provider_working"
    elif event in _CONTRADICTS:
        if event == "ruling_contradicted" and record is not None:
            late_truth.take_out_ruled(locked, record)
        hold_again(locked, by=RECONCILER)
        # What is not clear yet is looked at once more, and at once.
        slow = settings.LIMITS.lookup_with_case_seconds if record is not None else 0
        sets["due_at"] = database_now() + timedelta(seconds=slow)
    detail: dict[str, object] = {
        "because": decision.because,
        "ref": record.ref if record else None,
    }
    if decision.accepted:
        detail["accepted"] = list(decision.accepted)
    transition(
        operation,
        event,
        by=RECONCILER,
        sets=sets,
        detail=detail,
        evidence_id=looked.evidence_id,
    )
    if event in _CONTRADICTS:
        late_truth.stop_remedies(locked, decision.because)
        open_case(locked, "contradiction", late_truth.with_remedies_out(locked, decision.because))
    elif event == "taken_back" and record is not None:
        late_truth.owe_what_came_back(locked, record, back_minor)
    elif event == "proved_absent":
        doorbell.ring_send(operation.pk)
    elif operation.state in states.ENDED:
        close_by_evidence(locked, decision.because)


def _cover(operation: Operation, evidence_id: int) -> None:
    """The absence speaks for every attempt that nobody answered for, once and for good."""
    Attempt.objects.filter(
        Q(outcome=None) | Q(outcome="unanswered"), operation=operation, settled_by_evidence=None
    ).update(settled_by_evidence=evidence_id)


def _applied(operation: Operation, looked: Looked, due_at: datetime | None) -> None:
    later = {"lookup_applied__lt": looked.no}
    clock(operation.pk).filter(**later).update(due_at=due_at)
    Operation.objects.filter(pk=operation.pk, **later).update(lookup_applied=looked.no)


def _due_at_rest(operation: Operation) -> datetime | None:
    """What falls due next where nothing is to be found out: its send, or the end of its wait."""
    if operation.state == states.AUTHORIZED:
        return operation.not_before or database_now()
    return operation.expires_at if operation.state == states.AWAITING_APPROVAL else None


def _slow_look(operation: Operation) -> datetime:
    contract = registry.account(operation.provider_account).contract
    return next_look(view_of(operation, contract), contract, settings.LIMITS, database_now())


def _count_failure(operation_id: UUID) -> None:
    with transaction.atomic():
        locked = lock(operation_id)
        Operation.objects.filter(pk=operation_id).update(failure_count=F("failure_count") + 1)
        locked.operation.refresh_from_db()
        if locked.operation.failure_count >= settings.LIMITS.poison_failures_max:
            open_case(locked, "poison", "Looking it up fails every time; see the log.")
            # Not by the contract: the account may be what is missing.
            slow = timedelta(seconds=settings.LIMITS.lookup_with_case_seconds)
            clock(operation_id).update(due_at=database_now() + slow)


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
