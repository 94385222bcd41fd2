"""Delivering: a message is claimed by one worker, sent, and what came of it is recorded.

At least once on the wire, under one id: a worker that dies after the receiver has taken a message
leaves a lease that ends, and the same bytes go again under the same id. Two living workers never
send one message both: the claim is a compare-and-swap, committed before the first byte.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from reconciliation import outbox_plan as plan
from reconciliation import outbox_receivers as receivers
from reconciliation import outbox_wire as wire
from reconciliation.models import DeliveryTry, Line
from reconciliation.outbox_wire import Told
from refunds.domain.fingerprint import canonical
from refunds.ledger import connections
from refunds.providers import http

# Seconds until the next try; the last one holds until it is given up after three days.
BACKOFF: Final = (5, 30, 120, 600, 1800, 3600)
LEASE_SECONDS: Final = 60
# One call of the task stops beginning new tries after so long.
ROUND_SECONDS: Final = 20
LINES_IN_TEXT_MAX: Final = 20

TYPES: Final = {
    plan.TICKET: "ticket.update",
    plan.AGENT: "refund.update",
    plan.CUSTOMER: "customer_message.due",
    plan.STAFF: "staff.message",
}

# One message of a receiver is under way at a time, so that a slow one takes one worker and not all.
_CLAIM = """
UPDATE outbox_delivery d SET state = 'sending', fence = d.fence + 1, try_count = d.try_count + 1,
  collecting = false, first_sent_at = coalesce(d.first_sent_at, clock_timestamp()),
  lease_until = clock_timestamp() + %(lease)s * interval '1 second'
WHERE d.id = (
  SELECT n.id FROM outbox_delivery n
  WHERE n.state IN ('waiting', 'sending')
    AND CASE n.state WHEN 'waiting' THEN n.due_at ELSE n.lease_until END <= clock_timestamp()
    AND NOT EXISTS (SELECT FROM outbox_delivery o WHERE o.receiver = n.receiver AND o.id <> n.id
                    AND o.state = 'sending' AND o.lease_until > clock_timestamp())
  ORDER BY n.pages DESC, n.due_at, n.id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING d.id, d.kind, d.receiver, d.fence, d.try_count
"""

_RECORD = """
UPDATE outbox_delivery d SET lease_until = NULL, last_because = %(because)s,
  delivered_at = CASE WHEN %(delivered)s THEN clock_timestamp() ELSE d.delivered_at END,
  state = CASE WHEN %(delivered)s THEN 'delivered'
               WHEN clock_timestamp() + %(wait)s * interval '1 second' > d.give_up_at
               THEN 'given_up' ELSE 'waiting' END,
  due_at = clock_timestamp() + %(wait)s * interval '1 second'
WHERE d.id = %(id)s AND d.state = 'sending' AND d.fence = %(fence)s
RETURNING d.state
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The right to one try of one message; `no` counts its tries from 1."""

    id: UUID
    kind: str
    receiver: str
    fence: int
    no: int


def worker_name() -> str:
    """Who tries, for the trail."""
    return f"teller:{platform.node()}:{os.getpid()}"


def deliver_due(worker: str) -> int:
    """Try every message that is due, one after the other; how many tries were made."""
    stop_at = time.monotonic() + ROUND_SECONDS
    tried = 0
    while time.monotonic() < stop_at and (claimed := claim()) is not None:
        record(claimed, send(claimed), worker)
        tried += 1
    return tried


def claim() -> Claimed | None:
    """Take one due message for one try; committed when this returns. None: nothing is due."""
    assert not connection.in_atomic_block, "a claim commits by itself, before any byte is sent"
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"lease": LEASE_SECONDS})
        row = cursor.fetchone()
    if row is None:
        return None
    return Claimed(id=row[0], kind=row[1], receiver=row[2], fence=row[3], no=row[4])


def send(claimed: Claimed) -> Told:
    """One try. What the wire does is an answer, never an exception."""
    lines = list(Line.objects.filter(delivery=claimed.id).order_by("pk"))
    try:
        if claimed.receiver.startswith(receivers.PERSON):
            to = receivers.mail_of(claimed.receiver)
            texts = [line.text for line in lines]
            return wire.write_mail(claimed.id, to, plan.mail_subject(texts), mail_text(lines))
        url = receivers.url_of(claimed.receiver)
        secrets = receivers.secrets_of(claimed.receiver)
    except receivers.Unreachable as error:
        return Told(False, f"not sent: {error}")
    body = body_of(claimed.kind, lines)
    request = wire.signed_post(url, claimed.id, int(time.time()), body, secrets)
    connections.let_go()
    return wire.read_answer(
        http.call(request, total_seconds=wire.TOTAL_SECONDS, body_bytes_max=wire.ANSWER_BYTES_MAX)
    )


def record(claimed: Claimed, told: Told, worker: str) -> str | None:
    """Store what came of a try; the message's new state, None when another took it meanwhile."""
    wait = max(BACKOFF[min(claimed.no, len(BACKOFF)) - 1], min(told.wait_seconds, BACKOFF[-1]))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                _RECORD,
                {
                    "id": claimed.id,
                    "fence": claimed.fence,
                    "because": told.because[:300],
                    "delivered": told.delivered,
                    "wait": wait,
                },
            )
            row = cursor.fetchone()
        DeliveryTry.objects.create(
            delivery_id=claimed.id,
            no=claimed.no,
            by=worker,
            delivered=told.delivered,
            because=told.because[:300],
        )
    return row[0] if row else None


def body_of(kind: str, lines: Sequence[Line]) -> bytes:
    """The bytes of a message; the same at every try, since its lines stay as they are.

    A message of one thing has that as its `data`; one for people lists all it tells.
    """
    first = lines[0]
    data: dict[str, object] = dict(first.facts)
    if kind == plan.STAFF:
        data = {"lines": [line.facts | {"text": line.text} for line in lines]}
    return canonical(
        {
            "type": TYPES[kind],
            "timestamp": first.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "text": first.text if kind == plan.CUSTOMER else chat_text(lines),
            "data": data,
        }
    )


def chat_text(lines: Sequence[Line]) -> str:
    """What a chat tool shows: a line and its link for each, the first twenty of them."""
    shown = [f"{line.text} {line.facts['link']}" for line in lines[:LINES_IN_TEXT_MAX]]
    more = len(lines) - len(shown)
    return "\n".join([*shown, *([f"And {more} more."] if more else [])])


def mail_text(lines: Sequence[Line]) -> str:
    """The whole e-mail, plain."""
    told = "\n\n".join(f"{line.text}\n{line.facts['link']}" for line in lines)
    return f"{told}\n\nNothing can be decided from this message: open the page and sign in.\n"
