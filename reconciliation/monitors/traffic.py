"""Readings about what went over the wire lately, and about who was refused."""

from __future__ import annotations

from django.conf import settings

from reconciliation.monitors.reading import Reading, rows, spell
from refunds.providers import registry

CALLS_MIN = 20  # of fewer calls, one is a large share and no news

# The windows below are read over BRIN indexes of the append-only columns.
_AMBIGUOUS = """
SELECT o.provider_account, count(*), count(*) FILTER (WHERE coalesce(t.outcome, 'unanswered') = 'unanswered')
FROM attempt t JOIN operation o ON o.id = t.operation_id
WHERE t.recorded_at > clock_timestamp() - interval '15 minutes' AND t.closed_at IS NOT NULL
GROUP BY o.provider_account HAVING count(*) >= %(calls_min)s"""

_DEADLINE = """
SELECT o.provider_account, count(*),
       count(*) FILTER (WHERE t.outcome = 'not_sent' AND t.connected_at IS NOT NULL)
FROM attempt t JOIN operation o ON o.id = t.operation_id
WHERE t.recorded_at > clock_timestamp() - interval '1 hour' AND t.closed_at IS NOT NULL
GROUP BY o.provider_account HAVING count(*) >= %(calls_min)s"""

# An answer that moved nothing came after its lease had ended, or after somebody else had decided.
_STALE = """
SELECT o.provider_account, count(*) FROM evidence v JOIN operation o ON o.id = v.operation_id
WHERE v.kind = 'answer' AND v.stored_at > clock_timestamp() - interval '1 hour'
  AND NOT EXISTS (SELECT FROM event e WHERE e.operation_id = v.operation_id
                  AND e.evidence_id = v.id)
GROUP BY o.provider_account"""

_LATE_LANDING = """
SELECT f.provider_account, f.ref, r.ref,
       (extract(epoch FROM f.provider_created_at - last.at) - a.seconds)::float8
FROM provider_refund f JOIN operation o ON o.id = f.operation_id JOIN orders r ON r.id = o.order_id
JOIN unnest(%(names)s::text[], %(seconds)s::int[]) AS a (name, seconds)
  ON a.name = f.provider_account
CROSS JOIN LATERAL (
  SELECT max(coalesce(t.first_byte_at, t.send_deadline)) AS at
  FROM attempt t WHERE t.operation_id = o.id) last
WHERE f.first_seen_at > clock_timestamp() - interval '1 day'
  AND f.provider_created_at > last.at + a.seconds * interval '1 second'"""

# A complete list that began after the refund existed and did not show it yet.
_LAG = """
SELECT f.provider_account, f.ref, r.ref,
       max(extract(epoch FROM v.started_at - f.provider_created_at))::float8, max(a.seconds)
FROM provider_refund f JOIN operation o ON o.id = f.operation_id JOIN orders r ON r.id = o.order_id
JOIN unnest(%(names)s::text[], %(seconds)s::int[]) AS a (name, seconds)
  ON a.name = f.provider_account
JOIN evidence v ON v.operation_id = o.id AND v.kind = 'lookup'
  AND v.facts ->> 'verdict' = 'absent' AND v.started_at > f.provider_created_at
WHERE f.first_seen_at > clock_timestamp() - interval '1 day' AND v.stored_at < f.first_seen_at
GROUP BY f.provider_account, f.ref, r.ref"""

_LOOKUPS = """
SELECT o.provider_account, count(*),
       count(*) FILTER (WHERE v.facts ->> 'verdict' = 'cannot_tell')
FROM evidence v JOIN operation o ON o.id = v.operation_id
WHERE v.kind = 'lookup' AND v.stored_at > clock_timestamp() - interval '15 minutes'
GROUP BY o.provider_account HAVING count(*) >= %(calls_min)s"""

# The table of refused acts belongs to the console; this only counts its rows.
_OWN_ACTS = r"""
SELECT p.username, count(*) FROM refused_act a JOIN person p ON p.id = a.person_id
WHERE a.at > clock_timestamp() - interval '1 day'
  AND (a.code LIKE 'own\_%%' OR a.code LIKE '%%\_by\_the\_same\_person')
GROUP BY p.username"""

_GIVEN_UP = """
SELECT receiver, count(*) FROM outbox_delivery WHERE state = 'given_up' GROUP BY receiver"""


def _share(found: list[tuple[str, int, int]], what: str) -> list[Reading]:
    return [
        Reading(account, 100 * some / count, f"{some} of {count} {what}.")
        for account, count, some in found
    ]


def ambiguous_answers() -> list[Reading]:
    """Per account, the share of sends of 15 minutes without an answer to trust, in percent."""
    return _share(rows(_AMBIGUOUS, calls_min=CALLS_MIN), "sends of 15 min got no answer to trust")


def deadline_missed() -> list[Reading]:
    """Per account, the share of sends of an hour given up at their send deadline, in percent."""
    return _share(rows(_DEADLINE, calls_min=CALLS_MIN), "sends of an hour came too late to leave")


def lookups_failing() -> list[Reading]:
    """Per account, the share of lookups of 15 minutes that could not tell, in percent."""
    return _share(rows(_LOOKUPS, calls_min=CALLS_MIN), "lookups of 15 min could not tell")


def stale_decisions() -> list[Reading]:
    """Per account, answers of an hour that came after somebody else had decided."""
    return [
        Reading(account, count, f"{count} answers of an hour came when it was decided already.")
        for account, count in rows(_STALE)
    ]


def late_landings() -> list[Reading]:
    """Per account and refund of a day, seconds by which it was made later than its bound allows."""
    skew = 2 * settings.LIMITS.skew_seconds
    bounds = {
        name: account.contract.flight_max.seconds + skew
        for name, account in registry.accounts().items()
        if account.contract.flight_max.seconds is not None
    }
    found = rows(_LATE_LANDING, names=list(bounds), seconds=list(bounds.values()))
    return [
        Reading(
            f"{account} {ref}",
            late,
            f"Order {order}: {ref} was made {spell(late)}"
            " later than the account's flight bound allows. The bound is wrong.",
        )
        for account, ref, order, late in found
    ]


def lookup_lag() -> list[Reading]:
    """Per account and refund of a day, how much of its lag bound a complete list needed to show
    it, in percent."""
    bounds = {
        name: account.contract.lookup_lag.seconds
        for name, account in registry.accounts().items()
        if account.contract.lookup_lag.seconds
    }
    found = rows(_LAG, names=list(bounds), seconds=list(bounds.values()))
    return [
        Reading(
            f"{account} {ref}",
            100 * lag / bound,
            f"Order {order}: a complete list did not show {ref} {spell(lag)} after it was"
            f" made; the account's lag bound is {spell(bound)}.",
        )
        for account, ref, order, lag, bound in found
    ]


def own_acts() -> list[Reading]:
    """Per person, refused tries of a day to decide about their own."""
    return [
        Reading(name, count, f"{name} was refused {count} times in a day: it was their own.")
        for name, count in rows(_OWN_ACTS)
    ]


def given_up() -> list[Reading]:
    """Per receiver, how many messages nobody tries any more."""
    return [
        Reading(receiver, count, f"{count} messages to {receiver} were given up.")
        for receiver, count in rows(_GIVEN_UP)
    ]
