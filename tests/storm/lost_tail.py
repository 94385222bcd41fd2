"""The database loses its newest rows: an old backup comes back, or a standby that lacked them.

People do then what docs/operating.md says: they bring the provider's own report where no list can
be read, and lift the quarantine, two of them, once nothing is missing.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.audit_book import Remembered, remember
from tests.storm.house import House
from tests.storm.progress import Progress
from tests.storm.reader import Reader
from tests.walkthrough.installation import DATABASE
from tests.walkthrough.programs import NotReady

# Their lists cannot be read.
BY_HAND = ("plain-blind", "plain-hooks", "plain-stored500")
TAIL_CLAIMS, TAIL_SECONDS_MAX = 5, 120
NOTICED_SECONDS_MAX, LIFTED_SECONDS_MAX = 300, 420
LOOK_SECONDS, AGAIN_SECONDS = 0.5, 8
CLAIMS = "SELECT count(*) AS n FROM attempt"
SENDS = "SELECT operation_id::text, no FROM attempt"
PUT_OUT = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
COLUMNS = (
    *("provider_account", "provider_refund_ref", "payment_ref", "marker", "amount_minor"),
    *("currency", "provider_status", "created_at", "settled_at", "report_ref"),
)
OPEN = "SELECT count(*) AS n FROM quarantine WHERE lifted_at IS NULL"


class LostTail:
    """`known` is what was known in the databases that were lost; the auditor needs it."""

    def __init__(self, here: House, progress: Progress) -> None:
        self.here, self.progress = here, progress
        self.reader = Reader(here.database)
        self.known: list[Remembered] = []
        self._reports = 0

    def take_backup(self) -> None:
        self.here.backup.take()

    def restore_backup(self) -> None:
        """What was written since the backup is lost."""
        self.here.backup.restore()
        self.known.append(remember(self.here.lost_database))
        lost = _sends(self.here.lost_database) - _sends(self.here.database)
        self.here.backup.forget()
        if lost:  # whoever lost no send has nothing to be careful of
            self._recover()

    def promote_standby(self) -> None:
        """One that was cut off some sends ago takes over from a primary that dies."""
        standby = self.here.standby
        standby.follow()
        standby.cut_off()
        self._let_claims_pass()
        self.here.carrier.close()
        try:
            with psycopg.connect(self.here.database, autocommit=True) as primary:
                primary.execute(PUT_OUT)
            self.known.append(remember(self.here.database))
            self.here.server.stop_at_once()
            standby.take_over()
            self.here.server.ensure(DATABASE)
        finally:
            self.here.carrier.reopen()
        self._recover()

    def _let_claims_pass(self) -> None:
        before = self.reader.count(CLAIMS)
        give_up_at = time.monotonic() + TAIL_SECONDS_MAX
        while self.reader.count(CLAIMS) < before + TAIL_CLAIMS and time.monotonic() < give_up_at:
            self.progress.over.wait(LOOK_SECONDS)

    def _recover(self) -> None:
        """Until sending goes on; who lifts it tries again while something is missing."""
        if not self._until(self._begun, NOTICED_SECONDS_MAX, LOOK_SECONDS):
            self.progress.troubles.append("nobody noticed that the database lost its newest rows")
            return
        if not self._until(self._lifted, LIFTED_SECONDS_MAX, AGAIN_SECONDS):
            self.progress.troubles.append("the quarantine could not be lifted")

    def _until(self, happened: Callable[[], bool], seconds_max: float, look_seconds: float) -> bool:
        give_up_at = time.monotonic() + seconds_max
        while not happened():
            if time.monotonic() > give_up_at or self.progress.over.is_set():
                return False
            self.progress.over.wait(look_seconds)
        return True

    def _begun(self) -> bool:
        return self.reader.count(OPEN) > 0

    def _lifted(self) -> bool:
        """Bring the reports, compare by hand, ask and sign: an ops lead and an admin."""
        by_hand = [part for account in BY_HAND for part in ("--by-hand", account)]
        try:
            self.here.run("manage.py", "import_settlement", str(self._report()))
            self.here.run(
                "manage.py", "lift_quarantine", "--by", "ines", "--with", "adam", *by_hand
            )
        except NotReady:  # its words say what is missing; or something was just being killed
            return not self._begun()
        return True

    def _report(self) -> Path:
        """All refunds of the accounts without lists, as the provider's own export has them."""
        self._reports += 1
        file = self.here.run_dir / f"report-{self._reports}.csv"
        with file.open("w", newline="") as written:
            report = csv.writer(written)
            report.writerow(COLUMNS)
            for account in BY_HAND:
                for payment in self.here.provider.book(account)["payments"]:
                    for each in payment["refunds"]:
                        report.writerow(
                            [
                                *(account, each["id"], payment["ref"]),
                                *(each["aftersend_operation"], each["amount_minor"]),
                                *(payment["currency"], each["status"], each["created_at"]),
                                *("", f"report-{self._reports}"),
                            ]
                        )
        return file


def _sends(database: str) -> set[tuple[str, int]]:
    with psycopg.connect(database) as connection:
        return set(connection.execute(SENDS).fetchall())
