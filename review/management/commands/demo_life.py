"""Keep a demo alive: scenario orders are decided, and small things happen. Runs until stopped."""

from __future__ import annotations

import signal
import threading
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.utils import timezone

from refunds.domain.errors import Refusal
from review.demo import people, shop
from review.demo.approver import Approvers, change_the_stale_order
from review.demo.life import Life

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.5
_AWAY_SECONDS = 2.0


class Command(BaseCommand):
    help = "Decide scenario orders and let small things happen, in a demo with its sandbox only."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.ENV.env != "demo" or not settings.ENV.sandbox_token:
            raise CommandError(
                "demo_life runs beside `make demo` only, with the sandbox and its token;"
                " nothing was done."
            )
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        control = shop.Control(shop.sandbox_address(), settings.ENV.sandbox_token)
        approvers = Approvers(people.ensure_approvers())
        everybody = people.everybody()
        life = Life(control, everybody, people.ensure_agents(everybody))
        while not stop.is_set():
            stop.wait(_AWAY_SECONDS if not _looked(approvers, life) else _LOOK_SECONDS)


def _looked(approvers: Approvers, life: Life) -> bool:
    """One look at everything; False while the database or the sandbox is away."""
    try:
        close_old_connections()
        approvers.decide(timezone.now())
        change_the_stale_order()
        life.beat(timezone.now())
    except Refusal as refusal:
        log.info("demo_life_refused", code=refusal.code, detail=refusal.detail)
    except (OperationalError, InterfaceError, shop.SandboxAway) as error:
        log.warning("demo_life_waits", error=str(error)[:200])
        connection.close()
        return False
    return True
