"""Send again: one account, or everything."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from refunds.domain.errors import Refusal
from refunds.ledger.sending import resume, start_again
from refunds.management.people import person_named


class Command(BaseCommand):
    help = "End an account's pause, or with --all the stop of everything (by another person)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account", nargs="?")
        parser.add_argument("--all", action="store_true", help="end the stop of everything")
        parser.add_argument("--by", required=True, help="your user name")

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_named(options["by"], roles={"ops_lead", "admin"})
        if options["all"] == bool(options["account"]):
            raise CommandError("Name one account, or say --all.")
        try:
            if options["all"]:
                start_again(by=f"person:{by.username}")
                self.stdout.write("Sending goes on.")
            else:
                resume(options["account"], by=f"person:{by.username}")
                self.stdout.write(f"{options['account']} sends again.")
        except Refusal as refusal:
            raise CommandError(f"{refusal.detail} {refusal.what_to_do}") from refusal
