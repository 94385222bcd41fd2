"""Stop sending: one account, or everything."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from refunds.ledger.sending import pause, stop_everything
from refunds.management.people import person_named
from refunds.providers import registry


class Command(BaseCommand):
    help = "Stop sending to one account, or with --all to every one. Checks and approvals go on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account", nargs="?")
        parser.add_argument("--all", action="store_true", help="halt every send")
        parser.add_argument("--by", required=True, help="your user name")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_named(options["by"], roles={"lead", "ops", "ops_lead", "finance", "admin"})
        if options["all"] == bool(options["account"]):
            raise CommandError("Name one account, or say --all.")
        if options["all"]:
            stop_everything(by=f"person:{by.username}", reason=options["reason"])
            self.stdout.write("Sending is stopped. Another person starts it again.")
            return
        person_named(options["by"], roles={"ops_lead"})
        name = options["account"]
        if name not in registry.accounts():
            raise CommandError(f"{name} is not an account. Known: {', '.join(registry.accounts())}")
        if pause(name, kind="person", reason=options["reason"], by=f"person:{by.username}"):
            self.stdout.write(f"{name} is paused.")
        else:
            self.stdout.write(f"{name} was paused already.")
