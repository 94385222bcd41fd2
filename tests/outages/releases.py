"""This release comes into a house of an older one: its migrations, and its programs beside the others."""

from __future__ import annotations

import time
from functools import partial

import psycopg

from tests.outages.asked import Asked
from tests.outages.house import Going
from tests.outages.judged import Verdict
from tests.outages.older import (
    RELEASE,
    RELEASE_NOT_EXPANDED,
    STOCKED,
    LockWatch,
    OlderHouse,
)
from tests.storm.reader import Reader

BEFORE, AFTER, EACH = 10, 5, 8
LOST_SHARE = 0.1
BESIDE_SECONDS_MAX, BROKEN_SECONDS_MAX = 240, 60
LOCK_SECONDS_MAX = 2.0
NEWEST = ("worker-money", "worker-lookups", "beat")
_SENT_SINCE = """
SELECT split_part(actor, ':', 3)::int AS pid, count(*) AS n FROM event
WHERE event = 'submission_started' AND at > to_timestamp(%s) GROUP BY 1"""
# What a program meets whose tables are not as it knows them.
_OF_THE_SCHEMA = ("UndefinedColumn", "UndefinedTable", "UndefinedFunction", "NotNullViolation")
# A table of the past is written anew, and its lock kept while the migration does something else.
_REWRITES = "ALTER TABLE event ALTER COLUMN detail TYPE jsonb USING (detail::text)::jsonb"


def migration(asked: Asked) -> Verdict:
    """A stock of the past, an older release at work, and the newest migrations."""
    with OlderHouse(RELEASE) as here:
        began = time.monotonic()
        newest = here.run("-c", STOCKED.read_text(), str(asked.stock)).strip()
        print(
            f"  {asked.stock} refunds of the past in {time.monotonic() - began:.0f} s", flush=True
        )
        plain, here.database = here.database, here.only(newest)
        with Going(here, asked) as going:
            going.until_more(BEFORE)
            watch = LockWatch(plain)
            before = going.succeeded
            with watch.watching():
                seconds, wrong = here.upgrade()
                if asked.broken == "rewrite":
                    _rewrite(plain)
            meanwhile = going.succeeded - before
            going.until_more(AFTER)
            going.rest()
            # A program waits 2 s and no longer: whoever would have had to was ended with an error.
            gave_up = here.server_log.count("due to lock timeout")
            verdict = going.judged()
    verdict.check("migrated", wrong or f"migrated within {seconds} s", holds=not wrong)
    longest = round(watch.longest_seconds, 2)
    verdict.check(
        "locks",
        f"{gave_up} gave up waiting for a lock, the longest wait was {longest} s for a table"
        f" {watch.longest_for} ({watch.looks} looks; {meanwhile} refunds succeeded meanwhile)",
        holds=gave_up == 0 and longest <= LOCK_SECONDS_MAX,
    )
    verdict.figures |= {
        "stock": asked.stock,
        "migrated_seconds": seconds,
        "longest_lock_wait_seconds": longest,
        "gave_up_waiting": gave_up,
        "succeeded_meanwhile": meanwhile,
    }
    return verdict


def _rewrite(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(_REWRITES)
        connection.execute("SELECT pg_sleep(%s)", [2 * LOCK_SECONDS_MAX])


def beside(asked: Asked) -> Verdict:
    """The newer schema under older programs, then newer ones beside them, then those alone."""
    contracted = asked.broken == "contract"
    seconds_max = BROKEN_SECONDS_MAX if contracted else BESIDE_SECONDS_MAX
    with (
        OlderHouse(RELEASE_NOT_EXPANDED if contracted else RELEASE) as here,
        Going(here, asked, lost_share=LOST_SHARE) as going,
    ):
        going.until_more(BEFORE)
        older = dict(here.programs)
        _, wrong = here.upgrade()
        migrated_at = time.time()
        newer = [here.beside(name) for name in NEWEST]
        pids = {"older": here.money.pid, "newer": newer[0].pid}
        sent = partial(_sent, going.reader, migrated_at, pids)
        going.until(lambda: min(sent().values()) >= EACH, seconds_max, "both releases send")
        # The address is one: the older one lets go of it, and callers are patient.
        here.end_older("web")
        here.beside("web")
        going.until_more(AFTER, seconds_max)
        for name in NEWEST:
            here.end_older(name)
        going.until_more(AFTER, seconds_max)
        going.rest()
        counted = sent()
        said = "".join(each.log.read_text(errors="replace") for each in older.values())
        verdict = going.judged()
    stumbled = sum(said.count(each) for each in _OF_THE_SCHEMA)
    verdict.check("migrated", wrong or "the newer schema is there", holds=not wrong)
    verdict.check(
        "both_send",
        f"since then the older release sent {counted['older']}, the newer one {counted['newer']}",
        holds=all(n >= EACH for n in counted.values()),
    )
    verdict.check(
        "stumbles", f"the older one met {stumbled} errors of the schema", holds=stumbled == 0
    )
    unknown = verdict.figures["unknown_meanwhile"]
    verdict.check("found", f"{unknown} lost answers were found out", holds=unknown > 0)
    verdict.figures |= {f"sent_by_{name}": n for name, n in counted.items()}
    return verdict


def _sent(reader: Reader, since: float, pids: dict[str, int]) -> dict[str, int]:
    counted = {row["pid"]: row["n"] for row in reader.rows(_SENT_SINCE, since)}
    return {name: counted.get(pid, 0) for name, pid in pids.items()}
