"""Who stands beside the wire with eyes of its own: a second connection, and no code of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import httpx
import psycopg

from tests.bugs.programs import database_url

# What must be committed before a byte leaves: an attempt of this very key and body that still
# flies, on an approval of this very fingerprint that was not taken back, had not run out, and whose
# giver saw all that had happened to the order, but for what its own page announced.
_PERMITTED = """
SELECT a.no, o.state, sha256(o.body) = %(digest)s AS same_body,
       EXISTS (
         SELECT FROM approval p WHERE p.operation_id = o.id AND p.round = o.round
         AND p.fingerprint = o.fingerprint AND p.expires_at > a.recorded_at
         AND NOT EXISTS (
           SELECT FROM order_move m WHERE m.order_id = o.order_id
           AND m.version > p.order_version AND m.at < a.recorded_at
           AND NOT (m.cause = 'reserved' AND (m.operation_id = o.id OR EXISTS (
             SELECT FROM unnest(p.shown_operations, p.shown_amounts_minor) AS s (id, amount)
             WHERE (s.id, s.amount) = (m.operation_id, m.amount_minor)))))) AS approved
FROM operation o JOIN attempt a ON a.operation_id = o.id AND a.no = o.attempt_count
WHERE o.provider_key = %(key)s OR (%(key)s = '' AND sha256(o.body) = %(digest)s)"""


@dataclass
class Witness:
    """Notes what was wrong at the moment of a write."""

    wrong: list[str] = field(default_factory=list)
    bodies: dict[str, set[bytes]] = field(default_factory=dict)
    writes: int = 0

    def __post_init__(self) -> None:
        self._eyes = psycopg.connect(database_url(), autocommit=True)

    def about_to_write(self, request: httpx.Request) -> None:
        """The first byte of this request leaves now."""
        self.writes += 1
        key, body = request.headers.get("idempotency-key", ""), request.read()
        if key:
            self.bodies.setdefault(key, set()).add(body)
            if len(self.bodies[key]) > 1:
                self.wrong.append(f"key {key} went out with two bodies")
        row = self._eyes.execute(
            _PERMITTED, {"key": key, "digest": sha256(body).digest()}
        ).fetchone()
        if row is None:
            self.wrong.append(f"key {key}: written before any attempt was committed")
            return
        no, _, same_body, approved = row
        if not same_body:
            self.wrong.append(f"key {key}, attempt {no}: not the body that was stored")
        if not approved:
            self.wrong.append(f"key {key}, attempt {no}: nobody approved this as the order stood")

    def close(self) -> None:
        self._eyes.close()
