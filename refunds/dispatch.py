"""The send: claim and record, write once, record the answer. Two commits, no transaction between.

Any error at the claim's commit means: do not send. Whatever happens after it leaves an attempt
that its lease turns into *unknown*; nothing here ever puts an operation back in the queue.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import structlog
from django.conf import settings
from django.utils import timezone

from refunds import policies, prepared, witness
from refunds.domain import states
from refunds.domain.errors import ClaimRefused
from refunds.domain.outcome import Answer, Expected, Outcome, RawAnswer
from refunds.ledger import (
    Claim,
    claim,
    connections,
    held_to,
    lapse,
    record_answer,
    resubmit,
)
from refunds.ledger.sending import pause
from refunds.models import Operation, Payment
from refunds.providers import http, registry
from refunds.providers.base import Account
from refunds.why import lapse_cause

log = structlog.get_logger(__name__)


_TO_SEND = (
    "id",
    "provider_account",
    "amount_minor",
    "currency",
    "provider_key",
    "body",
    "tier",
    "quorum",
    "state",
    "attempt_count",
    "halted",
    "not_before",
)
_COLUMNS = "p.id, p.ref, " + ", ".join(f"o.{name}" for name in _TO_SEND)
_READ = """
SELECT /*columns*/ FROM operation o JOIN payment p ON p.id = o.payment_id
WHERE o.id = %(id)s::uuid
""".replace("/*columns*/", _COLUMNS)


@cache
def _host() -> str:
    return socket.gethostname()


def worker_name() -> str:
    """Who sends, for the trail: host and process."""
    return f"dispatcher:{_host()}:{os.getpid()}"


def _to_send(operation_id: str) -> Operation | None:
    """The operation and its payment, with what a send needs; the rest is read when it is asked."""
    row = prepared.one(_READ, {"id": operation_id})
    return None if row is None else _as_read(row)


def _as_read(row: tuple[Any, ...]) -> Operation:
    operation = Operation.from_db("default", _TO_SEND, row[2:])
    operation.payment = Payment.from_db("default", ("id", "ref"), row[:2])
    return operation


def send(operation_id: str) -> str:
    """Send one authorized operation, if it may be sent now. Returns what happened, in a word.

    `gone` (not authorized any more), `waiting` (paused, halted or not due), `lapsed` (the approval
    no longer applies), or the event that the answer caused. Raises CommitUnknown when the claim
    was not confirmed: nothing was sent then.
    """
    operation = _to_send(operation_id)
    if operation is None or operation.state != states.AUTHORIZED:
        return "gone"
    return send_found(operation)


def send_found(operation: Operation) -> str:
    """The same for one that `ready_apart` found: what is sent of it never changes, and whether it
    may be sent is asked by the claim. Returns and raises as `send` does."""
    account = registry.accounts().get(operation.provider_account)
    if account is None or not account.credential:
        return _without_credential(operation)
    won = _claim(operation, account)
    if won is None:
        # Mostly somebody else has it. A claim that waited behind a sibling's judges by a log older
        # than its lock, and refuses; asked once more, it reads the log of now.
        again = _to_send(str(operation.pk))
        if again is None or again.state != states.AUTHORIZED:
            return "gone"
        operation = again
        won = _claim(operation, account)
    if won is None:
        return _not_claimed(operation)
    return _submit(operation, account, *won)


def resend(operation_id: str) -> str:
    """Send an unknown operation once more under its own key, if the key makes that safe now.

    Returns `gone` (not unknown any more), `waiting` (some condition does not hold now; the next
    lookup asks again), or the event that the answer caused. Raises CommitUnknown as `send` does.
    """
    operation = _to_send(operation_id)
    if operation is None or operation.state != states.UNKNOWN:
        return "gone"
    account = registry.accounts().get(operation.provider_account)
    if account is None or not account.credential:
        return "waiting"
    deadline = time.monotonic() + settings.LIMITS.send_deadline_seconds
    try:
        won = resubmit(
            operation.pk,
            worker=worker_name(),
            account=account.name,
            identity=account.identity(),
            contract=account.contract,
            held_to=held_to(operation, account.contract),
            attempts=operation.attempt_count,
            limits=settings.LIMITS,
        )
    except ClaimRefused:
        return "waiting"
    return _submit(operation, account, won, deadline)


def _claim(operation: Operation, account: Account) -> tuple[Claim, float] | None:
    """The right to send with its deadline on the monotonic clock; None when it was refused."""
    # A database that lost its tail permits nothing again: asked before the first claim on it (rule 3).
    witness.check_new_connection()
    # S counts from before the commit (rule 7).
    deadline = time.monotonic() + settings.LIMITS.send_deadline_seconds
    try:
        won = claim(
            operation.pk,
            worker=worker_name(),
            identity=account.identity(),
            contract=account.contract,
            limits=settings.LIMITS,
            needs_a_person=operation.quorum > 0 or operation.tier > 2,
        )
    except ClaimRefused:
        return None
    return won, deadline


def _submit(operation: Operation, account: Account, won: Claim, deadline: float) -> str:
    adapter = registry.adapter(account)
    started_at = timezone.now()
    unnoted = _not_noted(won)
    connections.let_go()
    raw = unnoted or http.call(
        adapter.create_refund(account, bytes(operation.body), operation.provider_key),
        total_seconds=settings.LIMITS.call_total_seconds,
        body_bytes_max=settings.LIMITS.answer_bytes_max,
        send_deadline=deadline,
    )
    answer = _not_kept(adapter.read_answer(raw, expected_of(operation)), raw)
    recorded = record_answer(
        won,
        answer,
        raw,
        account=account.name,
        # A first attempt has no other beside it that an older contract could speak for.
        contract=account.contract if won.no == 1 else held_to(operation, account.contract),
        limits=settings.LIMITS,
        started_at=started_at,
        worker=worker_name(),
        own_fault=unnoted is not None or _late(raw, deadline),
    )
    log.info(
        "answer_recorded",
        operation=str(operation.pk),
        attempt=won.no,
        outcome=str(answer.outcome),
        event_name=recorded.event,
        status=raw.status,
    )
    return recorded.event or "late"


def _not_kept(answer: Answer, raw: RawAnswer) -> Answer:
    """A refusal at the door that the provider keeps under our key is no reason to try again.

    It is the first answer over again: this key never pays while it lives (rule 37). Nobody may
    take a new one, so it is *unknown*, and a person is asked.
    """
    if answer.outcome is Outcome.TURNED_AWAY and raw.headers.get("idempotent-replayed") == "true":
        return replace(
            answer,
            outcome=Outcome.UNANSWERED,
            because=f"{answer.because} It is kept under our key and comes again each time.",
        )
    return answer


def _not_noted(won: Claim) -> RawAnswer | None:
    """Note the permission outside the database; what cannot be noted is not sent (rule 3)."""
    try:
        witness.note(won.operation_id, won.fence, won.at)
    except OSError as error:
        why = f"the permission to send could not be noted ({error})"[:200]
        return RawAnswer(failure=why, closed_at=timezone.now())
    return None


def _late(raw: RawAnswer, deadline: float) -> bool:
    return (
        raw.first_byte_at is None and raw.connected_at is not None and (time.monotonic() > deadline)
    )


def expected_of(operation: Operation) -> Expected:
    """What the provider's record of this operation must say."""
    return Expected(
        marker=operation.marker,
        payment_ref=operation.payment.ref,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
    )


