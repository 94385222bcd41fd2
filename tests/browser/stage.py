"""A stage with one refund in every state, made by the product's own verbs and a real sandbox.

The browser tests and the contact sheet look at it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import cycle

from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from reconciliation import alarms, heartbeat, reconciler, verifiers
from reconciliation.models import Alarm
from reconciliation.monitors import run
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.table import SIGNALS
from refunds import accepting, approvals, dispatch, withdrawal
from refunds.domain import states
from refunds.ledger import claim, sending
from refunds.models import Operation
from refunds.proposal import Caller
from refunds.providers import registry
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

LINES = [
    {"name": "Trail shoe", "quantity": 1, "amount_minor": 8400},
    {"name": "Socks", "quantity": 3, "amount_minor": 4500},
]
FACTS = [{"label": "Warehouse", "value": "left shoe received, unworn", "source": "wms"}]
LINKS = {"order": "https://localhost/orders/4821", "ticket": "https://localhost/t/551"}


class Stage:
    """Builds refunds one by one; `by_name` keeps them."""

    def __init__(self, cast: Cast, provider: SandboxProcess) -> None:
        self.cast, self.provider = cast, provider
        self.by_name: dict[str, Operation] = {}
        self._proposers = cycle(["foxtrot", "omar", "ines", "olga", "rosa", "ben"])

    def _order(self, ref: str, captured_minor: int, account: str, currency: str) -> None:
        build.order(
            ref,
            account=account,
            captured_minor=captured_minor,
            currency=currency,
            return_state="received",
            fulfilment_state="delivered",
            lines=LINES,
            facts=FACTS,
            links=LINKS,
        )
        self.provider.payment(f"pi_{ref}", captured_minor, account=account, currency=currency)

    def proposed(
        self,
        name: str,
        ref: str,
        amount_minor: int,
        *,
        captured_minor: int = 12900,
        account: str = "plain-main",
        currency: str = "USD",
        by: str = "",
        **more: object,
    ) -> Operation:
        self._order(ref, captured_minor, account, currency)
        # The sums of one proposer raise the tier, so several people and an agent ask in turn.
        by = by or next(self._proposers)
        return self.again(name, ref, amount_minor, currency=currency, by=by, **more)

    def again(
        self, name: str, ref: str, amount_minor: int, *, by: str = "foxtrot", **more: object
    ) -> Operation:
        """One more proposal on an order that is there."""
        words: dict[str, object] = {"run_ref": f"run-{ref}", "step_ref": "3"}
        operation = build.proposed(getattr(self.cast, by), ref, amount_minor, **(words | more))
        self.by_name[name] = operation
        return operation

    def approved(self, name: str, ref: str, amount_minor: int, **more: object) -> Operation:
        operation = self.proposed(name, ref, amount_minor, **more)  # type: ignore[arg-type]
        for person in (self.cast.ada, self.cast.cleo, self.cast.fay):
            approvals.approve(operation.pk, person, build.shown(operation, tick=True))
            operation.refresh_from_db()
            if operation.state == states.AUTHORIZED:
                return operation
        raise AssertionError(f"{name} needs more people")

    def sent(self, name: str, ref: str, amount_minor: int, **more: object) -> Operation:
        operation = self.approved(name, ref, amount_minor, **more)
        dispatch.send(str(operation.pk))
        return operation

    # The refunds that wait

    def waiting(self) -> None:
        self.proposed(
            "open",
            "A-10511",
            8400,
            by="foxtrot",
            reason_code="returned_item",
            reason_text="Left shoe is a 41, right shoe a 43. Photo attached to the ticket.",
            ticket_ref="T-20931",
            claims={"order_total_minor": 15900, "return_state": "received", "mood": "polite"},
            read_links=("https://shop.example/orders/A-10511",),
        )
        self.proposed("yen", "J-30018", 6800, captured_minor=13600, currency="JPY")
        self.proposed("dinar", "K-2207", 12500, captured_minor=38750, currency="KWD")
        self.proposed("own", "A-10498", 4200, by="echo", reason_code="cancelled_order")
        self.proposed("blind", "B-7731", 4900, account="plain-blind", reason_code="goodwill")
        self.proposed(
            "finance", "A-10490", 124000, captured_minor=124000, by="cleo", currency="EUR"
        )
        two = self.proposed("two_leads", "U-55120", 19900, captured_minor=24900)
        approvals.approve(two.pk, self.cast.ada, build.shown(two))
        with override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=900)):
            self.approved("delayed", "A-10507", 1820, reason_code="price_adjustment")

    def stale(self) -> None:
        stale = self.approved("stale", "A-10472", 6240, captured_minor=7490)
        build.external_refund("A-10472", 2000, ref="rf_by_hand")
        dispatch.send(str(stale.pk))
        back = self.approved("taken_back", "A-10473", 3100)
        approvals.revoke(back.pk, self.cast.ada, version=back.version)

    # The refunds whose outcome is a question

    def uncertain(self) -> None:
        self.provider.fault("drop_after_commit", times=1)
        self.sent("unknown", "A-10482", 4500)
        self.provider.fault("drop_before_commit", times=1)
        looked = self.sent("looked", "A-10483", 4600)
        reconciler.look_up(looked.pk)
        reconciler.look_up(looked.pk)
        self.provider.fault("lookup_503", on="list", times=1)
        reconciler.look_up(looked.pk)
        self.provider.fault("drop_after_commit", account="plain-blind", times=1)
        blind = self.sent("needs_person", "J-29904", 4100, account="plain-blind")
        reconciler.look_up(blind.pk)
        self.provider.fault("execute_twice", account="plain-nokeys", times=1)
        twice = self.sent("twice", "B-7702", 2750, account="plain-nokeys")
        reconciler.look_up(twice.pk)
        self.sent("pending", "A-10513", 6400, account="plain-async")
        hanging = self.approved("submitting", "A-10516", 3300)
        account = registry.account("plain-main")
        claim(
            hanging.pk,
            worker="dispatcher:stage:1",
            identity=account.identity(),
            contract=account.contract,
            limits=settings.LIMITS,
        )

    def ended(self) -> None:
        self.sent("succeeded", "A-10400", 5990)
        self.again("repeat", "A-10400", 5990, separate_from=self.by_name["succeeded"].pk)
        failed = self.approved("failed", "A-10401", 3100)
        dispute = {"account": "plain-main", "payment": "pi_A-10401"}
        self.provider.control("POST", "/dispute", dispute)
        dispatch.send(str(failed.pk))
        self.proposed("denied", "A-10402", 99900)
        rejected = self.proposed("rejected", "A-10403", 2500)
        rejected.refresh_from_db()
        approvals.reject(
            rejected.pk,
            self.cast.cleo,
            reason="The item never came back to us.",
            version=rejected.version,
        )
        withdrawn = self.proposed("withdrawn", "A-10404", 795, by="foxtrot")
        withdrawal.withdraw(
            withdrawn.pk, by=Caller(agent=self.cast.foxtrot), reason="Customer kept the order."
        )

    def full(self) -> Stage:
        self.waiting()
        self.stale()
        self.uncertain()
        self.ended()
        heartbeat.beat(timezone.now())
        return self

    def alarms(self) -> None:
        """What the monitors make of it; one alarm is somebody's, and one has ended. And a figure
        that one person proposed."""
        now = timezone.now()
        gone = [Reading("plain-weak", 60, "12 of 20 lookups of 15 min could not tell.")]
        alarms.observe(SIGNALS["lookups_failing"], gone, now - timedelta(hours=3))
        late = [
            Reading("plain-main", 5000, "3 unknown for longer than 15 min; the oldest for 2 h.")
        ]
        run.read_all({}, now)
        alarms.observe(SIGNALS["unknown_past_target"], late, now)
        verifiers.verify_everything(now)
        accepting.propose(
            "stripe-main",
            "flight_max",
            3600,
            "resend",
            reason="Measured over 40,000 sends in May: none later than 70 s.",
            days=90,
            by=self.cast.olga,
        )
        taken = Alarm.objects.get(name="duplicates")
        alarms.acknowledge(
            taken.pk, by=self.cast.omar, note="Calling their support about rf_2.", now=now
        )

    def failing(self) -> None:
        """Sending is stopped, and one account is paused."""
        sending.pause(
            "plain-main",
            kind="credential",
            reason="Turned away before execution: unauthorized.",
            by="dispatcher",
        )
        sending.stop_everything(
            by="omar", reason="Answers from two providers do not fit our requests; looking at it."
        )
