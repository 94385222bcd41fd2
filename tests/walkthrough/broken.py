"""Starts a worker in which one guard is switched off: `python -m tests.walkthrough.broken NAME ...`

Only this program is patched, never the product. Each mode is the mistake that teams make: the
auditor must find what it leads to, from the book and the database alone.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import django

django.setup()

from django.db import connection, transaction  # noqa: E402

from reconciliation import matching, proof, reconciler  # noqa: E402
from reconciliation.known import View  # noqa: E402
from reconciliation.matching import Candidate  # noqa: E402
from refunds import dispatch  # noqa: E402
from refunds.domain.outcome import (  # noqa: E402
    Answer,
    Expected,
    Outcome,
    RawAnswer,
    RefundRecord,
)
from refunds.ledger import Claim, Recorded, answer  # noqa: E402
from refunds.models import Operation  # noqa: E402
from refunds.providers import http, plain, stripe  # noqa: E402
from refunds.providers.base import HttpRequest  # noqa: E402
from tests.notices.broken import first_notice_wins  # noqa: E402

REQUEUE = """
WITH dead AS (
  UPDATE attempt SET outcome = 'not_sent', closed_at = %(now)s
  WHERE operation_id = %(id)s AND closed_at IS NULL AND lease_until <= %(now)s
  RETURNING operation_id, no
), moved AS (
  UPDATE operation o SET state = 'authorized', version = o.version + 1, due_at = %(now)s
  FROM dead WHERE o.id = dead.operation_id AND o.state = 'submitting'
  RETURNING o.id, o.version, dead.no
)
INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, attempt_no)
SELECT id, version, 'not_executed', 'submitting', 'authorized', 'dispatcher', 'requeue', no
FROM moved RETURNING seq"""

RELEASE = """
WITH freed AS (
  UPDATE reservation SET state = 'released' WHERE operation_id = %s AND state = 'held'
  RETURNING payment_id, amount_minor
)
UPDATE payment p SET held_minor = p.held_minor - f.amount_minor FROM freed f
WHERE p.id = f.payment_id"""


def lease_requeue() -> None:
    """A worker that died did not send: put its work back in the queue."""

    def requeue(operation_id: UUID, now: datetime) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(REQUEUE, {"id": operation_id, "now": now})
            return cursor.fetchone() is not None

    _put(reconciler, "_end_lease", requeue)


def new_key() -> None:
    """No answer: try again at once, as a new request with a key of its own."""
    send_once = http.call

    def send_again(request: HttpRequest, **limits: Any) -> RawAnswer:
        raw = send_once(request, **limits)
        if request.method != "POST" or raw.status is not None:
            return raw
        headers = request.headers | {"Idempotency-Key": str(uuid.uuid4())}
        return send_once(replace(request, headers=headers), **limits)

    _put(http, "call", send_again)


def refused_on_500() -> None:
    """An error of the provider's server means that the refund was not made."""

    def reading(read: Callable[..., Answer]) -> Callable[..., Answer]:
        def read_answer(adapter: object, raw: RawAnswer, expected: Expected) -> Answer:
            if raw.status is not None and raw.status >= 500:
                return Answer(outcome=Outcome.REFUSED, because=f"HTTP {raw.status}.")
            return read(adapter, raw, expected)

        return read_answer

    dialects: tuple[Any, ...] = (plain.Plain, stripe.Stripe)
    for adapter in dialects:
        _put(adapter, "read_answer", reading(adapter.read_answer))


def release_on_timeout() -> None:
    """No answer: give the customer's balance back, so that it does not stay blocked."""

    def release(claim: Claim, recorded: Recorded) -> None:
        if recorded.event == "unanswered":
            with connection.cursor() as cursor:
                cursor.execute(RELEASE, [claim.operation_id])

    _after_every_answer(release)


def quiet_period() -> None:
    """A list that does not show the refund means that it was not made, however soon it was read."""

    def at_once(view: View, *_: object) -> datetime:
        return min(each.recorded_at for each in view.attempts)

    _put(proof, "quiet_end", at_once)


def match_by_amount() -> None:
    """The same amount on the same payment must be ours."""
    compare = matching._compare

    def compare_sums(record: RefundRecord, expected: Expected, *rest: Any) -> Candidate:
        theirs = (record.payment_ref, record.amount_minor, record.currency)
        if theirs == (expected.payment_ref, expected.amount_minor, expected.currency):
            record = replace(record, marker=expected.marker)
        return compare(record, expected, *rest)

    _put(matching, "_compare", compare_sums)


def lost() -> None:
    """What each worker process finds first is forgotten."""
    send = dispatch.send_found
    forgotten: list[UUID] = []

    def forget_one(operation: Operation) -> str:
        if forgotten and operation.pk not in forgotten:
            return send(operation)
        forgotten.append(operation.pk)
        Operation.objects.filter(pk=operation.pk).update(due_at=None)
        return "forgotten"

    _put(dispatch, "send_found", forget_one)


def missing_event() -> None:
    """The answer moves the operation, and its event is not there."""

    def tear_out(claim: Claim, recorded: Recorded) -> None:
        if recorded.event == "confirmed":
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")
                where = "operation_id = %s AND seq = %s"
                cursor.execute(
                    f"DELETE FROM event WHERE {where}", [claim.operation_id, recorded.version]
                )

    _after_every_answer(tear_out)


def _after_every_answer(then: Callable[[Claim, Recorded], None]) -> None:
    record = answer.record_answer

    def record_answer(claim: Claim, *rest: Any, **more: Any) -> Recorded:
        recorded = record(claim, *rest, **more)
        then(claim, recorded)
        return recorded

    _put(dispatch, "record_answer", record_answer)


def _put(place: object, name: str, instead: object) -> None:
    setattr(place, name, instead)


MODES: dict[str, Callable[[], None]] = {
    "first-notice-wins": first_notice_wins,
    "lease-requeue": lease_requeue,
    "new-key": new_key,
    "refused-on-500": refused_on_500,
    "release-on-timeout": release_on_timeout,
    "quiet-period": quiet_period,
    "match-by-amount": match_by_amount,
    "lost": lost,
    "missing-event": missing_event,
}


def main() -> None:
    MODES[sys.argv.pop(1)]()
    from celery.__main__ import main as celery

    celery()


if __name__ == "__main__":
    main()
