"""Accept a figure that a provider does not state, by two people; list and withdraw them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from refunds import accepting
from refunds.domain.errors import Refusal
from refunds.management.people import person_named
from refunds.models import AcceptedFact


class Command(BaseCommand):
    help = (
        "Accept a flight bound or a lookup lag of an account that its provider does not state. One"
        " person proposes (FACT SECONDS --for --reason), another confirms (--confirm ID); --withdraw"
        " ID ends one at once. With an account alone, everything accepted for it is shown."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account")
        parser.add_argument("fact", nargs="?", choices=["flight_max", "lookup_lag"])
        parser.add_argument("seconds", nargs="?", type=int)
        parser.add_argument(
            "--for", dest="scope", choices=["resend", "absence"], help="the kind of act it is for"
        )
        parser.add_argument("--reason", default="", help="what the figure rests on")
        parser.add_argument("--days", type=int, default=180, help="how long it holds, 180 at most")
        parser.add_argument("--confirm", type=int, metavar="ID")
        parser.add_argument("--withdraw", type=int, metavar="ID")
        parser.add_argument("--by", default="", help="your user name: an ops lead or an admin")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._act(options)
        except Refusal as refusal:
            raise CommandError(f"{refusal.detail} {refusal.what_to_do}") from refusal

    def _act(self, options: dict[str, Any]) -> None:
        account: str = options["account"]
        if options["confirm"] is not None:
            self._of(account, options["confirm"])
            row = accepting.confirm(options["confirm"], by=self._person(options))
            self.stdout.write(f"{row.pk} is in force until {row.valid_until:%Y-%m-%d %H:%M} UTC.")
            self.stdout.write(accepting.if_false(row))
        elif options["withdraw"] is not None:
            self._of(account, options["withdraw"])
            accepting.withdraw(
                options["withdraw"], by=self._person(options), because=options["reason"]
            )
            self.stdout.write(f"{options['withdraw']} is withdrawn.")
        elif options["fact"] is not None:
            self._propose(account, options)
        else:
            self._list(account)

    def _propose(self, account: str, options: dict[str, Any]) -> None:
        if options["seconds"] is None or options["scope"] is None:
            raise CommandError("Give the seconds, and --for resend or --for absence.")
        row = accepting.propose(
            account,
            options["fact"],
            options["seconds"],
            options["scope"],
            reason=options["reason"],
            days=options["days"],
            by=self._person(options),
        )
        self.stdout.write(f"Proposed as {row.pk}. It counts once another person confirms it:")
        self.stdout.write(f"  manage.py accept_fact {account} --confirm {row.pk} --by NAME")
        self.stdout.write(accepting.if_false(row))

    def _list(self, account: str) -> None:
        rows = accepting.listed(account)
        for row in rows:
            second = f", confirmed by {row.confirmed_by}" if row.confirmed_by else ", not confirmed"
            ended = f", withdrawn: {row.withdrawn_because}" if row.withdrawn_at else ""
            until = f"until {row.valid_until:%Y-%m-%d}"
            self.stdout.write(
                f"{row.pk}: {row.fact} {row.seconds} s for {row.scope}, {until}, by"
                f" {row.proposed_by}{second}{ended}: {row.reason}"
            )
        if not rows:
            self.stdout.write(f"Nothing is accepted for {account}.")

    def _of(self, account: str, fact_id: int) -> None:
        if not AcceptedFact.objects.filter(pk=fact_id, account=account).exists():
            raise CommandError(f"{account} has no accepted fact {fact_id}. List them first.")

    def _person(self, options: dict[str, Any]) -> Any:
        if not options["by"]:
            raise CommandError("Say who you are: --by NAME.")
        return person_named(options["by"], roles=set(accepting.MAY_ACCEPT))
