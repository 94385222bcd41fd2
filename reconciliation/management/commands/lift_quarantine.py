"""Let sending begin again after the database may have lost its tail. Two people."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reconciliation import quarantine
from refunds.domain.errors import Refusal
from refunds.management.people import person_named


class Command(BaseCommand):
    help = "Lift the quarantine, by an ops lead and an admin, once everything lost is known again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", required=True, help="an ops lead's user name")
        parser.add_argument("--with", required=True, dest="with_", help="an admin's user name")
        parser.add_argument(
            "--by-hand",
            action="append",
            default=[],
            metavar="ACCOUNT",
            help="an account without a list, compared with the provider by hand; may be repeated",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_named(options["by"], roles={"ops_lead"})
        other = person_named(options["with_"], roles={"admin"})
        try:
            quarantine.ask(by=by, by_hand=frozenset(options["by_hand"]))
            quarantine.lift(by=other)
        except Refusal as refusal:
            raise CommandError(f"{refusal.detail} {refusal.what_to_do}") from refusal
        self.stdout.write("The quarantine is lifted. Sending goes on.")
