"""Applying notices: each one leads to a lookup that starts after it, and moves no state itself.

Only where a provider cannot be asked and its signature covers the body (`proof`) is a notice a
finding; it then decides on the same path and behind the same lookup number as every other.
A notice is applied once its news were seen, and not before: stored and applied are two marks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from reconciliation import elsewhere, inbox, reconciler, unmatched
from reconciliation.cases import open_account_case, open_case
from reconciliation.lookup import Looked, known_refs, take_number
from reconciliation.matching import Finding, Verdict
from reconciliation.models import Notice
from reconciliation.told import of_payment, weigh
from refunds import doorbell
from refunds.dispatch import expected_of
from refunds.domain import states
from refunds.domain.contract import ProviderContract
from refunds.ledger import Locked, connections, database_now, lock
from refunds.models import Attempt, Evidence, Operation, ProviderRefund
from refunds.providers import registry

log = structlog.get_logger(__name__)

# While one worker has a notice, the sweep leaves it alone for so long.
_APPLYING = timedelta(seconds=10)
# Seconds until the next look, while lookups cannot tell or do not show yet what was told.
_LOOK_AGAIN = (2, 5, 10, 30, 60, 300, 900, 3600)
# A list that lags by an unknown time is believed about what was told after this long.
_LAG_UNKNOWN_SECONDS = 60
_FAILURE_BACKOFF = (10, 60, 300, 3600)
# Where sending may follow, told news of money that moved stop it at once.
_MAY_BE_SENT = frozenset({states.AUTHORIZED, states.AWAITING_APPROVAL})
_LOOKS_WHEN_DUE = (states.UNCERTAIN | states.ENDED) - {states.SUBMITTING}


def ring_for_due(now: datetime, *, batch_max: int) -> int:
    """Ring for every notice that waits to be applied; returns how many."""
    waiting = Notice.objects.filter(applied_at=None, due_at__lte=now).order_by("due_at")
    ids = list(waiting.values_list("pk", flat=True)[:batch_max])
    Notice.objects.filter(pk__in=ids, applied_at=None).update(due_at=now + _APPLYING)
    for notice_id in ids:
        doorbell.ring_notice(notice_id)
    return len(ids)


def apply(notice_id: int) -> str:
    """One step for one notice; returns what happened, in a word.

    A notice whose applying fails is tried again, and shown to people after three failures, unless
    it was the database that went away; the failure is raised all the same.
    """
    try:
        return _apply(notice_id)
    except Exception as error:
        if not connections.is_lost(error):
            _count_failure(notice_id)
        raise


def after_lookup(operation_id: UUID) -> None:
    """A lookup has been stored: end the notices that waited for one that started after them."""
    waiting = Notice.objects.filter(operation=operation_id, applied_at=None)
    for notice_id in list(waiting.exclude(lookup_after=None).values_list("pk", flat=True)):
        _look(notice_id, operation_id, ask=False)


def _apply(notice_id: int) -> str:
    notice = Notice.objects.filter(pk=notice_id, applied_at=None).first()
    if notice is None:
        return "done"
    if notice.verdict == "foreign":
        log.warning("notice_foreign", account=notice.provider_account, notice=notice.pk)
        return unmatched.end(notice.pk, "foreign")
    operation_id = notice.operation_id or unmatched.match(notice)
    if notice.verdict == "odd":
        return _odd(notice, operation_id)
    if operation_id is None:
        operation_id, is_learnt = elsewhere.learn_of(notice)
        if is_learnt:
            return unmatched.end(notice.pk, "outside")
    if operation_id is None:
        return unmatched.park(notice)
    if inbox.is_proof(registry.account(notice.provider_account).contract):
        return _prove(notice, operation_id)
    return _look(notice_id, operation_id, ask=True)


def _look(notice_id: int, operation_id: UUID, *, ask: bool) -> str:
    """Wait for a lookup that started after the notice and shows its news; `ask` for one."""
    now = timezone.now()
    with transaction.atomic():
        # Operation before notice, here and where a proof decides.
        locked = lock(operation_id)
        notice = Notice.objects.select_for_update().get(pk=notice_id)
        if notice.applied_at is not None:
            return "done"
        if notice.evidence_id is None:
            _link(notice, locked)
        if _seen(notice):
            return unmatched.end(notice.pk, "looked_up")
        late = now - notice.arrived_at
        if late >= timedelta(seconds=settings.LIMITS.unmatched_notice_seconds):
            _tell_people(notice, locked)
        if late >= unmatched.KEPT:
            return unmatched.end(notice.pk, "given_up")
        if ask:
            wait = _LOOK_AGAIN[min(notice.tries, len(_LOOK_AGAIN) - 1)]
            Notice.objects.filter(pk=notice_id).update(
                tries=F("tries") + 1, due_at=now + timedelta(seconds=wait)
            )
            Operation.objects.filter(pk=operation_id, state__in=_LOOKS_WHEN_DUE).update(due_at=now)
            doorbell.ring_lookup(operation_id)
    return "asked" if ask else "waiting"


def _link(notice: Notice, locked: Locked) -> None:
    """Tie the notice to its operation: from here on it stands in the trail."""
    operation = locked.operation
    finding = _told(operation, [notice])
    evidence = _evidence(notice, operation, finding, lookup_no=None)
    notice.evidence, notice.lookup_after = evidence, operation.lookup_started
    Notice.objects.filter(pk=notice.pk).update(
        operation=operation, evidence=evidence, lookup_after=operation.lookup_started
    )
    words = registry.adapter(registry.account(operation.provider_account)).words
    says_paid = notice.facts.get("provider_status") in words.succeeded | words.pending
    if operation.state in _MAY_BE_SENT and says_paid:
        ref = notice.facts["ref"]
        open_case(locked, "contradiction", f"The provider tells of {ref}; we hold it as not paid.")


def _seen(notice: Notice) -> bool:
    """Whether a lookup that started after the notice shows what it told of, or shows more."""
    contract = registry.account(notice.provider_account).contract
    findings = Evidence.objects.filter(
        operation=notice.operation_id, kind="lookup", lookup_no__gt=notice.lookup_after
    ).exclude(facts__verdict=str(Verdict.CANNOT_TELL))
    told = (notice.facts.get("ref"), notice.facts.get("provider_status"))
    for finding in findings:
        shown = {
            (each.get("ref"), each.get("provider_status")) for each in finding.facts["candidates"]
        }
        if told in shown:
            return True
        if finding.started_at < notice.arrived_at + _lag(contract):
            continue
        if told[0] is None or told[0] in {ref for ref, _ in shown}:
            return True
    return False


def _lag(contract: ProviderContract) -> timedelta:
    """How long a list may still show how it was before the notice."""
    if contract.lookup != "lagged":
        return timedelta(0)
    seconds = contract.lookup_lag.seconds
    return timedelta(seconds=_LAG_UNKNOWN_SECONDS if seconds is None else seconds)


def _tell_people(notice: Notice, locked: Locked) -> None:
    if notice.case_id is not None or _is_our_record(notice, locked.operation):
        return
    seconds = settings.LIMITS.unmatched_notice_seconds
    told = notice.facts.get("ref") or "a change"
    # Of what has ended a look that agrees with us would close the case; people must see this.
    in_doubt = locked.operation.state in states.UNCERTAIN
    case = open_case(
        locked,
        "unmatched_notice" if in_doubt else "mismatch",
        f"The provider told of {told}, and for {seconds} s no lookup has shown it.",
    )
    Notice.objects.filter(pk=notice.pk).update(case=case)


def _is_our_record(notice: Notice, operation: Operation) -> bool:
    """Whether an ended operation is booked just as the notice tells: nothing is left to ask."""
    return (
        operation.state in states.ENDED
        and ProviderRefund.objects.filter(
            provider_account=notice.provider_account,
            operation=operation,
            ref=notice.facts.get("ref"),
            provider_status=notice.facts.get("provider_status"),
        ).exists()
    )


def _prove(notice: Notice, operation_id: UUID) -> str:
    """Decide by what was told, where nobody can be asked; the fence is a lookup's number."""
    no = take_number(operation_id)
    assert no is not None, "a matched operation stays"
    started_at = database_now()
    with transaction.atomic():
        locked = lock(operation_id)
        fresh = Notice.objects.select_for_update().get(pk=notice.pk)
        if fresh.applied_at is not None:
            return "done"
        earlier = Notice.objects.filter(operation=operation_id, verdict="genuine")
        finding = _told(locked.operation, [*earlier.exclude(pk=fresh.pk), fresh])
        evidence = _evidence(fresh, locked.operation, finding, lookup_no=no)
        Notice.objects.filter(pk=fresh.pk).update(operation=operation_id, evidence=evidence)
        looked = Looked(no=no, evidence_id=evidence.pk, finding=finding, started_at=started_at)
        word = reconciler.conclude(operation_id, looked)
        if word == "overtaken":
            # What overtook it may not have known of this one: all of it is undone and tried again.
            transaction.set_rollback(True)
            return word
        unmatched.end(fresh.pk, "proof")
        return word


