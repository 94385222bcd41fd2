"""One schedule: a few approved refunds, the real engine on a real database, and a seed's weather.

Everything happens in one thread. A worker that dies leaves what it had committed; what was not
committed is rolled back. When the acts are over all faults stop, and everything must come to rest.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import httpx
from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import Min
from django.utils import timezone

from reconciliation import probes, reconciler
from reconciliation.models import Case
from refunds import approvals, dispatch, doorbell, ledger, withdrawal
from refunds.domain import states
from refunds.domain.errors import CommitUnknown, Refusal
from refunds.models import Operation, ProviderAccount
from refunds.proposal import Caller
from refunds.providers import http
from tests import build
from tests.cast import Cast
from tests.simulation.clock import Clock
from tests.simulation.cuts import Cuts
from tests.simulation.provider import SandboxHere
from tests.simulation.weather import weather
from tests.simulation.wire import Killed, Wire
from tests.simulation.witnesses import Witness

ACCOUNTS = (
    "plain-main",
    "plain-forever",
    "plain-weak",
    "plain-nokeys",
    "plain-blind",
    "plain-lagged",
    "plain-unbounded",
    "plain-async",
    "plain-stored500",
    "stripe-main",
)
# Where the table of promises (docs/operating.md) leaves nothing to people.
ENDS_BY_ITSELF = frozenset({"plain-main", "plain-forever", "plain-weak", "plain-nokeys"})
ACTS = 24
_DEPTH_MAX = 2
_STEPS_TO_REST_MAX = 400
_MOVES = frozenset({states.SUBMITTING, states.PENDING, states.UNKNOWN})


class NoRest(AssertionError):
    """Faults had stopped, and something was still on its way."""


@dataclass
class World:
    """`run` plays the schedule; what was seen on the way stands in `witness` and the counters."""

    provider: SandboxHere
    cast: Cast
    seed: int
    acts: Counter[str] = field(default_factory=Counter)
    bells: list[tuple[str, str]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    # The payments that a stranger took from: once each, so that all still fits.
    strangers: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.weather = weather(self.seed)
        self.dice = self.weather.dice
        self.witness = Witness()
        self.clock = Clock()
        self.wire = Wire(
            self.provider,
            self.weather,
            self._others,
            self.passes,
            self.witness.about_to_write,
            self.clock,
        )
        self.cuts = Cuts(lambda: "good" if self.wire.calm else self.weather.commit())
        self._depth = 0

    def run(self, judge: Callable[[World], list[str]]) -> list[str]:
        """What `judge` finds wrong in the end, by the clocks of the end; or that there was none."""
        with self._installed():
            self._begin()
            for _ in range(ACTS):
                self._act()
            try:
                self._faults_stop()
            except NoRest as moving:
                return [str(moving), *judge(self)]
            return judge(self)

    @contextlib.contextmanager
    def _installed(self) -> Iterator[None]:
        usual = http._client
        client = httpx.Client(transport=self.wire, trust_env=False)
        with self.clock, self.cuts:
            http._client = lambda: client  # type: ignore[assignment]
            doorbell.connect(lambda task, named, after: self.bells.append((task, named)))
            try:
                yield
            finally:
                http._client = usual
                doorbell.connect(lambda task, named, after: None)
                self.witness.close()

    # The stage

    def _begin(self) -> None:
        first, second = self.dice.choice(ACCOUNTS), self.dice.choice(ACCOUNTS)
        for ref, account in (("S-1", first), ("S-2", second)):
            self.provider.payment(f"pi_{ref}", account=account)
            build.order(ref, account=account)
        self._approved("S-1", 4000)
        self._approved("S-2", 5100)
        if self.dice.random() < 0.5:
            self._approved("S-1", 2500)
        self.told.append(f"accounts {first}, {second}")

    def _approved(self, ref: str, amount_minor: int) -> None:
        build.authorized(
            self.cast.foxtrot, self.cast.cleo, order_ref=ref, amount_minor=amount_minor
        )

    # Time

    def passes(self, seconds: float) -> None:
        """Every clock goes on: the database's, the provider's, and this process's own."""
        self.clock.move(seconds)
        self.wire.land()

    # Acts

    def _others(self) -> None:
        """Somebody else's turn while a call travels."""
        if self._depth < _DEPTH_MAX:
            self._act()

    def _act(self) -> None:
        name = self.weather.act()
        self.acts[name] += 1
        self._depth += 1
        try:
            self._survives(name, getattr(self, f"_act_{name}"))
            while self.bells and self._depth == 1 and self.dice.random() < self.weather.eager:
                self._survives("bell", lambda: self._hear(*self.bells.pop(0)))
        finally:
            self._depth -= 1

    def _survives(self, name: str, act: Callable[[], object]) -> None:
        try:
            with self.cuts.striking():
                said = act()
        except Killed:
            said = "killed"
        except OperationalError as gone:
            connection.close()
            said = str(gone)
        except (Refusal, CommitUnknown) as refused:
            said = type(refused).__name__
        self.told.append(f"{'  ' * self._depth}{self.clock.seconds:.1f} {name}: {said}")

    def _one(self, *wanted: str) -> UUID | None:
        """One of the refunds in these states."""
        found = Operation.objects.filter(state__in=wanted) if wanted else Operation.objects.all()
        ids = sorted(found.values_list("pk", flat=True))
        return self.dice.choice(ids) if ids else None

    def _act_send(self) -> object:
        """Now and then a message that came a second time, or too late."""
        operation_id = self._one(states.AUTHORIZED) if self.dice.random() < 0.8 else self._one()
        return operation_id and dispatch.send(str(operation_id))

    def _act_bell(self) -> object:
        """A message is lost, heard twice, or heard in another order."""
        if not self.bells:
            return None
        task, named = self.bells.pop(self.dice.randrange(len(self.bells)))
        fate = self.dice.random()
        if fate > 0.8:
            self.bells.append((task, named))
        return "lost" if fate < 0.2 else self._hear(task, named)

    def _hear(self, task: str, named: str) -> object:
        match task.rpartition(".")[2]:
            case "send":
                return dispatch.send(named)
            case "resend":
                return dispatch.resend(named)
            case "look_up":
                return reconciler.look_up(UUID(named))
        return None

    def _act_look(self) -> object:
        operation_id = self._one(*_MOVES) or self._one()
        return operation_id and reconciler.look_up(operation_id)

    def _act_end_leases(self) -> object:
        return reconciler.end_leases(timezone.now(), batch_max=20)

    def _act_expire(self) -> object:
        return ledger.expire(timezone.now(), batch_max=20)

    def _act_probe(self) -> object:
        return probes.probe_accounts(timezone.now())

    def _act_time(self) -> object:
        seconds = self.weather.passing_seconds()
        self.passes(seconds)
        return seconds

    def _act_withdraw(self) -> object:
        operation_id = self._one()
        if operation_id is None:
            return None
        return withdrawal.withdraw(operation_id, by=Caller(person=self.cast.ada)).state

    def _act_revoke(self) -> object:
        operation = Operation.objects.filter(state=states.AUTHORIZED).first()
        if operation is None:
            return None
        return approvals.revoke(operation.pk, self.cast.cleo, version=operation.version).state

    def _act_feed(self) -> object:
        """The shop says something new of an order: approvals on it go stale."""
        ref = self.dice.choice(("S-1", "S-2"))
        account = Operation.objects.filter(order__ref=ref).values_list("provider_account").first()
        assert account is not None
        state = self.dice.choice(("received", "expected", "none"))
        return build.order(ref, account=account[0], return_state=state).version

    def _act_stranger(self) -> object:
        """Somebody at the provider's dashboard refunds an equal amount."""
        operation_id = self._one()
        assert operation_id is not None
        operation = Operation.objects.select_related("payment").get(pk=operation_id)
        if operation.payment_id in self.strangers:
            return "was here"
        self.strangers.add(operation.payment_id)
        told = {
            "account": operation.provider_account,
            "payment": operation.payment.ref,
            "amount_minor": operation.amount_minor,
        }
        try:
            self.provider.control("POST", "/external_refund", told)
        except AssertionError:
            return "no room"
        return operation.amount_minor

    # Rest

    def _faults_stop(self) -> None:
        """Calm weather until nothing moves any more.

        Raises NoRest when something still does after so many steps of its own schedule.
        """
        self.wire.calm = True
        self.told.append("faults stop")
        for self.idle in range(_STEPS_TO_REST_MAX):
            if self._rests():
                return
            self.passes(self._until_next())
            self._sweep()
        left = Operation.objects.values_list("provider_account", "state", "due_at")
        raise NoRest(f"after {_STEPS_TO_REST_MAX} steps: {[*left]}")

    def _rests(self) -> bool:
        """Ended, waiting for people, or a case of people; and nothing is in the air."""
        if self.wire.flying:
            return False
        open_cases = set(Case.objects.filter(closed_at=None).values_list("operation_id", flat=True))
        moving = Operation.objects.filter(state__in=[*_MOVES, states.AUTHORIZED])
        return all(
            (each.pk in open_cases and each.provider_account not in ENDS_BY_ITSELF)
            or (each.state == states.AUTHORIZED and each.halted)
            for each in moving
        )

    def _until_next(self) -> float:
        """Seconds until something falls due; a little, where it is due already."""
        open_ = Operation.objects.filter(state__in=[*_MOVES, states.AUTHORIZED])
        instants = [
            open_.aggregate(at=Min("due_at"))["at"],
            ProviderAccount.objects.filter(pause_kind="outage").aggregate(at=Min("probe_at"))["at"],
        ]
        ahead = [(at - timezone.now()).total_seconds() for at in instants if at is not None]
        ahead += [each.at - self.clock.seconds for each in self.wire.flying]
        # What is due and did not move waits for something else, as a lease does.
        return max(min(ahead, default=60), 0.05 * (1 + self.idle))

    def _sweep(self) -> None:
        now = timezone.now() + timedelta(milliseconds=1)
        reconciler.end_leases(now, batch_max=50)
        probes.probe_accounts(now)
        ledger.expire(now, batch_max=50)
        for operation_id in dispatch.ready(50):
            self._survives("sweep", lambda one=operation_id: dispatch.send(one))  # type: ignore[misc]
        for operation_id in reconciler.due(now, batch_max=settings.LIMITS.sweep_batch_max):
            self._survives("sweep", lambda one=operation_id: reconciler.look_up(UUID(str(one))))  # type: ignore[misc]
        bells, self.bells = self.bells, []
        for task, named in bells:
            self._survives("bell", lambda t=task, n=named: self._hear(t, n))  # type: ignore[misc]
