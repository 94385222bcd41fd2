"""Readings about time: what waits longer than it should."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from reconciliation.monitors.reading import Reading, contract_seconds, rows, spell
from refunds.providers import registry

# `due_at IS NOT NULL` is the partial index of everything that is on its way.
_PAST_TARGET = """
SELECT o.provider_account, count(*),
       max(extract(epoch FROM clock_timestamp() - o.unknown_since))::float8,
       max(a.seconds), (array_agg(r.ref ORDER BY o.unknown_since))[1]
FROM operation o JOIN orders r ON r.id = o.order_id
JOIN unnest(%(names)s::text[], %(seconds)s::int[]) AS a (name, seconds)
  ON a.name = o.provider_account
WHERE o.state = 'unknown' AND o.due_at IS NOT NULL
  AND o.unknown_since < clock_timestamp() - a.seconds * interval '1 second'
GROUP BY o.provider_account"""

_PAST_QUIET = """
SELECT provider_account, count(*), max(over_seconds)::float8 FROM (
  SELECT o.provider_account, extract(epoch FROM clock_timestamp() - max(
           coalesce(t.stop_proof_at, t.send_deadline + a.idle * interval '1 second')))
         - max(a.seconds) AS over_seconds
  FROM operation o JOIN attempt t ON t.operation_id = o.id
  JOIN unnest(%(names)s::text[], %(seconds)s::int[], %(idle)s::int[]) AS a (name, seconds, idle)
    ON a.name = o.provider_account
  WHERE o.state = 'unknown' AND o.due_at IS NOT NULL GROUP BY o.id
  HAVING bool_and(t.stop_proof_at IS NOT NULL OR a.idle IS NOT NULL)
) each WHERE over_seconds > 0 GROUP BY provider_account"""

# Ids are ordered by the time of their making. Of a handful, one is a large share and no news.
_UNKNOWN_SHARE = """
SELECT provider_account, count(*) FILTER (WHERE state = 'unknown'), count(*) FROM operation
WHERE id >= %(since)s GROUP BY provider_account HAVING count(*) >= %(refunds_min)s"""

_KEY_WINDOW = """
SELECT provider_account, max(share)::float8, count(*) FROM (
  SELECT o.provider_account, 100 * extract(epoch FROM clock_timestamp() - min(t.recorded_at))
         / max(a.seconds) AS share
  FROM operation o JOIN attempt t ON t.operation_id = o.id
  JOIN unnest(%(names)s::text[], %(seconds)s::int[]) AS a (name, seconds)
    ON a.name = o.provider_account
  WHERE o.state = 'unknown' AND o.due_at IS NOT NULL GROUP BY o.id
) each WHERE share BETWEEN 50 AND 100 GROUP BY provider_account"""

_SUBMITTING = """
SELECT o.provider_account, count(*), max(extract(epoch FROM clock_timestamp() - t.lease_until))::float8
FROM operation o JOIN attempt t ON t.operation_id = o.id AND t.no = o.attempt_count
WHERE o.state = 'submitting' AND o.due_at IS NOT NULL AND t.lease_until < clock_timestamp()
GROUP BY o.provider_account"""

# What a person, a pause or a stop holds back waits for them, not for a worker.
_AUTHORIZED = """
SELECT o.provider_account, count(*), percentile_cont(0.95) WITHIN GROUP (ORDER BY
         extract(epoch FROM clock_timestamp() - greatest(o.entered_at, o.not_before))::float8)
FROM operation o JOIN payment p ON p.id = o.payment_id JOIN orders r ON r.id = o.order_id
LEFT JOIN provider_account a ON a.name = o.provider_account
WHERE o.state = 'authorized' AND o.due_at IS NOT NULL AND NOT o.halted AND NOT p.halted
  AND NOT r.frozen AND coalesce(a.pause_kind, '') = ''
  AND coalesce(o.not_before, o.entered_at) <= clock_timestamp()
  AND NOT EXISTS (SELECT FROM sending_stop WHERE ended_at IS NULL)
  AND NOT EXISTS (SELECT FROM quarantine WHERE lifted_at IS NULL)
GROUP BY o.provider_account"""

_OWNERLESS = """
SELECT count(*),
       max(extract(epoch FROM clock_timestamp() - greatest(opened_at, owned_until)))::float8