def _told(operation: Operation, notices: list[Notice]) -> Finding:
    """What these notices add up to about one operation."""
    first = Attempt.objects.filter(operation=operation).order_by("no").first()
    expected = expected_of(operation)
    records = [
        of_payment(record, expected.payment_ref, each.facts["payment_refs"])
        for each in notices
        if (record := inbox.record_of(each)) is not None
    ]
    return weigh(
        records,
        expected,
        words=registry.adapter(registry.account(operation.provider_account)).words,
        known_refs=known_refs(operation),
        first_recorded_at=first.recorded_at if first else operation.created_at,
    )


def _evidence(
    notice: Notice, operation: Operation, finding: Finding, *, lookup_no: int | None
) -> Evidence:
    status, ref = notice.facts.get("provider_status"), notice.facts.get("ref")
    said = f"It tells of {ref}, {status}." if ref else "It tells of a change, and of no refund."
    role = finding.because if lookup_no else "Only a hint: a lookup that starts after it decides."
    return Evidence.objects.create(
        operation=operation,
        kind="notice",
        lookup_no=lookup_no,
        started_at=notice.arrived_at,
        body=bytes(notice.body),
        facts={
            "type": notice.kind,
            "event_id": notice.event_id,
            "notice": notice.pk,
            "verdict": str(finding.verdict),
            "because": f"{said} {role}",
            "is_proof": lookup_no is not None,
            "candidates": [each.facts() for each in finding.candidates],
        },
    )


