"""What to say to the customer about a refund, for every place it can stand. Pure.

The words are data and have a version; the rep's page, the API and MCP say the same ones. A text
never promises more than is known, and every time in it lies ahead. A promise of news is made once,
from the moment the refund came to where it stands, and never moves: once it has passed, the words
name no time any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from refunds.domain import money, states

# Raised with every change of a text, so that what was said when can be told apart.
VERSION: Final = "2"

STALE: Final = "stale"
REVIEWED_AGAIN: Final = "reviewed_again"
NEEDS_CUSTOMER: Final = "needs_customer"
PENDING_LATE: Final = "pending_late"

# Providers say 5 to 10 working days until a bank shows a refund (docs.stripe.com/refunds).
BANK_WORKING_DAYS: Final = 10
PENDING_SECONDS: Final = 5 * 86_400
ARRANGING_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class Never:
    """One thing not to say: `says` for the rep; `words`, in small letters, for the test."""

    says: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """The words for one place. `rep_sees` names facts of `REP_SEES`; `never` is its never-say list.

    `text` may name {amount}, {date} and {reason}. `promise` follows it and names {time}; once that
    has passed, `NO_NEWS` follows instead.
    """

    text: str
    rep_sees: tuple[str, ...]
    never: tuple[Never, ...]
    promise: str = ""


# What a rep sees beside the words: the fact's name and its label on the page.
REP_SEES: Final = {
    "decider": "Who must decide",
    "due": "Due",
    "changed": "What changed",
    "provider_ref": "Provider's reference",
    "last_check": "Last check",
    "next_check": "Next check",
    "owner": "Who is on it",
    "case": "Case reference",
    "difference": "Difference",
    "evidence": "Evidence",
    "cause": "Cause",
    "next_step": "Next step",
    "decided_by": "Decided by",
}

_TRY_AGAIN = Never("to try again", ("try again", "retry"))
_DONE = Never("that it is done", ("done", "successful"))
_BANK_DATE = Never("a date at the bank", ("bank",))
_REJECTED = Never("that it was rejected", ("rejected", "refused"))
_ON_ACCOUNT = Never("that it is on the account", ("on your account",))
_FAILED = Never("that it failed, or that it worked", ("failed", "successful", "succeeded"))
_NEW_REFUND = Never("that a new refund will be made", ("new refund", "another refund"))
_BLAME = Never("whose fault it is", ("fault", "mistake", "blame", "error"))
_HOUR = Never("at what hour it arrives", ("hour", "o'clock", "utc"))
_INNER = Never("names of colleagues, rules or limits", ("policy", "limit", "agent", "approver"))

_UPDATE: Final = ". We will update you by {time}."
_NEXT: Final = ". Next update by {time}."
_NEXT_TOO: Final = "; next update by {time}."
NO_NEWS: Final = ". We have no news yet; it takes longer than we said."

_REVIEW = Script(
    "Your refund of {amount} has been requested and is being reviewed",
    ("decider", "due"),
    (_DONE, _BANK_DATE, _TRY_AGAIN),
    _UPDATE,
)
_DOUBT = Script(
    "Your refund of {amount} was submitted. The confirmation is delayed and we are checking it with"
    " the payment company. You do not need to do anything",
    ("last_check", "next_check", "owner", "case"),
    (_FAILED, _TRY_AGAIN, _NEW_REFUND),
    _NEXT,
)

SCRIPTS: Final[dict[str, Script]] = {
    states.PROPOSED: _REVIEW,
    states.AWAITING_APPROVAL: _REVIEW,
    # Approved and not sent, also after a try that was turned away: "being reviewed" is over.
    states.AUTHORIZED: Script(
        "Your refund of {amount} has been approved and is waiting to be sent to the payment"
        " company",
        ("due",),
        (_DONE, _BANK_DATE, _TRY_AGAIN),
        _UPDATE,
    ),
    STALE: Script(
        "Your order changed while we were reviewing the refund, so we are reviewing it again. No"
        " action is needed from you.",
        ("changed", "decider", "due"),
        (_REJECTED, _DONE, _TRY_AGAIN),
    ),
    # An approval that ended for another cause: "your order changed" would not be true.
    REVIEWED_AGAIN: Script(
        "We are reviewing your refund of {amount} again. No action is needed from you.",
        ("changed", "decider", "due"),
        (_REJECTED, _DONE, _TRY_AGAIN),
    ),
    states.SUBMITTING: _DOUBT,
    states.UNKNOWN: _DOUBT,
    states.PENDING: Script(
        "Your refund of {amount} was submitted and the payment company is processing it. Expected"
        " by {date}.",
        ("provider_ref", "next_check"),
        (_ON_ACCOUNT, _DONE, _TRY_AGAIN),
    ),
    PENDING_LATE: Script(
        "Your refund of {amount} was submitted and the payment company is processing it. It takes"
        " longer than expected, and we are asking them",
        ("provider_ref", "last_check", "next_check", "owner", "case"),
        (_ON_ACCOUNT, _DONE, _TRY_AGAIN),
        _NEXT,
    ),
    NEEDS_CUSTOMER: Script(
        "Your refund of {amount} was submitted, and the payment company needs something from you"
        " before it can complete it. A colleague will tell you what it is.",
        ("provider_ref", "next_step"),
        (_ON_ACCOUNT, _DONE, _TRY_AGAIN),
    ),
    states.SUCCEEDED: Script(
        "Your refund of {amount} was confirmed on {date}. Your bank usually shows it within"
        f" {BANK_WORKING_DAYS} working days.",
        ("provider_ref", "evidence"),
        (_HOUR,),
    ),
    states.MISMATCHED: Script(
        "Your refund was processed, but the amount needs a correction. A specialist is on it",
        ("difference", "owner", "case"),
        (_BLAME, _TRY_AGAIN),
        _NEXT_TOO,
    ),
    states.RETURNED: Script(
        "The bank sent your refund back. We are arranging another way",
        ("cause", "next_step"),
        (_BLAME, _TRY_AGAIN),
        _NEXT_TOO,
    ),
    states.FAILED: Script(
        "Your refund could not be completed and no money has left. We are arranging another way",
        ("cause", "next_step"),
        (_TRY_AGAIN, _BLAME),
        _NEXT_TOO,
    ),
    states.DENIED: Script(
        "We could not approve this refund. {reason}",
        ("cause", "next_step"),
        (_INNER, _TRY_AGAIN),
    ),
    states.REJECTED: Script(
        "We reviewed this refund and could not approve it. No money has left.",
        ("decided_by", "cause"),
        (_INNER, _TRY_AGAIN),
    ),
    states.WITHDRAWN: Script(
        "The request for this refund was withdrawn. No money has left.",
        ("decided_by", "cause"),
        (_REJECTED, _DONE, _TRY_AGAIN),
    ),
    # Nobody reviews it any more: "again" would be a promise that nobody keeps.
    states.EXPIRED: Script(
        "The request for your refund of {amount} ended before it was decided. No money has left.",
        ("due", "next_step"),
        (_REJECTED, _DONE, _TRY_AGAIN),
    ),
}

# Causes of a lapse that are a change of the order; the others are inner matters of ours.
_ORDER_CAUSES = frozenset({"order_changed", "balance"})

# The checks whose refusal concerns the customer, in words for them. Limits and rights of ours do
# not; then the text ends after its first sentence.
CUSTOMER_REASONS: Final = {
    "payment_refundable": "The payment cannot be refunded as it stands.",
    "within_balance": "The amount is more than what is left of your payment.",
    "currency_matches": "The refund must be in the currency you paid in.",
    "refund_age": "The time for refunds of this order is over.",
    "no_live_equivalent": "The same refund was asked for already.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The refund to speak about. `since`: when it came to where it stands; for a doubt, when the
    first request went out. `due_at`: when a waiting one ends by itself.
    """

    state: str
    amount_minor: int
    currency: str
    since: datetime
    due_at: datetime
    unknown_target_seconds: int
    stale_cause: str = ""
    needs_customer: bool = False
    failed_checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The words for now. `promise_at` lies ahead; `missed_at` is the promise that passed unkept.

    At most one of the two is there. `rep_sees` are names of `REP_SEES`.
    """

    place: str
    text: str
    promise_at: datetime | None
    missed_at: datetime | None
    rep_sees: tuple[str, ...]
    never: tuple[str, ...]
    version: str = VERSION


def say(about: About, now: datetime, zone: tzinfo = UTC) -> Said:
    """What to say at `now`; times are written in `zone`, with its name."""
    place = _place(about, now)
    script = SCRIPTS[place]
    promised_at = _promised_at(about, place) if script.promise else None
    missed = promised_at is not None and promised_at <= now
    text = (script.text + (NO_NEWS if missed else script.promise)).format(
        amount=money.display(about.amount_minor, about.currency),
        time=_clock(promised_at, zone) if promised_at else "",
        date=_day(_date_at(about, place), zone),
        reason=_reason(about),
    )
    return Said(
        place=place,
        text=text.strip(),
        promise_at=None if missed else promised_at,
        missed_at=promised_at if missed else None,
        rep_sees=script.rep_sees,
        never=tuple(each.says for each in script.never),
    )


def _place(about: About, now: datetime) -> str:
    """The key of the script: the state, or one of the places within it."""
    if about.state == states.AWAITING_APPROVAL and about.stale_cause:
        return STALE if about.stale_cause in _ORDER_CAUSES else REVIEWED_AGAIN
    if about.state == states.PENDING:
        if about.needs_customer:
            return NEEDS_CUSTOMER
        return PENDING_LATE if now >= _date_at(about, states.PENDING) else states.PENDING
    return about.state


def _promised_at(about: About, place: str) -> datetime:
    """When the customer was to hear from us: fixed, whenever it is asked for."""
    if place in (states.PROPOSED, states.AWAITING_APPROVAL, states.AUTHORIZED):
        return about.due_at
    if place in (states.SUBMITTING, states.UNKNOWN):
        return about.since + timedelta(seconds=about.unknown_target_seconds)
    since = _date_at(about, states.PENDING) if place == PENDING_LATE else about.since
    return since + timedelta(seconds=ARRANGING_SECONDS)


def _date_at(about: About, place: str) -> datetime:
    if place == states.PENDING:
        return about.since + timedelta(seconds=PENDING_SECONDS)
    return about.since


def _reason(about: About) -> str:
    reasons = (CUSTOMER_REASONS.get(name, "") for name in about.failed_checks)
    return " ".join(filter(None, reasons))


def _clock(at: datetime, zone: tzinfo) -> str:
    """ "16:05 UTC on 30 November", rounded up to the minute."""
    local = (at + timedelta(seconds=59, microseconds=999_999)).astimezone(zone)
    return f"{local:%H:%M %Z} on {local.day} {local:%B}"


def _day(at: datetime, zone: tzinfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B}"
