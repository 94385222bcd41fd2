"""Every situation of the product, and the same situation in the product's own values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from reconciliation.decide import (
    AttemptView,
    Decision,
    LookUpAgain,
    OpenCase,
    Resend,
    Rest,
    Settle,
    View,
    decide,
)
from reconciliation.matching import Candidate, Finding
from reconciliation.matching import Verdict as Said
from refunds.domain.contract import UNKNOWN_FACT, Accepted, Fact, ProviderContract
from refunds.domain.limits import Limits
from refunds.domain.outcome import RefundRecord
from refunds.providers.base import StatusWords
from tests.model.restated import (
    APPROVAL_LEFT,
    DAY,
    SKEW,
    Promise,
    Situation,
    Try,
    Verdict,
    landing,
    quiet_end,
)

OUTCOMES = (
    *("confirmed", "accepted", "refused", "turned_away", "not_sent", "unanswered"),
    *(None, "settled"),
)
SHOWN = (
    *("nothing", "unreadable", "absent", "gone", "differs", "differs_negative"),
    *("two_paid", "two_unclear"),
    *("paid", "working", "negative", "odd"),
)
_D, _V, _I, _K = 2_000, 1_000, 1_000, 600_000
_BOUNDED = Promise("none, lookup, bounded", flight=_D, lag=_V, idle=_I)
_WINDOW = _BOUNDED._replace(keys="window", window=_K, keeps_refusals=True)
_STRIPE = Promise("", "window", _K, True)

# The contracts of table 2.4, and those that two people completed.
PROMISES = (
    _BOUNDED,
    _BOUNDED._replace(name="forever, lookup", keys="forever", keeps_refusals=True),
    Promise("forever, lookup, nothing else", keys="forever"),
    Promise("forever, no lookup", keys="forever", keeps_refusals=True, looks=False, flight=_D),
    _WINDOW._replace(name="window, lookup, bounded"),
    _WINDOW._replace(name="window, refusals not kept", keeps_refusals=False),
    _WINDOW._replace(name="window, long flight", flight=500_000),
    _WINDOW._replace(name="window, lookup, unbounded", flight=None, idle=None),
    _WINDOW._replace(name="window, lookup, pausable", idle=None),
    _WINDOW._replace(name="window, not-after", flight=0, idle=0),
    _WINDOW._replace(name="window, no lookup", looks=False, lag=None),
    _WINDOW._replace(name="window of unknown length", window=None),
    _BOUNDED._replace(name="weak, lookup, bounded", keys="weak"),
    Promise("none, lookup, unbounded", lag=_V, idle=_I),
    Promise("none, no lookup", looks=False, flight=_D, idle=_I),
    Promise("none, no lookup, notices", looks=False, notices=True, flight=_D, idle=_I),
    _STRIPE._replace(
        name="accepted for resends",
        accepted=((1, "flight", 60_000, "resend"), (2, "lag", 30_000, "resend")),
    ),
    _STRIPE._replace(
        name="accepted for absence",
        idle=_I,
        accepted=((3, "flight", 60_000, "absence"), (4, "lag", 30_000, "absence")),
    ),
)
# One circumstance changed at a time; the first is the plain one.
CIRCUMSTANCES: tuple[dict[str, Any], ...] = (
    {},
    {"case": True},
    {"halted": True},
    {"adopted": True},
    {"quarantine": True},
    {"resumed": 9_000},
    {"order_explained": False},
    {"booked_is_it": False},
    {"whole_list": False},
    {"case": True, "halted": True},
)


def tries(*outcomes: str | None, kept: str = "") -> tuple[Try, ...]:
    """Attempts some seconds apart; one with an outcome was reported by its sender."""
    made = []
    for number, outcome in enumerate(outcomes):
        at = number * 7_000
        settled = outcome == "settled"
        said = "unanswered" if settled else outcome
        stopped = None if said is None else at + 700
        last = kept if number == len(outcomes) - 1 else ""
        made.append(Try(said, at, at + 2_000, stopped, settled, last))
    return tuple(made)


def moments(s: Situation) -> Iterator[Situation]:
    """Before, at and after every instant at which something may turn, 1 ms apart."""
    good = s.promise.patience + 10**9
    for off in (-1, 0, 1):
        quiet = quiet_end(s)
        if quiet is not None:
            asked = quiet + off
            early = (asked - 3, asked - 2, asked - 1)
            yield s._replace(
                looked=asked, now=asked + 50, sendable_until=good, empty_looks=(asked,)
            )
            yield s._replace(looked=1, now=asked + 50, sendable_until=good, empty_looks=early)
            yield s._replace(
                looked=quiet + 5, now=quiet + 9, sendable_until=quiet + 9 + APPROVAL_LEFT + off
            )
            late = (quiet - 1, quiet + off, quiet + 1, quiet + 2)
            yield s._replace(looked=quiet, now=quiet + 9, sendable_until=good, empty_looks=late)
        flight, lag = s.promise.flight, s.promise.lag
        shows = DAY if flight is None or lag is None else flight + lag + 10_000
        yield s._replace(entered=1_000, looked=1_000 + shows + off, now=1_000 + shows + 50)
        yield from _moments_of_the_key(s, off, good)
        yield from _moments_of_patience(s, off, good)


def _moments_of_the_key(s: Situation, off: int, good: int) -> Iterator[Situation]:
    last = max((each.recorded for each in s.tries), default=0)
    looks = (last + 800, last + 900)
    soon = last + 1_000
    yield s._replace(now=soon, looked=soon - 1, sendable_until=soon + off, empty_looks=looks)
    yield s._replace(
        now=soon, looked=soon - 1, sendable_until=good, empty_looks=(last + off, last + 900)
    )
    window, lands = s.promise.window, landing(s)
    if window is None:
        return
    ends = [window // 4, window - SKEW]
    lag = s.promise.lag if s.promise.lag is not None else 30_000
    if lands is not None:
        ends.append(window - lands)
        fresh = s._replace(now=window * 3, sendable_until=good, empty_looks=looks)
        fresh = fresh._replace(unknown_since=window * 3, entered=window * 3)
        yield fresh._replace(looked=fresh.now - (window - lands - lag) + off)
    for end in ends:
        now = end + off
        yield s._replace(
            now=now, looked=now - 1, sendable_until=good, empty_looks=looks, unknown_since=now - 10
        )


def _moments_of_patience(s: Situation, off: int, good: int) -> Iterator[Situation]:
    for age in (s.promise.patience, DAY):
        now = age + off
        yield s._replace(now=now, looked=1, sendable_until=good)
        yield s._replace(now=now, looked=1, sendable_until=None, empty_looks=(now - 1,))
    counted = tuple(900_000 + off + number for number in range(3))
    yield s._replace(now=900_500, looked=1, sendable_until=good, empty_looks=counted)


def histories(attempts_max: int) -> Iterator[tuple[Try, ...]]:
    """Every attempt history of at most so many attempts, each outcome; and what is kept for one."""
    for count in range(attempts_max + 1):
        for outcomes in itertools.product(OUTCOMES, repeat=count):
            yield tries(*outcomes)
    yield tries("unanswered", "unanswered", kept="error")
    yield tries("unanswered", "unanswered", kept="turned_away")
    yield tries(*["unanswered"] * 4)
    yield tries(*["unanswered"] * 5)


def situations(
    state: str,
    promise: Promise,
    attempts_max: int,
    circumstances: tuple[dict[str, Any], ...] = CIRCUMSTANCES[:1],
) -> Iterator[Situation]:
    """Everything that may be known of an operation in this state under this contract."""
    for made, shown, changed in itertools.product(histories(attempts_max), SHOWN, circumstances):
        yield from moments(Situation(state, made, shown, True, 0, 0, promise)._replace(**changed))


# The same in the product's own values

_EPOCH = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIMITS = Limits()
WORDS = StatusWords(
    succeeded=frozenset({"succeeded"}), pending=frozenset({"pending"}), failed=frozenset({"failed"})
)
_STATUS = {"paid": "succeeded", "working": "pending", "negative": "failed", "odd": "reversed"}


@cache
def instant(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _record(ref: str, status: str, ms: int = 0) -> RefundRecord:
    return RefundRecord(
        ref=ref,
        payment_ref="pi_1",
        amount_minor=100,
        currency="USD",
        provider_status=status,
        marker="m",
        created_at=instant(ms),
    )


@cache
def _finding(shown: str, whole: bool) -> Finding | None:
    if shown == "nothing":
        return None
    if shown in _STATUS:
        record = _record("rf_1", _STATUS[shown])
        return Finding(verdict=Said.MATCH, because="", record=record, complete=whole)
    if shown in ("two_paid", "two_unclear"):
        second = "succeeded" if shown == "two_paid" else "pending"
        found = (_record("rf_1", "succeeded"), _record("rf_2", second, 1))
        candidates = tuple(
            Candidate(record=each, ours=True, fields={"marker": "match"}) for each in found
        )
        return Finding(verdict=Said.DUPLICATE, because="", candidates=candidates)
    if shown == "gone":
        return Finding(verdict=Said.CANNOT_TELL, because="", gone="rf_1")
    if shown in ("differs", "differs_negative"):
        record = _record("rf_1", "succeeded" if shown == "differs" else "failed")
        return Finding(verdict=Said.DIFFERS, because="", record=record)
    said = {"unreadable": Said.CANNOT_TELL, "absent": Said.ABSENT}
    return Finding(verdict=said[shown], because="", complete=shown == "absent")


@cache
def _attempts(made: tuple[Try, ...]) -> tuple[AttemptView, ...]:
    return tuple(
        AttemptView(
            no=number,
            outcome=each.outcome,
            recorded_at=instant(each.recorded),
            send_deadline=instant(each.deadline),
            stop_proof_at=None if each.stopped is None else instant(each.stopped),
            settled_by_evidence=each.settled,
            kept=each.kept,  # type: ignore[arg-type]
        )
        for number, each in enumerate(made, 1)
    )


def _fact(ms: int | None) -> Fact:
    return UNKNOWN_FACT if ms is None else Fact(ms // 1000, "measured", "the model")


@cache
def contract_of(promise: Promise) -> tuple[ProviderContract, tuple[Accepted, ...]]:
    contract = ProviderContract(
        name=promise.name,
        keys=promise.keys,  # type: ignore[arg-type]
        key_window=_fact(promise.window),
        rejections_stored=promise.keeps_refusals,
        lookup="now" if promise.looks else "none",
        flight_max=_fact(promise.flight),
        lookup_lag=_fact(promise.lag),
        idle_close=_fact(promise.idle),
        notice="proof" if promise.notices else "none",
        normal_window_seconds=promise.patience // 1000,
        escalation_grace_seconds=0,
    )
    names = {"flight": "flight_max", "lag": "lookup_lag"}
    accepted = tuple(
        Accepted(number, names[fact], ms // 1000, scope)  # type: ignore[arg-type]
        for number, fact, ms, scope in promise.accepted
    )
    return contract, accepted


def decided(s: Situation) -> Decision:
    """What the product decides in this situation."""
    contract, accepted = contract_of(s.promise)
    view = View(
        state=s.state,
        entered_at=instant(s.entered),
        unknown_since=instant(s.unknown_since) if s.state == "unknown" else None,
        attempts=_attempts(s.tries),
        has_case=s.case,
        inconclusive_at=tuple(instant(at) for at in s.empty_looks),
        booked_ref="rf_1" if s.booked_is_it else "rf_0",
        halted=s.halted,
        adopted=s.adopted,
        quarantined=s.quarantine,
        resumed_at=None if s.resumed is None else instant(s.resumed),
        explained=s.order_explained,
        sendable_until=None if s.sendable_until is None else instant(s.sendable_until),
    )
    return decide(
        view,
        _finding(s.shown, s.whole_list),
        contract=contract,
        words=WORDS,
        limits=LIMITS,
        now=instant(s.now),
        looked_at=instant(s.looked),
        accepted=accepted,
    )


def in_short(decision: Decision) -> Verdict:
    """A decision of the product in the words of the restatement."""
    match decision:
        case Settle():
            return Verdict("settle", decision.event, decision.covers, decision.accepted)
        case OpenCase():
            return Verdict("case", decision.reason)
        case Resend():
            return Verdict("resend")
        case LookUpAgain():
            return Verdict("look")
        case Rest():
            return Verdict("rest")
