"""`decide` once more, written from the rules and not from the code. Milliseconds, plain values.

Shares nothing with the product but words: states, outcomes and events. Where it differs from
`reconciliation.decide`, one of the two misreads a rule.
"""

from __future__ import annotations

from typing import NamedTuple

SKEW = 5_000
SEND = 2_000
ATTEMPTS_MAX = 5
LOOKS_BEFORE_RESEND = 2
APPROVAL_LEFT = 600_000
INCONCLUSIVE_MAX = 3
DAY = 86_400_000
WITHOUT_QUIET = 900_000

UNCERTAIN = ("submitting", "unknown", "pending")
MONEY_DID_NOT_MOVE = (
    *("failed", "returned", "denied", "rejected", "withdrawn", "expired"),
    *("authorized", "awaiting_approval"),
)


class Promise(NamedTuple):
    """A contract in ms; None is unknown. `accepted`: (id, fact, ms, scope) records in force."""

    name: str
    keys: str = "none"
    window: int | None = None
    keeps_refusals: bool = False
    looks: bool = True
    notices: bool = False
    flight: int | None = None
    lag: int | None = None
    idle: int | None = None
    patience: int = 15_000
    accepted: tuple[tuple[int, str, int, str], ...] = ()


class Try(NamedTuple):
    """One attempt. `outcome` None: its lease ended and nobody said how it went."""

    outcome: str | None
    recorded: int
    deadline: int
    stopped: int | None
    settled: bool = False
    kept: str = ""


class Situation(NamedTuple):
    """What is known of one operation, and the moment at which somebody decides."""

    state: str
    tries: tuple[Try, ...]
    # nothing, unreadable, absent, gone, differs (and came to nothing), two_paid, two_unclear, or what
    # a match means
    shown: str
    whole_list: bool
    looked: int
    now: int
    promise: Promise
    unknown_since: int = 0
    entered: int = 0
    sendable_until: int | None = None
    empty_looks: tuple[int, ...] = ()
    case: bool = False
    halted: bool = False
    adopted: bool = False
    quarantine: bool = False
    resumed: int | None = None  # a quarantine ended
    order_explained: bool = True
    booked_is_it: bool = True


class Verdict(NamedTuple):
    """What must follow: `does` is settle, resend, case, look or rest."""

    does: str
    what: str = ""
    covers: bool = False
    accepted: tuple[int, ...] = ()


LOOK, REST = Verdict("look"), Verdict("rest")


# Somebody was paid, or may be, by what is shown as ours.
NOT_FINALLY_NO = ("two_paid", "two_unclear", "differs", "paid", "working", "odd")


def expected(s: Situation) -> Verdict:
    if s.state in MONEY_DID_NOT_MOVE and s.shown in NOT_FINALLY_NO:
        return Verdict("settle", "contradicted")
    if s.shown in ("two_paid", "two_unclear"):
        if s.state == "mismatched" and not s.booked_is_it:  # neither is what people said
            return Verdict("settle", "ruling_contradicted")
        books_one = s.shown == "two_paid" and s.state in UNCERTAIN
        return Verdict("settle", "found_succeeded") if books_one else Verdict("case", "duplicate")
    if s.shown == "differs_negative" and s.state in ("succeeded", "mismatched") and s.booked_is_it:
        return Verdict("settle", "taken_back")
    if s.shown in ("differs", "differs_negative"):
        return Verdict("case", "mismatch")
    if s.shown in ("paid", "working", "negative", "odd"):
        return _ours_is_shown(s)
    return _nothing_is_shown(s)


def _ours_is_shown(s: Situation) -> Verdict:
    if s.shown == "odd":
        return Verdict("case", "mismatch")
    if s.shown == "negative":
        return _no_for_good(s)
    if s.shown == "paid":
        if s.state == "succeeded":
            return REST if s.booked_is_it else Verdict("case", "contradiction")
        if s.state == "mismatched":  # people's word alone said that it went otherwise
            return Verdict("settle", "ruling_contradicted")
        return Verdict("settle", "found_succeeded")
    if s.state == "pending":
        return _overdue(s)
    if s.state in UNCERTAIN:
        return Verdict("settle", "found_pending")
    return Verdict("case", "contradiction")


