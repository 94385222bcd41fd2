"""What a person may say about a case: the choices by its reasons, and what each one carries. Pure.

What a choice must rest on stands in `reconciliation.judge`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refunds.domain import states

HAPPENED: Final = "happened"
NOT_HAPPENED: Final = "not_happened"
DIFFERENT: Final = "different"
ACCEPT_FIGURE: Final = "accept_figure"
CORRECT: Final = "correct"
STILL_UNKNOWN: Final = "still_unknown"
EXPLAINED: Final = "explained"
NOT_OURS: Final = "not_ours"
RECOVERED: Final = "recovered"
WRITTEN_OFF: Final = "written_off"
ATTACH: Final = "attach"
EXTERNAL: Final = "external"
WRONG_ACCOUNT: Final = "wrong_account"
RESUME: Final = "resume"
REMEDY: Final = "remedy"

FOUR: Final = (HAPPENED, NOT_HAPPENED, DIFFERENT, STILL_UNKNOWN)
# The event of the state table that a choice causes; the others move no operation.
EVENTS: Final = {
    HAPPENED: "ruled_happened",
    NOT_HAPPENED: "ruled_not_happened",
    DIFFERENT: "ruled_different",
    ACCEPT_FIGURE: "ruled_different",
    CORRECT: "ruled_different",
}
# By the reason of the case, while nobody knows what became of the operation.
_WHILE_UNCERTAIN: Final = {
    "unresolved": FOUR,
    "overdue_pending": FOUR,
    "contradiction": FOUR,
    "mismatch": (HAPPENED, ACCEPT_FIGURE, CORRECT, STILL_UNKNOWN),
    "poison": (RESUME, *FOUR),
    "duplicate": FOUR,
}
# Once it has ended, or where there is none.
_OTHERWISE: Final = {
    "unresolved": (EXPLAINED,),
    "overdue_pending": (EXPLAINED,),
    "contradiction": (EXPLAINED,),
    "mismatch": (EXPLAINED,),
    "poison": (RESUME,),
    "duplicate": (RECOVERED, WRITTEN_OFF, EXPLAINED),
    "external": (EXPLAINED, NOT_OURS),
    "unmatched_notice": (ATTACH, EXTERNAL, WRONG_ACCOUNT),
    "remedy": (REMEDY,),
}
_ENDS_THE_DOUBT: Final = frozenset(
    {"unresolved", "overdue_pending", "contradiction", "mismatch", "poison"}
)
# Something says that money moved, whatever our record says.
MAY_BE_PAID: Final = frozenset({"contradiction", "mismatch", "duplicate"})
# The reasons that a choice answers; what is left keeps the case open.
_ANSWERS: Final = {
    **dict.fromkeys(EVENTS, _ENDS_THE_DOUBT | {"remedy"}),
    EXPLAINED: _ENDS_THE_DOUBT | {"external", "duplicate", "remedy"},
    NOT_OURS: frozenset({"external"}),
    RECOVERED: frozenset({"duplicate"}),
    WRITTEN_OFF: frozenset({"duplicate"}),
    ATTACH: frozenset({"unmatched_notice"}),
    EXTERNAL: frozenset({"unmatched_notice"}),
    WRONG_ACCOUNT: frozenset({"unmatched_notice"}),
    RESUME: frozenset({"poison"}),
    REMEDY: frozenset({"remedy"}),
    STILL_UNKNOWN: frozenset[str](),
}
TITLES: Final = {
    HAPPENED: "The refund happened",
    NOT_HAPPENED: "The refund did not happen",
    DIFFERENT: "A different refund happened",
    ACCEPT_FIGURE: "Accept the provider’s figure",
    CORRECT: "Correct it by a new operation",
    STILL_UNKNOWN: "Still not known",
    EXPLAINED: "It is explained",
    NOT_OURS: "Nobody here knows of it",
    RECOVERED: "The second payment was recovered",
    WRITTEN_OFF: "The second payment is written off",
    ATTACH: "It belongs to an operation",
    EXTERNAL: "A refund made elsewhere",
    WRONG_ACCOUNT: "Not for us: the wrong account",
    RESUME: "The fault is fixed, look again",
    REMEDY: "How the customer gets the money",
}
REMEDIES: Final = ("new_operation", "voucher", "transfer", "cheque")
REASON_LENGTH_MIN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A refund that our own lookup, or a stored answer or list of the provider, shows on the payment.

    `ours`: known by our marker or its reference. `paid`: its status says that money moved;
    `negative`: that none did, for good. `by_lookup`: a lookup shows it; what an answer alone says
    can only stand against an absence, and so can what is `only_listed` where no lookup can be had.
    """

    ref: str
    amount_minor: int | None
    currency: str | None
    provider_status: str
    payment_same: bool
    ours: bool
    paid: bool
    anothers: bool
    by_lookup: bool = True
    negative: bool = False
    only_listed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """What a person read in the provider's own dashboard, where nothing else can be asked."""

    ref: str
    amount_minor: int
    currency: str
    provider_status: str
    created: str
    where_seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything a choice is judged by, as read under the locks. Amounts in minor units.

    `state` is "" for a case without an operation. `looks`: the account can be asked. `look_age`
    is that of the lookup that `seen` rests on, in seconds. `absent_because`: why absence is not
    proved, "" where it is; `quiet`: the time in which the refund could still show is over, or is
    known to nobody. `attachable`: operations that the notices of the case can belong to.
    `remedy_out`: a refund that may make good for this one and has not ended; `made_good_by`: those
    that have paid all of it.
    """

    reasons: tuple[str, ...]
    state: str = ""
    account: str = ""
    amount_minor: int = 0
    currency: str = ""
    tier1_max_minor: int | None = None
    looks: bool = False
    seen: tuple[Seen, ...] = ()
    look_age: float | None = None
    fresh_seconds: int = 900
    absent_because: str = ""
    quiet: bool = True
    statements: int = 0
    surplus_minor: int = 0
    attachable: tuple[str, ...] = ()
    remedy_out: str = ""
    made_good_by: str = ""

    @property
    def uncertain(self) -> bool:
        return self.state in (states.UNKNOWN, states.PENDING, states.SUBMITTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was chosen and filled in. `amount_minor` is what left the payment, in its currency."""

    choice: str
    ref: str = ""
    amount_minor: int | None = None
    testimony: Testimony | None = None
    ticket: str = ""
    kind: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One choice as the page draws it. `missing` names what it lacks; empty means it can be
    recorded. `refs` are the provider's refunds that it may name; `people` how many must sign.
    `by_statement`: it rests on a statement of the provider alone."""

    choice: str
    title: str
    missing: tuple[str, ...]
    refs: tuple[Seen, ...]
    people: int
    needs_testimony: bool = False
    by_statement: bool = False

    @property
    def open(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A choice that may be recorded. `amount_minor` is what counts on the payment, or None."""

    people: int
    seen: Seen | None = None
    amount_minor: int | None = None


class NotProved(Exception):
    """The choice lacks its proof, or a field: `missing` in words, `field` the first wrong one."""

    def __init__(self, missing: tuple[str, ...], field: str = "") -> None:
        super().__init__("; ".join(missing))
        self.missing = missing
        self.field = field


def choices(question: Question) -> tuple[str, ...]:
    """The choices of a case by its reasons and state, in the order of the page."""
    found: list[str] = []
    for reason in question.reasons:
        if reason == "remedy" and question.uncertain:
            continue  # it may have reached the customer after all
        if reason == "mismatch" and question.uncertain and not question.looks:
            found += FOUR  # there is no record to accept; a person tells what the provider shows
            continue
        table = _WHILE_UNCERTAIN if question.uncertain else _OTHERWISE
        found += table.get(reason) or _OTHERWISE.get(reason, ())
    return tuple(dict.fromkeys(found))


def left_open(reasons: tuple[str, ...], choice: str) -> tuple[str, ...]:
    """The reasons that a recorded choice does not answer; none left closes the case."""
    return tuple(each for each in reasons if each not in _ANSWERS[choice])
