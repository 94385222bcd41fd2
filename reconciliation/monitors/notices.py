"""Readings about what providers tell us unasked: forged, not applied yet, or not at all."""

from __future__ import annotations

from reconciliation.monitors.reading import Reading, rows, spell
from refunds.providers import registry

_REFUSED = """
SELECT provider_account, sum(count) FROM notice_refused
WHERE reason IN ('forged', 'stale') AND minute > clock_timestamp() - interval '6 minutes'
GROUP BY provider_account"""

# What waits for its operation becomes a case of its own after 15 minutes and is no backlog then.
_BACKLOG = """
SELECT provider_account, count(*),
       max(extract(epoch FROM clock_timestamp() - stored_at))::float8
FROM notice WHERE applied_at IS NULL AND case_id IS NULL GROUP BY provider_account"""

# Ids are in the order of arrival; the newest of an account is near the end.
_SILENCE = """
SELECT s.account,
       extract(epoch FROM clock_timestamp() - greatest(s.first_at, (
         SELECT n.stored_at FROM notice n WHERE n.provider_account = s.account
         ORDER BY n.id DESC LIMIT 1)))::float8
FROM (
  SELECT o.provider_account AS account, min(e.at) AS first_at, max(e.at) AS last_at
  FROM event e JOIN operation o ON o.id = e.operation_id
  WHERE e.to_state = 'succeeded' AND e.at > clock_timestamp() - interval '25 hours'
    AND o.provider_account = ANY (%(names)s)
  GROUP BY o.provider_account) s
WHERE s.last_at > clock_timestamp() - interval '6 hours'"""


def refused() -> list[Reading]:
    """Per account, notices of five minutes whose signature or time was not right."""
    return [
        Reading(
            account, int(count), f"{count} notices of {account} were not signed as they must be."
        )
        for account, count in rows(_REFUSED)
    ]


def backlog() -> list[Reading]:
    """Per account, seconds since the oldest notice came that was not applied."""
    return [
        Reading(
            account, oldest, f"{count} notices are not applied; the oldest for {spell(oldest)}."
        )
        for account, count, oldest in rows(_BACKLOG)
    ]


def silence() -> list[Reading]:
    """Per account that sends notices and whose refunds succeed, seconds without one."""
    names = [
        name for name, account in registry.accounts().items() if account.contract.notice != "none"
    ]
    return [
        Reading(account, seconds, f"{account} has told us nothing for {spell(seconds)}.")
        for account, seconds in rows(_SILENCE, names=names)
    ]
