"""Take over refunds that another system left without a known end; nothing is ever sent for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from tqdm import tqdm

from reconciliation.adoption import COLUMNS, Taken, take
from refunds.domain.errors import Refusal
from refunds.management.csv_rows import Columns, Row, Unreadable, Wrong, rows
from refunds.management.people import person_named
from refunds.models import Person

_COLUMN_OF_FIELD = {"request_ref": "source_ref"}


class Command(BaseCommand):
    help = (
        "Take over refunds that another system left stuck: one row each, which becomes an unknown"
        " that is looked up by its reference, or by a person. Without --for-real it only says what"
        " it would do. Exit 0: all rows fit; 1: some refused; 2: not readable."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--by", required=True, help="your user name; you cannot rule on them")
        parser.add_argument("--for-real", action="store_true", help="store them")

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_named(options["by"], roles={"ops_lead", "admin"})
        counted = {Taken.NEW: 0, Taken.KNOWN: 0}
        refused = 0
        try:
            total = sum(1 for _ in rows(options["file"], Columns(COLUMNS)))
            with tqdm(total=total, unit=" rows", file=sys.stderr) as bar:
                for row in rows(options["file"], Columns(COLUMNS)):
                    try:
                        counted[_one(row, by, for_real=options["for_real"])] += 1
                    except Wrong as error:
                        refused += 1
                        tqdm.write(f"line {row.line}: {error}", file=sys.stderr)
                    bar.update()
        except Unreadable as error:
            raise CommandError(str(error), returncode=2) from None
        new, known = counted[Taken.NEW], counted[Taken.KNOWN]
        if options["for_real"]:
            said = f"{new} taken over, {known} known already; {refused} refused"
        else:
            said = f"{new} would be taken over, {known} are known already; {refused} refused."
            said += " Nothing was stored: say --for-real to do it"
        self.stdout.write(said)
        if refused:
            sys.exit(1)


def _one(row: Row, by: Person, *, for_real: bool) -> Taken:
    """One row in one transaction, undone in a dry run; raises Wrong."""
    try:
        with transaction.atomic():
            taken = take(row, by)
            if not for_real:
                transaction.set_rollback(True)
    except Refusal as refusal:
        field = refusal.field or "source_ref"
        raise Wrong(
            _COLUMN_OF_FIELD.get(field, field), f"{refusal.detail} {refusal.what_to_do}"
        ) from None
    return taken