FROM review_case WHERE closed_at IS NULL
  AND (owner_id IS NULL OR owned_until <= clock_timestamp()) HAVING count(*) > 0"""

_UNWATCHED = """
SELECT provider_account, count(*), min(business_key) FROM operation
WHERE state IN ('unknown', 'pending', 'submitting') AND due_at IS NULL
GROUP BY provider_account"""

# What was never read to its end is as old as the wish to read it.
_LISTS = """
SELECT s.provider_account, s.because,
       extract(epoch FROM clock_timestamp() - coalesce(s.covered_until, s.stood_by_at))::float8
FROM account_sweep s
WHERE s.kind = %(kind)s AND s.provider_account = ANY (%(names)s)"""


def unknown_past_target() -> list[Reading]:
    """Per account, by how many seconds the oldest unknown refund is past the account's target."""
    found = rows(_PAST_TARGET, **contract_seconds("unknown_target_seconds"))
    return [
        Reading(
            account,
            oldest - target,
            f"{count} unknown for longer than {spell(target)}; the oldest, of order {order}, for"
            f" {spell(oldest)}.",
        )
        for account, count, oldest, target, order in found
    ]


def unknown_past_quiet() -> list[Reading]:
    """Per account, seconds since the last possible landing of the oldest unknown refund."""
    names, quiet, idle = [], [], []
    for name, account in registry.accounts().items():
        flight, lag = account.contract.flight_max.seconds, account.contract.lookup_lag.seconds
        if flight is not None and lag is not None:
            names.append(name)
            quiet.append(flight + lag + 2 * settings.LIMITS.skew_seconds)
            idle.append(account.contract.idle_close.seconds)
    return [
        Reading(
            account,
            over,
            f"{count} still unknown although nothing can land any more; for {spell(over)}.",
        )
        for account, count, over in rows(_PAST_QUIET, names=names, seconds=quiet, idle=idle)
    ]


def unknown_share(refunds_min: int = 100) -> list[Reading]:
    """Per account, the unknown share of the last day's refunds in percent; none of fewer refunds."""
    a_day_ago_ms = int((timezone.now() - timedelta(days=1)).timestamp() * 1000)
    since = UUID(int=a_day_ago_ms << 80)
    return [
        Reading(account, 100 * unknown / count, f"{unknown} of the {count} of a day are unknown.")
        for account, unknown, count in rows(_UNKNOWN_SHARE, since=since, refunds_min=refunds_min)
    ]


def key_window() -> list[Reading]:
    """Per account with keys that end, the used part of the window in percent; an ended window is
    no reading any more."""
    return [
        Reading(
            account,
            share,
            f"{count} unknown with {share:.0f} % of the key's life gone: the last time in"
            " which sending again cannot pay twice.",
        )
        for account, share, count in rows(_KEY_WINDOW, **contract_seconds("key_window"))
    ]


def submitting_late() -> list[Reading]:
    """Per account, seconds since the oldest lease ended that nobody has ended."""
    return [
        Reading(account, late, f"{count} being sent, with leases over for {spell(late)}.")
        for account, count, late in rows(_SUBMITTING)
    ]


def authorized_waiting() -> list[Reading]:
    """Per account, the 95th percentile of the seconds that refunds wait for a worker."""
    return [
        Reading(
            account,
            late,
            f"{count} approved and free to go; they wait {spell(late)}.",
        )
        for account, count, late in rows(_AUTHORIZED)
    ]


def cases_without_owner() -> list[Reading]:
    """Seconds since the oldest open case has nobody."""
    return [
        Reading(
            "",
            oldest,
            f"{count} cases have no owner; the oldest for {spell(oldest)}.",
        )
        for count, oldest in rows(_OWNERLESS)
    ]


def not_looked_at() -> list[Reading]:
    """Per account, uncertain refunds that no sweep will ever find: they have no next look."""
    return [
        Reading(account, count, f"{count} uncertain and due never, {first} among them.")
        for account, count, first in rows(_UNWATCHED)
    ]


def lists_old() -> list[Reading]:
    """Per account with lists, seconds since the instant up to which all of it was listed."""
    return _lists("recent")


def weeks_old() -> list[Reading]:
    """The same of the daily reading, which goes over the last weeks again."""
    return _lists("deep")


def _lists(kind: str) -> list[Reading]:
    names = [
        name
        for name, account in registry.accounts().items()
        if account.contract.account_list != "none"
    ]
    return [
        Reading(
            account,
            seconds,
            f"Listed to its end as of {spell(seconds)} ago.{f' Now: {why}.' if why else ''}",
        )
        for account, why, seconds in rows(_LISTS, kind=kind, names=names)
    ]