def _without_credential(operation: Operation) -> str:
    """Known not sent: no claim is made, so nothing becomes unknown; the page says the cause."""
    name = operation.provider_account
    pause(
        name,
        kind="no_credential",
        reason=f"No credential is set for {name}. Nothing was sent.",
        by="dispatcher",
    )
    _wait(operation)
    return "waiting"


def _not_claimed(operation: Operation) -> str:
    """The claim found no row: end a stale approval, or leave it for the next sweep."""
    cause = lapse_cause(operation.pk)
    if cause is not None:
        valid = policies.current().proposal_valid_seconds
        lapsed = lapse(operation.pk, cause=cause, valid_seconds=valid)
        return "lapsed" if lapsed is not None else "gone"
    operation.refresh_from_db()
    if operation.state != states.AUTHORIZED:
        return "gone"
    _wait(operation)
    return "waiting"


def _wait(operation: Operation) -> None:
    """Look again soon; only a clock moves, so no event."""
    soon = timezone.now() + timedelta(seconds=settings.LIMITS.waiting_seconds)
    if operation.not_before and operation.not_before > timezone.now():
        soon = operation.not_before
    Operation.objects.filter(pk=operation.pk, state=states.AUTHORIZED).update(due_at=soon)


_READY = """
SELECT /*columns*/ FROM operation o JOIN payment p ON p.id = o.payment_id
WHERE o.state = 'authorized' AND o.due_at <= clock_timestamp() AND NOT o.halted
  AND NOT EXISTS (SELECT FROM sending_stop WHERE ended_at IS NULL)
  AND NOT EXISTS (SELECT FROM quarantine WHERE lifted_at IS NULL)
ORDER BY o.due_at, o.id LIMIT %(batch_max)s::bigint
"""
_READY_IDS = _READY.replace("/*columns*/", "o.id")
_READY_WHOLE = _READY.replace("/*columns*/", "o.order_id, " + _COLUMNS)


def ready(batch_max: int) -> list[str]:
    """Ids of authorized operations that are due, oldest first; none while everything is stopped."""
    return [str(found[0]) for found in prepared.rows(_READY_IDS, {"batch_max": batch_max})]


def ready_apart(batch_max: int) -> list[Operation]:
    """The same with what a send needs of each, and of each order only the oldest: two of one order
    wait for each other's lock."""
    apart: dict[int, Operation] = {}
    for order_id, *row in prepared.rows(_READY_WHOLE, {"batch_max": batch_max}):
        if order_id not in apart:
            apart[order_id] = _as_read(tuple(row))
    return list(apart.values())
