"""The first two admins of an installation; everybody after them is added on the people page."""

from __future__ import annotations

from getpass import getpass
from typing import Any

from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, transaction

from refunds.domain.errors import Refusal
from refunds.domain.roles import ADMIN
from refunds.models import Person
from review import people
from review.models import RoleChange


class Command(BaseCommand):
    help = "Store the first two admins and print their first passwords once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="+", metavar="NAME", help="two or more different people")
        parser.add_argument("--ask", action="store_true", help="ask for passwords, print none")

    def handle(self, *args: Any, **options: Any) -> None:
        names = [name.strip() for name in options["names"]]
        if len({name.casefold() for name in names}) < max(people.ADMINS_MIN, len(names)):
            raise CommandError(
                "Name two or more different people: one admin proposes a change of roles and"
                " another one confirms it. Nothing was stored."
            )
        passwords = {
            name: _asked(name) if options["ask"] else people.new_password() for name in names
        }
        with transaction.atomic():
            _require_none_yet()
            for name in names:
                _store(name, passwords[name])
        for name in names:
            shown = "" if options["ask"] else f"  first password, shown once: {passwords[name]}"
            self.stdout.write(f"{name} is an admin.{shown}")
        self.stdout.write("Each of them sets up a second factor at the first sign-in.")


def _require_none_yet() -> None:
    """Raises CommandError when the installation has an admin; two such commands wait in line."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('aftersend found'))")
    found = Person.objects.filter(groups__name=ADMIN).order_by("username").first()
    if found is not None:
        raise CommandError(
            f"{found} is an admin here already; add people and roles on the page /people."
            " Nothing was stored."
        )


def _store(name: str, password: str) -> None:
    try:
        person = people.store(name, password)
    except Refusal as refusal:
        raise CommandError(f"{refusal.detail} {refusal.what_to_do}") from refusal
    before = people.state_of(person)
    person.groups.set([Group.objects.get_or_create(name=ADMIN)[0]])
    RoleChange.objects.create(
        person=person,
        kind=RoleChange.Kind.FOUND,
        before=before | {"active": False},
        after=people.state_of(person),
        reason="Founded from the command line",
    )


def _asked(name: str) -> str:
    password = getpass(f"Password for {name}: ")
    try:
        validate_password(password)
    except ValidationError as error:
        raise CommandError(f"{' '.join(error.messages)} Nothing was stored.") from error
    if getpass("Once more: ") != password:
        raise CommandError("The two passwords differ. Nothing was stored.")
    return password
