"""The installation that is measured: its settings, its database roles, its worker commands.

Each kind of program has a database role of its own, so that the server's statistics tell whose
round trips they are.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.bad_agent.__main__ import POLICY_CHANGES
from tests.bench import dialect

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "aftersend"
CLIENT, SENDER, FINDER = "aftersend_client", "aftersend_sender", "aftersend_finder"
PROCESSES = 1
SENDERS = tuple(f"money-{no}" for no in range(1, PROCESSES + 1))
WORKERS = (*SENDERS, "lookups", "beat")
# Delays only, as in the walkthrough; no rule is shortened away.
LIMITS: dict[str, Any] = {
    "send_delay_seconds": 0,
    "call_total_seconds": 4,
    "skew_seconds": 1,
    "lease_seconds": 7,
}
# Policy, or one lead, says yes to everything: what limits people is not what is measured.
POLICY = POLICY_CHANGES | {
    "tier0_max_minor = 0 ": "tier0_max_minor = {tier0} ",
    "facts_fresh_seconds = 900\n": "facts_fresh_seconds = 86400\n",
    "approvals_per_person_hour_max = 60\n": "approvals_per_person_hour_max = 10000000\n",
}
ACCOUNTS = """
[{name}]
adapter = "{name}"
base_url = "{base_url}"
contract = "{name}"
mode = "test"
"""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """`database` is a URL of the role postgres; `approval` is policy or lead."""

    database: str
    broker: str
    cache: str
    provider: str
    run_dir: Path
    approval: str = "policy"
    in_flight: int = 32

    def url(self, role: str) -> str:
        """The database as one kind of program sees it."""
        return self.database.replace("://postgres@", f"://{role}@", 1)

    def environment(self, role: str) -> dict[str, str]:
        """Nothing of the caller's own settings: this installation is one by itself."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("AFTERSEND_", "DJANGO_", "DATABASE_", "CELERY_", "CACHE_", "PG")
            )
        }
        return inherited | {
            "AFTERSEND_ENV": "demo",
            "AFTERSEND_RUN_DIR": str(self.run_dir),
            "AFTERSEND_SANDBOX_URL": self.provider,
            "AFTERSEND_POLICY_FILE": str(self.run_dir / "policy.toml"),
            "AFTERSEND_PROVIDERS": str(self.run_dir / "accounts.toml"),
            f"AFTERSEND_PROVIDER_{dialect.NAME.upper()}_KEY": "sandbox-key-bench",
            "AFTERSEND_LIMITS": json.dumps(LIMITS),
            "AFTERSEND_LOG_LEVEL": "WARNING",
            "DATABASE_URL": self.url(role),
            "CELERY_BROKER_URL": self.broker,
            "CACHE_URL": self.cache,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT),
        }

    def write_files(self) -> None:
        self.run_dir.mkdir(parents=True, exist_ok=True)
        text = (ROOT / "policy.toml").read_text()
        tier0 = "900000000" if self.approval == "policy" else "0"
        for usual, here in POLICY.items():
            assert usual in text, f"policy.toml no longer says {usual!r}"
            text = text.replace(usual, here.replace("{tier0}", tier0))
        (self.run_dir / "policy.toml").write_text(text)
        accounts = ACCOUNTS.format(name=dialect.NAME, base_url=self.provider)
        (self.run_dir / "accounts.toml").write_text(accounts)

    def make_roles(self) -> None:
        """The roles and an empty schema; whatever an earlier run left is gone."""
        with psycopg.connect(self.database, autocommit=True) as database:
            for role in (CLIENT, SENDER, FINDER):
                known = database.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
                if known.fetchone() is None:
                    database.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
                database.execute(f"ALTER ROLE {role} SET search_path = {SCHEMA}")
            database.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            database.execute(f"CREATE SCHEMA {SCHEMA}")

    def commands(self) -> dict[str, tuple[str, list[str]]]:
        """Program -> (database role, command): all of them under one roof, see `WORKERS`."""
        quiet = "--without-gossip --without-mingle --loglevel ERROR"
        threads = self.in_flight // PROCESSES
        told = [
            f"{SENDER} {name} worker -Q money -n {name}@%h -P threads -c {threads} {quiet}"
            for name in SENDERS
        ]
        told.append(f"{FINDER} lookups worker -Q lookups -n look@%h -P threads -c 4 {quiet}")
        told.append(f"{FINDER} beat beat -s {self.run_dir / 'beat-schedule'} --loglevel ERROR")
        return {"workers": (SENDER, [sys.executable, "-m", "tests.bench.workers", *told])}
