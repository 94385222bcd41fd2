"""Compare a settlement report with the ledger."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.utils import timezone
from tqdm import tqdm

from reconciliation import settlement
from reconciliation.settlement_csv import columns_of, lines
from refunds.domain.errors import Refusal
from refunds.management.csv_rows import Unreadable, Wrong, rows
from refunds.providers import registry
from refunds.text import parse_instant

_TURN = "hashtext('aftersend import_settlement')"


class Command(BaseCommand):
    help = (
        "Compare a settlement report (our CSV format, or Stripe's payout reconciliation export) with"
        " the ledger; what is extra, different or missing becomes a case. Exit 0: all rows taken;"
        " 1: some refused; 2: not readable."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--account", help="the provider account of a Stripe export")
        parser.add_argument(
            "--complete-until",
            help="the reports so far have every refund made until then (an instant with its zone):"
            " ask about those that are missing",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path, account = options["file"], options["account"]
        if account is not None and account not in registry.accounts():
            known = ", ".join(sorted(registry.accounts()))
            raise CommandError(f"{account} is not an account. Known: {known}.", returncode=2)
        until = _instant(options["complete_until"])
        with _alone():
            counted = self._compared(path, account, until)
        self.stdout.write(
            f"{counted['match']} match, {counted['different']} differ, {counted['extra']} extra,"
            f" {counted['missing']} missing, {counted['']} known already; {counted['refused']} refused"
        )
        if counted["refused"]:
            sys.exit(1)

    def _compared(self, path: Path, account: str | None, until: datetime | None) -> Counter[str]:
        """How many rows came to which verdict; "" is known already."""
        counted: Counter[str] = Counter()
        began: dict[str, datetime] = {}
        try:
            total = sum(1 for _ in rows(path, columns_of(path)))
            with tqdm(total=total, unit=" rows", file=sys.stderr) as bar:
                for row, said in lines(path, account):
                    bar.update()
                    if said is None:
                        continue
                    try:
                        if isinstance(said, Wrong):
                            raise said
                        counted[settlement.take(said)] += 1
                    except (Wrong, Refusal) as error:
                        counted["refused"] += 1
                        tqdm.write(f"line {row.line}: {_words(error)}", file=sys.stderr)
                    else:
                        if said.created_at is not None:
                            first = began.get(said.provider_account, said.created_at)
                            began[said.provider_account] = min(first, said.created_at)
        except Unreadable as error:
            raise CommandError(str(error), returncode=2) from None
        if until is not None and counted["refused"]:
            tqdm.write("rows were refused: nothing is asked about as missing", file=sys.stderr)
        elif until is not None:
            for name, since in began.items():
                counted["missing"] += len(settlement.missing(name, since, until))
        return counted


@contextmanager
def _alone() -> Iterator[None]:
    """Two imports at once would ask about the same row twice, and one of them fail on it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_TURN})")
        if not cursor.fetchone()[0]:
            raise CommandError(
                "Another settlement report is being imported; start this one when it has ended.",
                returncode=2,
            )
        try:
            yield
        finally:
            cursor.execute(f"SELECT pg_advisory_unlock({_TURN})")


def _instant(text: str | None) -> datetime | None:
    try:
        instant = parse_instant(text) if text else None
    except Refusal as refusal:
        raise CommandError(
            f"--complete-until: {refusal.detail} {refusal.what_to_do}", returncode=2
        ) from None
    if instant is not None and instant > timezone.now():
        # Every refund to come would be one that the reports should have.
        raise CommandError(
            f"--complete-until: {text} lies ahead; give a time that is over", returncode=2
        )
    return instant


def _words(error: Wrong | Refusal) -> str:
    if isinstance(error, Refusal):
        return f"{error.field}: {error.detail} {error.what_to_do}"
    return str(error)
