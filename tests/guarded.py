"""A folder and servers of a program's own, which a guardian ends when the program itself was killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from config.embedded import Postgres, Valkey
from config.embedded.places import forget_files
from tests.provider_process import ROOT

_SECONDS_MAX = 15


class Guarded:
    """`token` marks the processes that belong to it (MARK_VARIABLE in their environment)."""

    def __init__(
        self, token: str, run_dir: Path, database: Postgres, bell: Valkey, *standbys: Postgres
    ) -> None:
        self._run_dir, self._databases, self._bell = run_dir, (*standbys, database), bell
        servers = [str(bell.pid_file), str(bell.socket)]
        for each in self._databases:
            servers += [str(each.cluster / "postmaster.pid"), str(each.cluster)]
        command = [sys.executable, "-m", "config.supervision.guardian", token, str(run_dir)]
        self._guardian = subprocess.Popen(
            [*command, *servers], cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True
        )

    def end(self) -> None:
        """Stop the servers, let the guardian go, and leave no file."""
        self._bell.stop()
        for each in self._databases:
            each.stop()
        assert self._guardian.stdin is not None
        self._guardian.stdin.close()
        self._guardian.wait(_SECONDS_MAX)
        forget_files(ROOT, self._run_dir)
        shutil.rmtree(self._run_dir, ignore_errors=True)
