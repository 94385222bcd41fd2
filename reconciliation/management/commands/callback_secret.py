"""Print the secret that a receiver checks our messages with, or make a new one."""

from __future__ import annotations

import base64
import secrets
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reconciliation import outbox_receivers as receivers
from reconciliation.outbox_signing import PREFIX

_SECRET_BYTES = 32


class Command(BaseCommand):
    help = "Print a receiver's signing secrets, or with --new one for AFTERSEND_CALLBACK_SECRETS."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("receiver", nargs="?", help="a name of AFTERSEND_CALLBACKS")
        parser.add_argument("--new", action="store_true", help="make a secret of the installation")

    def handle(self, *args: Any, **options: Any) -> None:
        receiver = options["receiver"]
        if options["new"] == bool(receiver):
            raise CommandError("Name one receiver, or say --new.")
        if options["new"]:
            made = base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
            self.stdout.write(f"{PREFIX}{made}")
            return
        if not receivers.is_configured(receiver):
            known = ", ".join(sorted(settings.CALLBACKS)) or "none yet"
            raise CommandError(f"{receiver} is no receiver of AFTERSEND_CALLBACKS. Known: {known}.")
        try:
            derived = receivers.secrets_of(receiver)
        except receivers.Unreachable as error:
            raise CommandError(f"{error}. Make one with --new and set it.") from error
        for secret in derived:
            self.stdout.write(secret)