def _no_for_good(s: Situation) -> Verdict:
    """Final negative status: it fails only if every other attempt is explained."""
    if s.state in ("failed", "returned"):
        return REST
    if s.state in ("succeeded", "mismatched") and s.booked_is_it:
        return Verdict("settle", "taken_back")
    if s.state not in UNCERTAIN:
        return Verdict("case", "contradiction")
    in_doubt = [each for each in s.tries if not _harmless(each)]
    if len(in_doubt) <= 1 or all(_one_refund_by_key(s, each) for each in in_doubt):
        return Verdict("settle", "found_failed")
    end = quiet_end(s)
    if s.whole_list and end is not None and s.looked > end and not s.quarantine:
        return Verdict("settle", "found_failed", accepted=_named(s, "absence"))
    return LOOK


def _nothing_is_shown(s: Situation) -> Verdict:
    moved = s.state in ("succeeded", "mismatched")
    missing = s.shown == "absent" or (s.shown == "gone" and s.booked_is_it)
    if moved and missing and s.looked > s.entered + _shows_once_booked(s):
        return LOOK if s.case else Verdict("case", "contradiction")
    refused = any(each.outcome == "refused" for each in s.tries)
    proof = _proved_nothing(s)
    if refused and s.state in ("unknown", "authorized"):
        in_doubt = [each for each in s.tries if not _harmless(each)]
        pays = any(each.outcome in ("confirmed", "accepted") for each in in_doubt)
        if not pays and all(_one_refund_by_key(s, each) for each in in_doubt):
            return Verdict("settle", "found_failed")
        if proof and s.state == "unknown":
            return proof._replace(what="found_failed")
    if s.state == "unknown":
        if not s.case and any(each.kept == "turned_away" for each in s.tries):
            return Verdict("case", "poison")
        if proof and not refused:
            return proof
        return _unknown_goes_on(s)
    if s.state == "pending":
        return _overdue(s)
    if s.state == "submitting":
        return LOOK
    return LOOK if s.case else REST


def _shows_once_booked(s: Situation) -> int:
    """What was booked shows that long after, by the contract's own word, or else after a day."""
    flight, lag = s.promise.flight, s.promise.lag
    return DAY if flight is None or lag is None else flight + lag + 2 * SKEW


def _overdue(s: Situation) -> Verdict:
    if s.state == "pending" and not s.case and s.now - s.entered >= DAY:
        return Verdict("case", "overdue_pending")
    return LOOK


def _unknown_goes_on(s: Situation) -> Verdict:
    if s.case:
        return LOOK
    if _a_person_must(s):
        return Verdict("case", "unresolved")
    return Verdict("resend") if _may_go_out_again(s) else LOOK


# What proves that nothing happened


def _proved_nothing(s: Situation) -> Verdict | None:
    if not s.tries or s.adopted or s.quarantine:
        return None
    by_senders = all(_nothing_ran(each) for each in s.tries)
    end = quiet_end(s)
    by_lookup = (
        s.shown == "absent"
        and end is not None
        and s.looked > end
        and not any(each.outcome in ("confirmed", "accepted") for each in s.tries)
    )
    if not by_senders and not by_lookup:
        return None
    rests_on = () if by_senders else _named(s, "absence")
    again = (
        not rests_on
        and not s.case
        and not s.halted
        and all(each.kept == "" for each in s.tries)
        and len(s.tries) < ATTEMPTS_MAX
        and s.sendable_until is not None
        and s.sendable_until - s.now >= APPROVAL_LEFT
    )
    event = "proved_absent" if again else "proved_not_executed"
    return Verdict("settle", event, not by_senders, rests_on)


def _nothing_ran(each: Try) -> bool:
    return each.outcome in ("not_sent", "turned_away") or (
        each.settled and each.outcome != "refused"
    )


def _harmless(each: Try) -> bool:
    return each.settled or each.outcome in ("not_sent", "turned_away", "refused")


