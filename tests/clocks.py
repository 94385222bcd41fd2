"""Letting time pass for the ledger and the sandbox alike, without waiting for it."""

from __future__ import annotations

from django.db import connection, transaction

from tests.provider_process import SandboxProcess

# Every instant that a decision is made by. What lies ahead comes nearer, what was is longer ago.
_INSTANTS = {
    "operation": ("entered_at", "unknown_since", "due_at", "not_before", "expires_at"),
    "attempt": (
        *("recorded_at", "send_deadline", "lease_until", "connected_at", "first_byte_at"),
        *("closed_at", "stop_proof_at"),
    ),
    "evidence": ("started_at", "stored_at"),
    "approval": ("expires_at", "at"),
    "event": ("at",),
    "accepted_fact": ("proposed_at", "confirmed_at", "valid_until"),
}


def time_passes(provider: SandboxProcess, seconds: float) -> None:
    """The clocks of both sides move on; what falls due at the provider on the way has happened."""
    provider.advance(seconds)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, columns in _INSTANTS.items():
            sets = ", ".join(f"{name} = {name} - %(by)s * interval '1 second'" for name in columns)
            cursor.execute(f"UPDATE {table} SET {sets}", {"by": seconds})
