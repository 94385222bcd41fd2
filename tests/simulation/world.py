"""One schedule: a few approved refunds, the real engine on a real database, and a seed's weather.

Everything happens in one thread. A worker that dies leaves what it had committed; what was not
committed is rolled back. When the acts are over all faults stop, and everything must come to rest.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import Min
from django.utils import timezone

from reconciliation import reconciler
from reconciliation.models import AccountSweep, Case, Notice
from refunds import doorbell
from refunds.domain import states
from refunds.domain.errors import CommitUnknown, Refusal
from refunds.models import Operation, ProviderAccount
from refunds.providers import http
from tests import build
from tests.cast import Cast
from tests.simulation.checkers import at_once
from tests.simulation.clock import Clock
from tests.simulation.cuts import Cuts
from tests.simulation.machines import MOVES, Machines, hear
from tests.simulation.outsiders import Outsiders
from tests.simulation.people import People
from tests.simulation.postbox import Postbox
from tests.simulation.provider import SandboxHere
from tests.simulation.themes import theme
from tests.simulation.weather import weather
from tests.simulation.wire import Killed, Wire
from tests.simulation.witnesses import Witness

ACCOUNTS = (
    "plain-main",
    "plain-forever",
    "plain-weak",
    "plain-nokeys",
    "plain-blind",
    "plain-hooks",
    "plain-lagged",
    "plain-unbounded",
    "plain-async",
    "plain-stored500",
    "stripe-main",
)
# Where the table of promises (docs/operating.md) leaves nothing to people.
ENDS_BY_ITSELF = frozenset({"plain-main", "plain-forever", "plain-weak", "plain-nokeys"})
ACTS = 30
_DEPTH_MAX = 2
_STEPS_TO_REST_MAX = 400
# The weeks of an account's list are read again after it.
_A_DAY_SECONDS = 86_401


class NoRest(AssertionError):
    """Faults had stopped, and something was still on its way."""


class Contradicted(AssertionError):
    """Something was wrong at this very step, whatever may become of it."""


@dataclass
class World:
    """`run` plays the schedule; what was seen on the way stands in `witness` and the counters."""

    provider: SandboxHere
    cast: Cast
    seed: int
    acts: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    # What an act ended with although nothing had been done to it.
    raised: list[str] = field(default_factory=list)
    step: int = 0

    def __post_init__(self) -> None:
        self.theme = theme(self.seed)
        drawn = weather(self.seed)
        self.weather = self.theme.over(drawn) if self.theme else drawn
        self.dice = self.weather.dice
        self.witness = Witness()
        self.clock = Clock()
        self.wire = Wire(
            self.provider,
            self.weather,
            self._somebody,
            self.passes,
            self.witness.about_to_write,
            self.clock,
        )
        self.people = People(self.provider, self.cast, self.dice, self._may_fly)
        if self.theme:
            self.wire.sleeps_late, self.wire.naps = self.theme.sleeps_late, self.theme.naps
            self.wire.second_copy = self.theme.second_copy
            self.people.statements = self.theme.statements
        self.cuts = Cuts(lambda: "good" if self.wire.calm else self.weather.commit())
        self.machines = Machines(self.weather, self.passes)
        self.postbox = Postbox(self.provider, self.weather)
        self._acts = {
            **self.machines.acts(),
            **self.postbox.acts(),
            **self.people.acts(),
            **Outsiders(self.provider, self.dice).acts(),
        }
        self._depth = 0

    def run(self, judge: Callable[[World], list[str]]) -> list[str]:
        """What is wrong at the first step at which anything is, or what `judge` finds in the end."""
        with self._installed():
            self._begin()
            try:
                for self.step in range(1, ACTS + 1):
                    self._act()
                    self._watch()
                self._faults_stop()
            except Contradicted as wrong:
                return [str(wrong)]
            except NoRest as moving:
                return [str(moving), *judge(self)]
            return [f"step {self.step}, the last: {each}" for each in judge(self)]

    def _watch(self) -> None:
        """What may never be true is compared after every step."""
        wrong = at_once(self.provider, self.witness)
        if wrong:
            raise Contradicted(f"step {self.step}: {'; '.join(wrong)}")

    @contextlib.contextmanager
    def _installed(self) -> Iterator[None]:
        usual = http._transport
        bells = self.machines.bells
        promised = self.theme.promised() if self.theme else contextlib.nullcontext()
        with promised, self.clock, self.cuts:
            http._transport = lambda: self.wire  # type: ignore[assignment]
            doorbell.connect(lambda task, named, after: bells.append((task, named)))
            try:
                yield
            finally:
                http._transport = usual
                doorbell.connect(lambda task, named, after: None)
                self.witness.close()

    # The stage

    def _begin(self) -> None:
        self.postbox.open()
        first, second = self.dice.choice(ACCOUNTS), self.dice.choice(ACCOUNTS)
        if self.theme:
            first = second = self.theme.account
            self.provider.configure(first, **self.theme.profile)
        for ref, account in (("S-1", first), ("S-2", second)):
            self.provider.payment(f"pi_{ref}", account=account)
            build.order(ref, account=account)
        self._approved("S-1", 4000)
        self._approved("S-2", 5100)
        if self.dice.random() < 0.5:
            self._approved("S-1", 2500)
        for number in range(self.theme.parcels if self.theme else 0):
            self._approved("S-1", 700 + number)
        # The time in which a wrong press can be taken back; for some it is over already.
        self.passes(self.dice.choice((0, settings.LIMITS.send_delay_seconds)))
        self.told.append(f"accounts {first}, {second}")

    def _approved(self, ref: str, amount_minor: int) -> None:
        build.authorized(
            self.cast.foxtrot, self.cast.cleo, order_ref=ref, amount_minor=amount_minor
        )

    # Time

    def passes(self, seconds: float) -> None:
        """Every clock goes on: the database's, the provider's, and this process's own.

        What is in the air meanwhile lands when it is due, and not when all of the time has passed.
        """
        until = self.clock.seconds + seconds
        for at in (*self.wire.landings(until), until):
            self.clock.move(max(at - self.clock.seconds, 0))
            self.wire.land()

    def _may_fly(self) -> bool:
        """Whether a request of ours is on its way, or its sender may still write it."""
        return bool(self.wire.flying) or self._depth > 1

    # Acts

    def _somebody(self) -> None:
        """Somebody else's turn while a call travels."""
        if self._depth < _DEPTH_MAX:
            self._act()

    def _act(self) -> None:
        name, bells = self.weather.act(), self.machines.bells
        self.acts[name] += 1
        self._depth += 1
        try:
            self._survives(name, self._acts[name])
            while bells and self._depth == 1 and self.dice.random() < self.weather.eager:
                self._survives("bell", lambda: hear(*bells.pop(0)))
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
            said = f"{type(refused).__name__} {refused}"
        except Exception as error:
            # By a guard that stands behind another one, or by a fault of the product: either way
            # it is told, and the schedule goes on as the process would with its next message.
            connection.close()
            said = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
            self.raised.append(f"step {self.step}: {name} raised {said}")
        # As every process does after each of its messages, also where what broke was swallowed.
        connection.close_if_unusable_or_obsolete()
        self.told.append(f"{'  ' * self._depth}{self.clock.seconds:.1f} {name}: {said}")

    # Rest

    def _faults_stop(self) -> None:
        """Calm weather until nothing moves any more; after a bank's change of mind, also a day later.

        Raises NoRest when something still does after so many steps of its own schedule.
        """
        self.wire.calm = True
        self.told.append("faults stop")
        self._comes_to_rest()
        if self.acts["sent_back"]:
            self.passes(_A_DAY_SECONDS)
            self._round()
            self._comes_to_rest()

    def _comes_to_rest(self) -> None:
        for idle in range(_STEPS_TO_REST_MAX):
            if self._rests():
                return
            # What is due and did not move waits for something else, as a lease does.
            self.passes(max(self._until_next(), 0.05 * (1 + idle)))
            self._round()
        left = Operation.objects.values_list("provider_account", "state", "due_at")
        raise NoRest(f"after {_STEPS_TO_REST_MAX} steps: {[*left]}")

    def _rests(self) -> bool:
        """Ended, waiting for people, or a case of people; nothing is in the air or unheard."""
        now = timezone.now()
        if self.wire.flying or self.provider.notices_due() or reconciler.due(now, batch_max=1):
            return False
        if AccountSweep.objects.filter(due_at__lte=now).exists():
            return False
        open_cases = set(Case.objects.filter(closed_at=None).values_list("operation_id", flat=True))
        moving = Operation.objects.filter(state__in=[*MOVES, states.AUTHORIZED])
        return all(
            (each.pk in open_cases and not self.ends_by_itself(each.provider_account))
            or (each.state == states.AUTHORIZED and (each.halted or each.payment.halted))
            for each in moving.select_related("payment")
        )

    def ends_by_itself(self, account: str) -> bool:
        """Whether nothing of this account needs people: not where the provider answered about
        another refund, for of that a person is to know."""
        return account in ENDS_BY_ITSELF and not self.wire.fates["send mixed_up"]

    def _until_next(self) -> float:
        """Seconds until something falls due."""
        open_ = Operation.objects.filter(state__in=[*MOVES, states.AUTHORIZED])
        down = ProviderAccount.objects.filter(pause_kind="outage")
        instants = [
            open_.aggregate(at=Min("due_at"))["at"],
            down.aggregate(at=Min("probe_at"))["at"],
            Notice.objects.filter(applied_at=None, tries=0).aggregate(at=Min("due_at"))["at"],
        ]
        ahead = [(at - timezone.now()).total_seconds() for at in instants if at is not None]
        ahead += [each.at - self.clock.seconds for each in self.wire.flying]
        return min(ahead, default=60)

    def _round(self) -> None:
        self.step += 1
        self._survives("people go on", self.people.go_on)
        self._survives("notices", self.postbox.all_come)
        for act in self.machines.round():
            self._survives("round", act)
        self._watch()
