"""Print the state machine as the README shows it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from refunds.domain.machine_table import table


class Command(BaseCommand):
    help = "Print the state machine: every event, what it leaves, where it leads, who causes it."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(table())
