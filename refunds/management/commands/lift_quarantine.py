"""Let sending begin again after the database may have lost its tail. Two people."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from refunds import witness
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger.sending import lift_quarantine
from refunds.management.people import person_named
from refunds.models import Operation


class Command(BaseCommand):
    help = "Lift the quarantine, by an ops lead and an admin, once nothing is uncertain any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", required=True, help="an ops lead's user name")
        parser.add_argument("--with", required=True, dest="with_", help="an admin's user name")

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_named(options["by"], roles={"ops_lead"})
        other = person_named(options["with_"], roles={"admin"})
        open_count = Operation.objects.filter(
            state__in=sorted(states.UNCERTAIN), due_at__isnull=False
        ).count()
        if open_count:
            raise CommandError(
                f"{open_count} operations are still uncertain. They are being looked up; lift the"
                " quarantine when they have ended."
            )
        try:
            lift_quarantine(by=by.username, with_=other.username)
        except Refusal as refusal:
            raise CommandError(f"{refusal.detail} {refusal.what_to_do}") from refusal
        witness.forget()
        self.stdout.write("The quarantine is lifted. Sending goes on.")
