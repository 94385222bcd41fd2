"""A failover to a standby that had not received the last commit, which was the claim."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

_AS_BEFORE = (
    "DELETE FROM outbox b USING operation o WHERE o.id = %(id)s AND b.operation_id = o.id"
    " AND b.seq = o.version",
    "DELETE FROM event e USING operation o WHERE o.id = %(id)s AND e.operation_id = o.id"
    " AND e.seq = o.version",
    "DELETE FROM attempt WHERE operation_id = %(id)s",
    "UPDATE payment p SET held_minor = p.held_minor - s.amount_minor"
    " FROM reservation s WHERE s.payment_id = p.id AND s.operation_id = %(id)s",
    "DELETE FROM reservation WHERE operation_id = %(id)s",
    "DELETE FROM order_move WHERE operation_id = %(id)s AND cause = 'reserved'",
    "UPDATE orders r SET version = r.version - 1 FROM operation o"
    " WHERE o.id = %(id)s AND r.id = o.order_id",
    "UPDATE operation SET state = 'authorized', version = version - 1, attempt_count = 0,"
    " send_version = send_version - 1, due_at = now() WHERE id = %(id)s",
)


def forget_the_claim(operation_id: UUID) -> str:
    """The rows of before the operation's only claim; whoever holds a connection does not know."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT state FROM operation WHERE id = %s", [operation_id])
        if cursor.fetchone()[0] != "submitting":
            return ""
        cursor.execute("SET session_replication_role = replica")
        for statement in _AS_BEFORE:
            cursor.execute(statement, {"id": operation_id})
        cursor.execute("SET session_replication_role = DEFAULT")
    return "lost"
