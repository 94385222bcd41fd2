"""The product beside other engines, driven by a harness that knows three names.

    setup()                 the harness's server holds a fresh installation of ours
    Submitter().submit(op)  propose a refund of 100; it is approved when this returns
    worker()                runs our worker commands until it is killed

Copy this file beside the harness's other contenders (as `c_ours.py`) and say with
AFTERSEND_CHECKOUT where this repository lies. The harness's module `common` gives the server
(DSN), the provider (PROVIDER) and the number in flight (CONC); BENCH_REDIS_PORT its broker.
AFTERSEND_APPROVAL is policy (as usual here: what the other contenders do) or lead.

The view `bench_op` shows our operations in the harness's words. It stands where the harness has a
table, and an event trigger takes it away before the harness drops that table.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

_checkout = os.environ.get("AFTERSEND_CHECKOUT") or str(Path(__file__).resolve().parents[2])
if not Path(_checkout, "refunds").is_dir():
    raise SystemExit("Set AFTERSEND_CHECKOUT to the checkout of Aftersend.")
sys.path.insert(1, _checkout)

import psycopg  # noqa: E402

from tests.bench.ground import CLIENT, ROOT, SCHEMA, Ground  # noqa: E402

# The harness knows its own module; here there is none of that name.
common: Any = import_module("common")
REDIS = True
RPORT = os.environ.get("BENCH_REDIS_PORT", "26399")
ORDERS = 20_000
FINISHED_FROM = 20_000_000
GROUND = Ground(
    database=common.DSN,
    broker=f"redis://127.0.0.1:{RPORT}/0",
    cache=f"redis://127.0.0.1:{RPORT}/1",
    provider=common.PROVIDER,
    run_dir=Path(os.environ.get("BENCH_TMP", tempfile.gettempdir())) / "aftersend",
    approval=os.environ.get("AFTERSEND_APPROVAL", "policy"),
    in_flight=common.CONC,
)
_VIEW = f"""
DROP TABLE bench_op CASCADE;
CREATE VIEW bench_op AS
SELECT substr(request_ref, 4)::bigint AS id,
       CASE state WHEN 'succeeded' THEN 'done' ELSE state END AS state,
       created_at, CASE state WHEN 'succeeded' THEN settled_at END AS recorded_at
FROM {SCHEMA}.operation WHERE request_ref LIKE 'op-%';
CREATE OR REPLACE FUNCTION bench_op_is_no_table() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'DROP VIEW IF EXISTS public.bench_op';
  EXECUTE 'DROP EVENT TRIGGER bench_op_goes';
END $$;
DROP EVENT TRIGGER IF EXISTS bench_op_goes;
CREATE EVENT TRIGGER bench_op_goes ON ddl_command_start WHEN TAG IN ('DROP TABLE')
  EXECUTE FUNCTION bench_op_is_no_table();
"""


# The harness counts by number, twenty times a second; among many its own table has a key for that.
_BY_NUMBER = f"""
CREATE INDEX bench_op_by_number ON {SCHEMA}.operation ((substr(request_ref, 4)::bigint))
WHERE request_ref LIKE 'op-%'
"""


def _set_up_django() -> None:
    os.environ.update(GROUND.environment(CLIENT))
    import django

    django.setup()
    from tests.bench import dialect

    dialect.register()


def setup() -> None:
    """An empty installation on the harness's server; as many finished operations as it wants."""
    with psycopg.connect(common.DSN, autocommit=True) as database:
        row = database.execute(
            f"SELECT count(*) FROM bench_op WHERE id >= {FINISHED_FROM}"
        ).fetchone()
        finished = row[0] if row else 0
    GROUND.make_roles()
    GROUND.write_files()
    for old in GROUND.run_dir.glob("witness/*.json"):
        old.unlink()  # of the database that this one replaces
    _set_up_django()
    from tests.bench import client

    client.migrate()
    client.fill(orders=ORDERS, finished=finished)
    with psycopg.connect(common.DSN, autocommit=True) as database:
        database.execute(_VIEW)
        if finished:
            database.execute(_BY_NUMBER)
        # Only what was filled: a table that is known to be empty is read from end to end.
        database.execute(
            "ANALYZE"
            if finished
            else f"ANALYZE {SCHEMA}.orders, {SCHEMA}.order_move, {SCHEMA}.payment"
        )


class Submitter:
    """A client of the product; the approval is there when `submit` returns."""

    def __init__(self) -> None:
        from tests.bench import client

        self._client: Any = client.Submitter(by_lead=GROUND.approval == "lead", orders=ORDERS)

    def submit(self, op: int) -> None:
        self._client.submit(op)


def worker() -> None:
    """The senders, who finds out and the beat, each by the product's own command."""
    running = [
        subprocess.Popen(command, env=GROUND.environment(role), cwd=ROOT)
        for role, command in GROUND.commands().values()
    ]
    for each in running:
        each.wait()


if __name__ == "__main__":
    worker()
