"""The numbers of the first page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers that need more than a count of rows, over the days that were asked for.

    `paid_twice`: operations that more than one counting provider refund stands for.
    `median_to_end`: from unknown to ended, of those that ended; None when none did.
    """

    paid_twice: int
    ended_count: int
    median_to_end: timedelta | None


def numbers(since: datetime) -> Numbers:
    """All of them, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_NUMBERS, {"since": since})
        paid_twice, ended_count, median = cursor.fetchone()
    return Numbers(paid_twice=paid_twice, ended_count=ended_count, median_to_end=median)


_NUMBERS = """
SELECT twice.number, ended.number, ended.median
FROM (
  SELECT count(*) AS number FROM (
    SELECT 1 FROM provider_refund WHERE counts AND operation_id IS NOT NULL
    GROUP BY operation_id HAVING count(*) > 1 AND max(first_seen_at) >= %(since)s
  ) AS each_operation
) AS twice, (
  SELECT count(*) AS number,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY settled_at - unknown_since) AS median
  FROM operation WHERE unknown_since IS NOT NULL AND settled_at >= %(since)s
) AS ended
"""
