"""From raw rounds to figures, each with what must be reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench.figures import Bar, Figure, figure, percentile

Rounds = Sequence[dict[str, Any]]

# What holds however busy the machine is.
_COUNTS = (
    ("write transactions after authorisation", "send_write_tx", "1/op", Bar(must=2.1, goal=2.0)),
    ("write transactions of a proposal", "proposal_write_tx", "1/op", None),
    ("WAL of a send", "send_wal_bytes", "B", Bar(must=5000, goal=4300)),
    ("WAL of a proposal and its send", "wal_bytes", "B", None),
    ("page images beside it", "images_bytes", "B", None),
    ("round trips of a sender", "round_trips", "1/op", Bar(must=6, goal=2)),
)
_BURST = (
    ("CPU per 1,000 refunds", "cpu_s_1000", "s", None),
    ("CPU of the workers", "worker_cpu_s_1000", "s", None),
    ("CPU of PostgreSQL", "postgres_cpu_s_1000", "s", None),
    ("CPU of the client", "client_cpu_s_1000", "s", None),
    ("memory of the workers", "memory_mb", "MB", Bar(must=200, goal=130)),
    ("proposals", "proposed_s", "1/s", None),
)
_SAME_SPEED = Bar(must=0.85, goal=0.95, up=True, of_time=True)
_PAGE_GROWTH = {
    "queue": Bar(must=1.3, goal=1.1, of_time=True),
    "operation": Bar(must=1.3, of_time=True),
}
_SMALL = "the small database"
_MANY = 1_000_000


def figures(rounds: Rounds, *, large: int) -> list[Figure]:
    """All of them; `rounds` as `__main__` collects them, by name of the database, of which the
    large one has so many operations."""
    found = [
        figure(name, _each(rounds, "small", "counts", key), unit, bar)
        for name, key, unit, bar in _COUNTS
    ]
    speed = {size: _each(rounds, size, "burst", "ops_s") for size in ("small", "large")}
    found.append(figure("refunds in a burst", speed["small"], "1/s"))
    found.append(
        figure(
            "refunds in a burst, large database",
            speed["large"],
            "1/s",
            _SAME_SPEED,
            against=_SMALL,
            than=speed["small"],
        )
    )
    found += [
        figure(name, _each(rounds, "small", "burst", key), unit, bar)
        for name, key, unit, bar in _BURST
    ]
    found += [
        figure(f"from proposal to recorded, {key}", _each(rounds, "small", "rate", key), "ms")
        for key in ("p50", "p95", "p99")
    ]
    return found + _looks(rounds, large)


def _looks(rounds: Rounds, large: int) -> list[Figure]:
    found = []
    for page in rounds[0]["small"]["pages"]:
        for share in (50, 95):
            times = {size: _page(rounds, size, page, share) for size in ("small", "large")}
            found.append(figure(f"page {page}, p{share}", times["small"], "ms"))
            found.append(
                figure(
                    f"page {page}, p{share}, large database",
                    times["large"],
                    "ms",
                    _PAGE_GROWTH.get(page) if share == 50 else None,
                    against=_SMALL,
                    than=times["small"],
                )
            )
        queries = [float(one["large"]["pages"][page]["queries"]) for one in rounds]
        found.append(figure(f"page {page}, queries", queries, "1"))
    found += _beside_admin(rounds, large)
    for sweep in rounds[0]["small"]["sweeps"]:
        sweeps = {
            size: [percentile(one[size]["sweeps"][sweep], 0.5) for one in rounds]
            for size in ("small", "large")
        }
        found.append(
            figure(
                f"sweep {sweep}, large database",
                sweeps["large"],
                "ms",
                against=_SMALL,
                than=sweeps["small"],
            )
        )
    taken = [one["small"]["notices"] for one in rounds]
    found.append(figure("notices", [each["count"] / each["seconds"] for each in taken], "1/s"))
    found.append(
        figure(
            "CPU of a notice", [each["cpu_seconds"] / each["count"] * 1000 for each in taken], "ms"
        )
    )
    return found


def _beside_admin(rounds: Rounds, large: int) -> list[Figure]:
    """The queue beside what Django has for nothing, over the same rows. It counts all of them for
    each page, which is what the bar is about: among few rows that costs nothing."""
    bar = Bar(must=0.2, goal=0.1, of_time=True) if large >= _MANY else None
    admin = [percentile(one["large"]["admin"], 0.5) for one in rounds]
    return [
        figure("page 1 of Django's admin, p50, large database", admin, "ms"),
        figure(
            "page queue beside it, p50, large database",
            [percentile(one["large"]["beside_admin"], 0.5) for one in rounds],
            "ms",
            bar,
            against="Django's admin",
            than=admin,
        ),
    ]


def _each(rounds: Rounds, size: str, part: str, key: str) -> list[float]:
    return [float(one[size][part][key]) for one in rounds]


def _page(rounds: Rounds, size: str, page: str, share: int) -> list[float]:
    return [percentile(one[size]["pages"][page]["ms"], share / 100) for one in rounds]
