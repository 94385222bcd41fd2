"""Readings about money: what the provider did that our books say it did not, or twice."""

from __future__ import annotations

from reconciliation.monitors.reading import Reading, rows, spell
from refunds.domain.money import display
from refunds.providers import registry

# Only the open cases, over their own index: how many ever were does not slow it down.
_CASES = """
SELECT coalesce(p.provider_account, c.provider_account), coalesce(p.ref, ''), r.ref, c.because
FROM review_case c
LEFT JOIN payment p ON p.id = c.payment_id LEFT JOIN orders r ON r.id = p.order_id
WHERE c.closed_at IS NULL AND %(reason)s = ANY (c.reasons) ORDER BY c.id LIMIT 200"""

# Two refunds of one operation are a duplicate and have their case; two approved operations are
# two wishes. What is left is a pair that nobody here asked for as a pair.
_TWINS = """
SELECT p.provider_account, p.ref, r.ref, a.ref, b.ref
FROM provider_refund a
JOIN provider_refund b ON b.payment_id = a.payment_id AND b.id > a.id
  AND b.amount_minor = a.amount_minor
  AND abs(extract(epoch FROM b.provider_created_at - a.provider_created_at)) < 60
JOIN payment p ON p.id = a.payment_id JOIN orders r ON r.id = p.order_id
WHERE b.first_seen_at > clock_timestamp() - interval '1 day' AND a.counts AND b.counts
  AND (a.operation_id IS NULL OR b.operation_id IS NULL) ORDER BY b.id LIMIT 200"""

# Two captures of one amount within a day, both still whole. Read over the orders that moved in the
# last day (by the BRIN index of their moves), and over those that an alarm is open about.
_CAPTURED_TWICE = """
SELECT r.ref, a.ref, b.ref, a.captured_minor, a.currency
FROM orders r JOIN payment a ON a.order_id = r.id
JOIN payment b ON b.order_id = r.id AND b.id > a.id AND b.captured_minor = a.captured_minor
  AND b.currency = a.currency
  AND abs(extract(epoch FROM b.captured_at - a.captured_at)) < 86400
WHERE r.id IN (
    SELECT order_id FROM order_move WHERE at > clock_timestamp() - interval '1 day'
    UNION SELECT o.id FROM alarm m JOIN orders o ON m.subject = 'order ' || o.ref
    WHERE m.name = 'captured_twice' AND m.ended_at IS NULL)
  AND a.state = 'captured' AND b.state = 'captured'
  AND a.refunded_minor = 0 AND b.refunded_minor = 0
ORDER BY b.id LIMIT 200"""

# By the index of each account's imports; an account that never had a report is no silence.
_LAST_REPORT = """
SELECT a.name, extract(epoch FROM clock_timestamp() - l.imported_at)::float8
FROM unnest(%(names)s::text[]) AS a (name) CROSS JOIN LATERAL (
  SELECT imported_at FROM settlement_line WHERE provider_account = a.name
  ORDER BY imported_at DESC LIMIT 1) l"""


def _open_cases(reason: str) -> list[Reading]:
    return [
        Reading(
            f"{account} {payment}".strip(), 1, f"Order {order}: {because}" if order else because
        )
        for account, payment, order, because in rows(_CASES, reason=reason)
    ]


def duplicates() -> list[Reading]:
    """Payments on which one operation was refunded more than once."""
    return _open_cases("duplicate")


def contradictions() -> list[Reading]:
    """Payments whose provider shows money that our books say did not move."""
    return _open_cases("contradiction")


def mismatches() -> list[Reading]:
    """Payments with a refund that is ours and not as we asked for it."""
    return _open_cases("mismatch")


def twins() -> list[Reading]:
    """Payments with two equal refunds within a minute, not both of operations of ours."""
    return [
        Reading(
            f"{account} {payment}",
            1,
            f"Order {order}: {one} and {other} are equal and a minute"
            " apart at most; no two operations of ours explain them.",
        )
        for account, payment, order, one, other in rows(_TWINS)
    ]


def captured_twice() -> list[Reading]:
    """Orders with two captures of one amount within a day, neither of them refunded at all."""
    return [
        Reading(
            f"order {order}",
            1,
            f"{one} and {other} were both captured with {display(amount_minor, currency)}.",
        )
        for order, one, other, amount_minor, currency in rows(_CAPTURED_TWICE)
    ]


def settlement_silent() -> list[Reading]:
    """Per account that has had a settlement report, seconds since one was imported."""
    return [
        Reading(account, seconds, f"The last settlement report came {spell(seconds)} ago.")
        for account, seconds in rows(_LAST_REPORT, names=sorted(registry.accounts()))
    ]
