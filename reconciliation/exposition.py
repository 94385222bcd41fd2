"""The state of the whole as numbers: Prometheus text, version 0.0.4. Counted in the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciliation import heartbeat
from reconciliation.monitors.reading import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric: its rows are the label values in the order of `labels`, then the number."""

    name: str
    says: str
    labels: tuple[str, ...]
    statement: str


# Over partial and BRIN indexes: what ended long ago is not read.
FAMILIES: Final = (
    Family(
        name="aftersend_operations",
        says="Refunds that have not ended, by state and account.",
        labels=("state", "account"),
        statement="""SELECT state, provider_account, count(*) FROM operation
          WHERE state IN ('awaiting_approval', 'authorized', 'submitting', 'pending', 'unknown')
          GROUP BY 1, 2""",
    ),
    Family(
        name="aftersend_uncertain_minor",
        says="Money that may have moved, in minor units.",
        labels=("account", "currency"),
        statement="""SELECT provider_account, currency, sum(amount_minor) FROM operation
          WHERE state IN ('submitting', 'pending', 'unknown') GROUP BY 1, 2""",
    ),
    Family(
        name="aftersend_unknown_oldest_seconds",
        says="Age of the oldest refund whose outcome is unknown.",
        labels=("account",),
        statement="""SELECT provider_account,
            max(extract(epoch FROM clock_timestamp() - unknown_since))
          FROM operation WHERE state = 'unknown' GROUP BY 1""",
    ),
    Family(
        name="aftersend_stale_approvals",
        says="Proposals whose approval lapsed because the facts moved.",
        labels=("cause",),
        statement="""SELECT stale_cause, count(*) FROM operation
          WHERE state = 'awaiting_approval' AND stale_cause <> '' GROUP BY 1""",
    ),
    Family(
        name="aftersend_cases",
        says="Open cases by reason; a case with two reasons counts for both.",
        labels=("reason", "owned"),
        statement="""SELECT reason, CASE WHEN owner_id IS NULL THEN 'no' ELSE 'yes' END, count(*)
          FROM review_case, unnest(reasons) AS reason WHERE closed_at IS NULL GROUP BY 1, 2""",
    ),
    Family(
        name="aftersend_reconciliation_seconds",
        says="From unknown to known, of what was settled in the last hour.",
        labels=("quantile",),
        statement="""SELECT quantile::text, percentile_cont(quantile) WITHIN GROUP (
            ORDER BY extract(epoch FROM o.settled_at - o.unknown_since))
          FROM event e JOIN operation o ON o.id = e.operation_id AND o.version = e.seq,
            unnest(ARRAY[0.5, 0.95]) AS quantile
          WHERE e.at > clock_timestamp() - interval '1 hour'
            AND o.settled_at IS NOT NULL AND o.unknown_since IS NOT NULL GROUP BY quantile""",
    ),
    Family(
        name="aftersend_settled_last_hour",
        says="Refunds that ended in the last hour, by state.",
        labels=("state",),
        statement="""SELECT o.state, count(*)
          FROM event e JOIN operation o ON o.id = e.operation_id AND o.version = e.seq
          WHERE e.at > clock_timestamp() - interval '1 hour' AND o.settled_at IS NOT NULL
          GROUP BY 1""",
    ),
    Family(
        name="aftersend_attempts_last_hour",
        says="Sends of the last hour by outcome; open: not answered yet.",
        labels=("account", "outcome"),
        statement="""SELECT o.provider_account, CASE WHEN t.closed_at IS NULL THEN 'open'
            ELSE coalesce(t.outcome, 'lost') END, count(*)
          FROM attempt t JOIN operation o ON o.id = t.operation_id
          WHERE t.recorded_at > clock_timestamp() - interval '1 hour' GROUP BY 1, 2""",
    ),
    Family(
        name="aftersend_lookups_last_hour",
        says="Lookups of the last hour by what they said.",
        labels=("account", "verdict"),
        statement="""SELECT o.provider_account, v.facts ->> 'verdict', count(*)
          FROM evidence v JOIN operation o ON o.id = v.operation_id
          WHERE v.kind = 'lookup' AND v.stored_at > clock_timestamp() - interval '1 hour'
          GROUP BY 1, 2""",
    ),
    Family(
        name="aftersend_account_paused",
        says="1 for an account that does not send, by what paused it.",
        labels=("account", "kind"),
        statement="SELECT name, pause_kind, 1 FROM provider_account WHERE pause_kind <> ''",
    ),
    Family(
        name="aftersend_sending_stopped",
        says="1 while everything is stopped, by what stopped it.",
        labels=("kind",),
        statement="""SELECT 'stop', count(*) FROM sending_stop WHERE ended_at IS NULL
          UNION ALL SELECT 'quarantine', count(*) FROM quarantine WHERE lifted_at IS NULL""",
    ),
    Family(
        name="aftersend_alarm",
        says="1 for each alarm that is firing.",
        labels=("signal", "subject", "level", "acknowledged"),
        statement="""SELECT name, subject, level, CASE WHEN EXISTS (
              SELECT FROM alarm_acknowledgement k WHERE k.alarm_id = a.id
                AND k.until > clock_timestamp()) THEN 'yes' ELSE 'no' END, 1
          FROM alarm a WHERE ended_at IS NULL""",
    ),
    Family(
        name="aftersend_signal_value",
        says="The highest last reading of each signal, in its own unit.",
        labels=("signal",),
        statement="SELECT name, value FROM signal_run WHERE value IS NOT NULL",
    ),
    Family(
        name="aftersend_signal_read_seconds",
        says="Since when each signal was last computed well. No growth here is what quiet means.",
        labels=("signal",),
        statement="""SELECT name, extract(epoch FROM clock_timestamp() - good_at) FROM signal_run
          WHERE good_at IS NOT NULL""",
    ),
    Family(
        name="aftersend_verifier_round_seconds",
        says="Since when each verifier last came through everything.",
        labels=("verifier",),
        statement="""SELECT name, extract(epoch FROM clock_timestamp() - last_ended_at)
          FROM verifier_round WHERE last_ended_at IS NOT NULL""",
    ),
    Family(
        name="aftersend_verifier_found",
        says="Contradictions that each verifier's last whole round found.",
        labels=("verifier",),
        statement="SELECT name, last_found_count FROM verifier_round WHERE last_ended_at IS NOT NULL",
    ),
)


def text() -> str:
    """Everything, as Prometheus reads it."""
    lines = [line for family in FAMILIES for line in _lines(family, rows(family.statement))]
    at = heartbeat.last_beat()
    if at is not None:
        lines += [
            "# HELP aftersend_sweep_timestamp_seconds When the sweep for due lookups last ran.",
            "# TYPE aftersend_sweep_timestamp_seconds gauge",
            f"aftersend_sweep_timestamp_seconds {at.timestamp():.3f}",
        ]
    return "\n".join([*lines, ""])


def _lines(family: Family, found: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    yield f"# HELP {family.name} {family.says}"
    yield f"# TYPE {family.name} gauge"
    for *labels, value in found:
        named = dict(zip(family.labels, labels, strict=True))
        yield f"{family.name}{_labels(named)} {value:.12g}"


def _labels(named: Mapping[str, Any]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in named.items()) + "}"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