def _bound(s: Situation, fact: str, scope: str) -> int | None:
    own: int | None = getattr(s.promise, fact)
    if own is not None:
        return own
    taken = [ms for _, name, ms, act in s.promise.accepted if (name, act) == (fact, scope)]
    return taken[0] if taken else None


def _named(s: Situation, scope: str) -> tuple[int, ...]:
    return tuple(
        number
        for number, fact, _, act in s.promise.accepted
        if act == scope and getattr(s.promise, fact) is None
    )


def quiet_end(s: Situation) -> int | None:
    """When the last copy must have landed and be visible; None: that is never known."""
    flight, lag = _bound(s, "flight", "absence"), _bound(s, "lag", "absence")
    if not s.promise.looks or s.adopted or not s.tries or flight is None or lag is None:
        return None
    writes = []
    for each in s.tries:
        if each.stopped is not None:
            writes.append(each.stopped)
        elif s.promise.idle is None:
            return None
        else:
            writes.append(each.deadline + s.promise.idle)
    return max(writes) + flight + lag + 2 * SKEW


# What the key makes safe


def first_recorded(s: Situation) -> int:
    return min(each.recorded for each in s.tries)


def _one_refund_by_key(s: Situation, each: Try) -> bool:
    """This attempt gets the one stored answer, so that a refusal speaks for it (rule 35): it has
    landed, or will, before the key ends."""
    promise = s.promise
    if not promise.keeps_refusals or promise.keys not in ("forever", "window"):
        return False
    if promise.keys == "forever":
        return True
    if promise.window is None or promise.flight is None:
        return False
    if each.stopped is not None:
        last_write = each.stopped
    elif promise.idle is not None:
        last_write = each.deadline + promise.idle
    else:
        return False
    ends = first_recorded(s) + promise.window - SKEW
    return s.now <= ends and last_write + promise.flight <= ends


def landing(s: Situation) -> int | None:
    """How long after now a copy sent now may still land: S + I + D + skew."""
    flight = _bound(s, "flight", "resend")
    return None if flight is None else SEND + (s.promise.idle or 0) + flight + SKEW


def _may_go_out_again(s: Situation) -> bool:
    if s.halted or s.case or s.adopted or s.quarantine or not s.order_explained:
        return False
    if s.sendable_until is None or not s.now < s.sendable_until:
        return False
    if len(s.tries) == 0 or len(s.tries) >= ATTEMPTS_MAX:
        return False
    for each in s.tries:
        if each.outcome in ("confirmed", "accepted", "refused") or each.kept:
            return False
    latest = max(each.recorded for each in s.tries)
    if len([at for at in s.empty_looks if at > latest]) < LOOKS_BEFORE_RESEND:
        return False
    if s.promise.keys == "forever":
        return True
    window, lands = s.promise.window, landing(s)
    if s.promise.keys != "window" or window is None or lands is None:
        return False
    slept_out = all(each.stopped is not None for each in s.tries)
    if s.promise.idle is None and (s.promise.flight is not None or not slept_out):
        return False
    age = s.now - first_recorded(s)
    if 4 * age <= window and age + lands <= window:
        return True
    lag = _bound(s, "lag", "resend")
    return s.shown == "absent" and lag is not None and s.now - s.looked + lands + lag <= window


# When a person must


def _a_person_must(s: Situation) -> bool:
    by_key = s.promise.keys == "forever" or (
        s.promise.keys == "window"
        and s.promise.window is not None
        and _bound(s, "flight", "resend") is not None
        and (s.promise.idle is not None or s.promise.flight is None)
    )
    if not (s.promise.looks or s.promise.notices or by_key):
        return True
    age = s.now - s.unknown_since
    if age >= DAY:
        return True
    if s.quarantine and s.promise.looks:  # people are asked by it, about all of them
        return False
    began = s.unknown_since if s.resumed is None else max(s.resumed, s.unknown_since)
    age = s.now - began
    end = quiet_end(s)
    counted_from = began + WITHOUT_QUIET if end is None else max(end, began)
    in_vain = len([at for at in s.empty_looks if at > counted_from])
    if in_vain >= INCONCLUSIVE_MAX:
        return True
    return age >= s.promise.patience and (end is None or in_vain > 0)