def _odd(notice: Notice, operation_id: UUID | None) -> str:
    """Another content under a known id: nothing is believed of it, and people hear of it."""
    log.error("notice_odd", account=notice.provider_account, event_id=notice.event_id)
    with transaction.atomic():
        if operation_id is None:
            return unmatched.end(notice.pk, "odd")
        locked = lock(operation_id)
        if inbox.is_proof(registry.account(notice.provider_account).contract):
            open_case(
                locked,
                "mismatch",
                f"Two different notices came under the id {notice.event_id}; the later is ignored.",
            )
        else:
            doorbell.ring_lookup(operation_id)
        return unmatched.end(notice.pk, "odd")


def _count_failure(notice_id: int) -> None:
    with transaction.atomic():
        notice = Notice.objects.select_for_update().filter(pk=notice_id, applied_at=None).first()
        if notice is None:
            return
        notice.failures += 1
        wait = _FAILURE_BACKOFF[min(notice.failures, len(_FAILURE_BACKOFF)) - 1]
        notice.due_at = timezone.now() + timedelta(seconds=wait)
        notice.save(update_fields=["failures", "due_at"])
        if notice.failures == settings.LIMITS.poison_failures_max:
            open_account_case(
                notice.provider_account,
                "poison",
                f"Applying the notice {notice.event_id} fails every time; see the log.",
            )
