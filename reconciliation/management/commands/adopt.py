"""Opening balances of an account: what it had refunded before this installation began."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reconciliation.opening_balances import ListUnreadable, count_from
from refunds.domain.errors import Refusal
from refunds.management.people import person_named
from refunds.providers import registry
from refunds.text import parse_instant


class Command(BaseCommand):
    help = (
        "Read the account's own list of refunds and count each on its payment, without a case."
        " Exit 0: all counted; 2: the list was not read to its end."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account")
        parser.add_argument("--since", required=True, help="an instant with its zone")
        parser.add_argument("--by", required=True, help="your user name")

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_named(options["by"], roles={"ops_lead", "admin"})
        name = options["account"]
        account = registry.accounts().get(name)
        if account is None:
            raise CommandError(f"{name} is not an account. Known: {', '.join(registry.accounts())}")
        if account.contract.account_list == "none":
            raise CommandError(f"{name} lists no refunds; feed them with its orders instead.")
        if not account.credential:
            raise CommandError(f"No credential is set for {name}.")
        try:
            since = parse_instant(options["since"])
        except Refusal as refusal:
            raise CommandError(f"--since: {refusal.detail} {refusal.what_to_do}") from None
        try:
            found = count_from(account, since, by.username)
        except ListUnreadable as error:
            raise CommandError(
                f"The list was not read to its end: {error}. What was counted stays; run it again.",
                returncode=2,
            ) from None
        self.stdout.write(
            f"{found.counted} counted, {found.known} known already, {found.ours} our own;"
            f" {found.unfed} of payments that are not fed here"
        )
