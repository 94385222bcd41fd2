"""The stage of a replay: one approved refund, the real engine, a provider as the trace wants it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

from django.conf import settings

from refunds import doorbell
from refunds.domain.contract import Fact, ProviderContract
from refunds.providers import http, plain_contracts, registry
from tests.model.replay.crew import Crew, this_worker
from tests.model.replay.traces import Trace
from tests.model.replay.wire import Wire
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere
from tests.simulation.witnesses import Witness

ACCOUNT = "plain-main"
TICK_SECONDS = 100
# A tick of the model is a whole number; here a few moments pass as well. The margins let "not
# later than n ticks" hold, and "later than n ticks" too.
_A_LITTLE = 20


def contract_of(trace: Trace) -> ProviderContract:
    """What the account promises, in seconds: what is accepted it does not state."""
    ticks, promised = trace.ticks, trace.provider
    stated = promised.bounded and not trace.accepted
    return plain_contracts.CONTRACTS[ACCOUNT].with_changes(
        keys=promised.keys,
        key_window=_fact(
            ticks.window * TICK_SECONDS + 2 * _A_LITTLE if promised.keys == "window" else None
        ),
        rejections_stored=promised.keeps_refusals,
        lookup=promised.lookup,
        account_list="none" if promised.lookup == "none" else "by_creation",
        flight_max=_fact(ticks.flight * TICK_SECONDS if stated else None),
        lookup_lag=_fact(None if promised.lookup == "none" else _lag_seconds(trace)),
        idle_close=_fact(None if promised.pausable else 0),
        notice="hint" if promised.notices else "none",
        lookup_schedule=(TICK_SECONDS,),
        lookups_per_second=1000,
        lookups_burst=1000,
        normal_window_seconds=TICK_SECONDS,
        escalation_grace_seconds=4 * TICK_SECONDS,
    )


def _fact(seconds: int | None) -> Fact:
    return Fact(seconds, "unknown" if seconds is None else "measured", "the trace")


def _lag_seconds(trace: Trace) -> int:
    lag = trace.ticks.lag if trace.provider.lookup == "lagged" else 0
    return max(lag * TICK_SECONDS - _A_LITTLE - 10, 0)


def configure(provider: SandboxHere, trace: Trace) -> None:
    """The provider itself, which keeps what it promises, and a little more."""
    promised, lag = trace.provider, _lag_seconds(trace)
    window = trace.ticks.window * TICK_SECONDS + 3 * _A_LITTLE
    provider.configure(
        ACCOUNT,
        keys=promised.keys,
        key_window_seconds=window if promised.keys == "window" else None,
        stores_rejections=promised.keeps_refusals,
        lookup="lagged" if lag and promised.lookup != "none" else promised.lookup,
        lookup_lag_seconds=lag - _A_LITTLE if lag else None,
        flight_seconds_max=None,
        idle_close_seconds=None,
        polices_totals=promised.whole,
        notices=False,
    )


def flight_seconds(trace: Trace) -> float:
    """When at the latest what is on its way lands, in truth."""
    if not trace.provider.bounded:
        return (trace.ticks.window + 3) * TICK_SECONDS
    return trace.ticks.flight * TICK_SECONDS - 1


@contextlib.contextmanager
def installed(
    trace: Trace, wire: Wire, clock: Clock, bells: list[tuple[str, str]]
) -> Iterator[None]:
    """The product with this wire, clock, contract and these limits."""

    def rung(task: str, named: str, after: float) -> None:
        worker = this_worker()
        (bells if worker is None else worker.bells).append((task, named))

    ticks = trace.ticks
    fresh = ticks.window if trace.fresh is None else trace.fresh
    limits = replace(
        settings.LIMITS,
        send_deadline_seconds=ticks.send * TICK_SECONDS + _A_LITTLE,
        lease_seconds=ticks.lease * TICK_SECONDS - _A_LITTLE,
        skew_seconds=0,
        call_total_seconds=300,
        not_sent_backoff_seconds=(0,),
        not_sent_in_row_max=100,
        resend_after_lookups=1,
        lookup_fresh_seconds=fresh * TICK_SECONDS + _A_LITTLE,
    )
    contracts = {ACCOUNT: contract_of(trace)}
    usual = settings.LIMITS
    with (
        mock.patch.dict(plain_contracts.CONTRACTS, contracts),
        mock.patch.object(http, "_transport", return_value=wire),
        clock,
    ):
        registry.accounts.cache_clear()
        doorbell.connect(rung)
        settings.LIMITS = limits
        try:
            yield
        finally:
            settings.LIMITS = usual
            doorbell.connect(lambda task, named, after: None)
    registry.accounts.cache_clear()


@contextlib.contextmanager
def playing(
    trace: Trace,
    provider: SandboxHere,
    wire: Wire,
    clock: Clock,
    bells: list[tuple[str, str]],
    crew: Crew,
    witness: Witness,
) -> Iterator[None]:
    """A trace is played in it; nobody stands anywhere afterwards."""
    configure(provider, trace)
    with installed(trace, wire, clock, bells):
        try:
            yield
        finally:
            crew.dismiss()
            witness.close()
