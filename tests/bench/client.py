"""What a client does: propose refunds over the product's own verbs, and have them approved.

Import after `django.setup()`. Each submitting thread has an agent and a lead of its own: the
proposals of one agent, and the approvals of one lead, come one after the other by design.
"""

from __future__ import annotations

import itertools
import threading

from django.core.management import call_command
from django.db import connection
from django.utils import timezone

import config.celery  # noqa: F401  # connects the bell
from reconciliation.models import VerifierRound
from reconciliation.verifiers.rounds import VERIFIERS
from refunds import approvals, intake
from refunds.models import Agent, Person
from review.demo import people
from tests import build
from tests.bench import dialect, stock

AGENTS = 8
# What `submit` counts from here on is not measured: it has orders of its own.
WARM_UP_FROM = 10_000_000
WARM_UPS_MAX = 1000
AMOUNT_MINOR = 100


def migrate() -> None:
    """The schema in an empty database, and everybody who asks, approves and looks."""
    call_command("migrate", verbosity=0, interactive=False)
    everybody = people.ensure_people("a-password-nobody-uses")
    for no in range(AGENTS):
        Agent.objects.create(
            name=f"bench-{no}", owner=everybody["ada"], accounts=[dialect.NAME, "plain-main"]
        )
        people._ensure(f"bench-lead-{no}", ("lead",), "!")


def fill(*, orders: int, finished: int) -> None:
    """`orders` orders with one payment each, and `finished` operations with their history on
    orders of their own."""
    with connection.cursor() as cursor:
        stock.orders(cursor, "o", orders)
        stock.orders(cursor, "w", WARM_UPS_MAX)
        if finished:
            stock.finished(cursor, finished)
    for verifier in VERIFIERS:
        # It reads everything once a night, and not in the minute that is measured.
        VerifierRound.objects.update_or_create(
            name=verifier.name, defaults={"last_ended_at": timezone.now()}
        )


class Submitter:
    """Proposes one refund a call; callable from several threads."""

    def __init__(self, *, by_lead: bool, orders: int) -> None:
        self._by_lead = by_lead
        self._orders = orders
        self._agents = list(Agent.objects.filter(name__startswith="bench-").order_by("name"))
        self._leads = list(Person.objects.filter(username__startswith="bench-lead").order_by("pk"))
        self._next = itertools.count()
        self._own = threading.local()

    def submit(self, op: int) -> None:
        """An approved refund of 100 on an order of its own; committed when this returns.

        Raises AssertionError where it is not authorised then, and Refusal as `intake` does.
        """
        if not hasattr(self._own, "no"):
            self._own.no = next(self._next) % AGENTS
        warm = op >= WARM_UP_FROM
        order = (op % WARM_UPS_MAX if warm else op % self._orders) + 1
        request = build.request(
            f"{'w' if warm else 'o'}-{order}",
            AMOUNT_MINOR,
            session_id="bench",
            tool_call_id=f"op-{op}",
            request_ref=f"op-{op}",
        )
        caller = intake.Caller(agent=self._agents[self._own.no])
        operation = intake.propose(request, caller).operation
        if self._by_lead:
            lead = self._leads[self._own.no]
            operation = approvals.approve(operation.pk, lead, build.shown(operation)).operation
        assert operation.state == "authorized", f"op {op} is {operation.state}"
