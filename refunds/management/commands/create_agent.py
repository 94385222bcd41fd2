"""Make an agent and a key for it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from refunds.credentials import LIFE_DAYS_MAX, SCOPES, mint
from refunds.domain.errors import Refusal
from refunds.models import Agent, Person
from refunds.providers import registry


class Command(BaseCommand):
    help = "Make an agent (or a further key of one) and print the key once; it is stored nowhere."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--owner", required=True, help="user name of the person it belongs to")
        parser.add_argument("--scope", action="append", choices=SCOPES, required=True)
        parser.add_argument("--account", action="append", help="default: every account")
        parser.add_argument("--days", type=int, default=LIFE_DAYS_MAX)

    def handle(self, *args: Any, **options: Any) -> None:
        owner = Person.objects.filter(username=options["owner"], is_active=True).first()
        if owner is None:
            raise CommandError(f"There is no active person {options['owner']}.")
        accounts = options["account"] or sorted(registry.accounts())
        unknown = set(accounts) - set(registry.accounts())
        if unknown:
            raise CommandError(f"No such account: {', '.join(sorted(unknown))}.")
        try:
            with transaction.atomic():
                agent, _ = Agent.objects.get_or_create(
                    name=options["name"], defaults={"owner": owner, "accounts": accounts}
                )
                if agent.owner_id != owner.pk:
                    raise CommandError(f"{agent.name} belongs to {agent.owner.username}.")
                _, key = mint(agent, scopes=options["scope"], days=options["days"])
        except Refusal as refusal:
            raise CommandError(f"{refusal.detail} {refusal.what_to_do}") from refusal
        self.stdout.write(key)
