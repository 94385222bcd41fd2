"""A whole Aftersend of its own: servers, sandbox, web, workers, beat, on free loopback ports."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from config import embedded
from config.embedded import Postgres
from config.supervision.guardian import MARK_VARIABLE
from tests.backup import Backup
from tests.guarded import Guarded
from tests.provider_process import ROOT, SandboxProcess
from tests.walkthrough.programs import Killed, NotReady, Program

DATABASE = "aftersend"
# Delays only; no rule is shortened away.
LIMITS: dict[str, Any] = {
    "send_delay_seconds": 0,
    "call_total_seconds": 4,
    "skew_seconds": 1,  # every program reads the clock of one machine
    "lease_seconds": 7,
    "waiting_seconds": 1,
    "not_sent_backoff_seconds": [1],
    "probe_after_seconds": 1,
    "probe_again_seconds": 2,
}
# This shop trusts one lead with more, so that a whole afternoon fits under one approval each.
POLICY_CHANGES = {
    "tier1_max_minor = 10000\n": "tier1_max_minor = 900000\n",
    "tier2_max_minor = 100000\n": "tier2_max_minor = 950000\n",
    "per_day_minor = 200000\n": "per_day_minor = 900000\n",
}
_LOOKUPS = ("-Q", "lookups", "-n", "look@%h", "-P", "threads", "-c", "4")
_BEAT = ("-m", "celery", "-A", "config.celery", "beat", "-s")


class Installation:
    """Use it as a context manager. Nothing of it is left afterwards, not even after a SIGKILL."""

    def __init__(
        self,
        *,
        broken: str = "",
        broken_module: str = "tests.walkthrough.broken",
        policy_changes: dict[str, str] = POLICY_CHANGES,
        web_module: str = "config.asgi",
        accounts_file: str = "",
        settings: dict[str, str] | None = None,
        lookup_workers: int = 1,
        limits: dict[str, Any] | None = None,
    ) -> None:
        """`broken` names one guard that its workers run without (see `broken.py`);
        `policy_changes` replaces lines of policy.toml; `web_module` holds the `application`.

        `accounts_file` is what AFTERSEND_PROVIDERS names, `{sandbox}` standing for the provider's
        address; `settings` are further variables of the environment, `limits` further delays.
        """
        self.run_dir = Path(tempfile.mkdtemp(prefix="walk-"))
        # Where its programs write to, and where the code that they run lies.
        self.logs, self.code = self.run_dir, ROOT
        self.address = f"http://127.0.0.1:{_free_port()}"
        self._token = secrets.token_hex(16)
        self.provider = SandboxProcess(
            self.run_dir / "book.sqlite3", environment={**os.environ, MARK_VARIABLE: self._token}
        )
        self._provider_is_down = False
        self._broken, self._broken_module = broken, broken_module
        self._policy_changes = policy_changes
        self._web_module = web_module
        self._accounts_file, self._settings = accounts_file, settings or {}
        self._lookup_workers = lookup_workers
        self._limits = LIMITS | (limits or {})
        home = embedded.home_for(ROOT, self.run_dir, "demo")
        self._database, self._bell = embedded.servers_for(home, "demo")
        self.database = self._database.url(DATABASE)
        self.backup = Backup(self._database.url("postgres"), DATABASE)
        self.programs: dict[str, Program] = {}
        self._standbys: list[Postgres] = []

    @property
    def money(self) -> Program:
        """The worker that sends."""
        return self.programs["worker-money"]

    @property
    def lookups(self) -> Program:
        """The worker that finds out."""
        return self.programs["worker-lookups"]

    @contextmanager
    def nobody_looks(self) -> Iterator[None]:
        """Nothing is found out while the block runs."""
        with ExitStack() as finders:
            for name, program in self.programs.items():
                if name == "beat" or name.startswith("worker-lookups"):
                    finders.enter_context(program.asleep())
            yield

    @property
    def skew_seconds(self) -> int:
        """By how much this installation's clocks may differ."""
        return int(LIMITS["skew_seconds"])

    @property
    def backup_database(self) -> str:
        """The copy that `backup.take` made."""
        return self._database.url(self.backup.copy)

    @property
    def lost_database(self) -> str:
        """What `backup.restore` put aside."""
        return self._database.url(self.backup.lost)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Nothing of it runs while the block does; servers and provider go on."""
        with ExitStack() as all_of_them:
            for program in self.programs.values():
                all_of_them.enter_context(program.asleep())
            yield

    def __enter__(self) -> Self:
        self._guarded = Guarded(
            self._token, self.run_dir, self._database, self._bell, *self._standbys
        )
        try:
            with ThreadPoolExecutor() as at_once:
                started = [at_once.submit(each) for each in self._servers()]
                for each in started:
                    each.result()
            self.environment = self._environment()
            self._write_files()
            self.run("-m", "tests.walkthrough.people")
            kept = json.loads((self.run_dir / "demo.json").read_text())
            self.keys: dict[str, str] = kept["keys"]
            self.password: str = kept["password"]
            self._start_programs()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, *arguments: str) -> str:
        """One Python program to its end, in this environment; what it printed.

        Raises NotReady with its own words when it fails.
        """
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.code,
            env=self.environment,
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode != 0:
            raise NotReady(f"{' '.join(arguments)} ended with {ran.returncode}: {ran.stderr}")
        return ran.stdout

    def heal(self) -> None:
        """Everything awake, alive and answering again, whatever a step left behind."""
        for program in self.programs.values():
            program.wake()
            if not program.runs():
                self.start_again(program)
        self.bring_provider_back()
        self.provider.clear_faults()
        self.provider.release()

    def kill_provider(self) -> Killed:
        """SIGKILL the provider: from now on connections are refused."""
        killed = {"process": "sandbox", "pid": self.provider.pid, "signal": int(signal.SIGKILL)}
        self.provider.kill()
        self._provider_is_down = True
        return killed

    def bring_provider_back(self) -> None:
        """Start it on its port with its book; does nothing while it runs."""
        if self._provider_is_down:
            self.provider.start(self.provider.port)
            self._provider_is_down = False

    def start_again(self, program: Program) -> None:
        """Start a program that ended and wait until it is up."""
        program.start()
        program.wait_for_words(ready_words(program.name))

    def _servers(self) -> list[Callable[[], object]]:
        """What is started first, all at once."""
        return [
            partial(self._database.ensure, DATABASE),
            self._bell.ensure,
            self.provider.start,
        ]

    def _start_programs(self) -> None:
        for name, command in self._commands().items():
            level = [] if name == "web" else ["--loglevel", "INFO"]
            log = self.logs / f"{name}.log"
            whole = [sys.executable, *command, *level]
            program = Program(name, whole, self.environment, log, code=self.code)
            program.start()
            self.programs[name] = program
        for name, program in self.programs.items():
            program.wait_for_words(ready_words(name))

    def _commands(self) -> dict[str, list[str]]:
        """What each program is started with, by its name."""
        port = self.address.rpartition(":")[2]
        celery = ["-m", self._broken_module, self._broken] if self._broken else ["-m", "celery"]
        worker = [*celery, "-A", "config.celery", "worker", "--without-gossip", "--without-mingle"]
        commands = {
            "web": ["-m", "uvicorn", f"{self._web_module}:application", "--port", port],
            "worker-money": [*worker, "-Q", "money", "-n", "money@%h", "-P", "prefork", "-c", "2"],
            "worker-lookups": [*worker, *_LOOKUPS],
            "beat": [*_BEAT, str(self.run_dir / "beat")],
        }
        for number in range(2, self._lookup_workers + 1):
            beside = commands["worker-lookups"].copy()
            beside[beside.index("look@%h")] = f"look{number}@%h"
            commands[f"worker-lookups-{number}"] = beside
        return commands

    def _environment(self) -> dict[str, str]:
        """Nothing of the caller's own settings: this installation is one by itself."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("AFTERSEND_", "DJANGO_", "DATABASE_", "CELERY_", "CACHE_", "PG")
            )
        }
        accounts = {"AFTERSEND_PROVIDERS": str(self.run_dir / "accounts.toml")}
        return (
            inherited
            | self._settings
            | (accounts if self._accounts_file else {})
            | {
                MARK_VARIABLE: self._token,
                "AFTERSEND_ENV": "demo",
                "AFTERSEND_RUN_DIR": str(self.run_dir),
                "AFTERSEND_PORT": self.address.rpartition(":")[2],
                "AFTERSEND_SANDBOX_URL": self.provider.base_url,
                "AFTERSEND_POLICY_FILE": str(self.run_dir / "policy.toml"),
                "AFTERSEND_LIMITS": json.dumps(self._limits),
                "DATABASE_URL": self.database,
                "CELERY_BROKER_URL": self._bell.url(),
                "CACHE_URL": self._bell.cache_url(),
                "DJANGO_SETTINGS_MODULE": "config.settings",
                "PYTHONUNBUFFERED": "1",
            }
        )

    def _write_files(self) -> None:
        if self._accounts_file:
            text = self._accounts_file.replace("{sandbox}", self.provider.base_url)
            (self.run_dir / "accounts.toml").write_text(text)
        text = (ROOT / "policy.toml").read_text()
        for usual, here in self._policy_changes.items():
            assert usual in text, f"policy.toml no longer says {usual!r}"
            text = text.replace(usual, here)
        (self.run_dir / "policy.toml").write_text(text)

    def _end(self) -> None:
        for program in self.programs.values():
            program.ask_to_stop()
        for program in self.programs.values():
            program.end()
        self.provider.stop()
        self._guarded.end()


def ready_words(name: str) -> str:
    """What a program writes once it is up."""
    words = {"web": "Application startup complete", "beat": "beat: Starting"}
    return words.get(name, "ready.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
