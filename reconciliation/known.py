"""What a decision is made from, and what it can be. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from refunds.domain.outcome import RefundRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt as the decision sees it. `outcome` None is ambiguous.

    `kept`: what the provider was seen to keep under our key and to answer again: an `error` (5xx)
    or a `turned_away` (401, 403, 429); "" for neither.
    """

    no: int
    outcome: str | None
    recorded_at: datetime
    send_deadline: datetime
    stop_proof_at: datetime | None
    settled_by_evidence: bool
    kept: Literal["", "error", "turned_away"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One operation as the decision sees it.

    `sendable_until`: until when everything holds that a send needs besides the order's version;
    None where it does not hold now. `explained`: whether the order moved only as its approvals
    forgive. `adopted`: another system sent it, and no attempt of ours says when. `quarantined`:
    the database may have lost its tail, and attempts with it; `resumed_at`: when the last such time
    ended. `rested_on`: ids of the accepted facts
    that its events name. `by_ruling`: its end rests on people's word alone. `sighted`: a list of the
    account showed a refund of it, and no lookup has read one since. `answered`: people closed a case
    of contradiction that was opened at this end, so that it is not asked anew.
    """

    state: str
    entered_at: datetime
    unknown_since: datetime | None
    attempts: tuple[AttemptView, ...]
    has_case: bool
    inconclusive_at: tuple[datetime, ...]
    booked_ref: str | None
    halted: bool = False
    adopted: bool = False
    quarantined: bool = False
    explained: bool = True
    sendable_until: datetime | None = None
    rested_on: frozenset[int] = frozenset()
    booked_minor: int | None = None
    by_ruling: bool = False
    sighted: bool = False
    answered: bool = False
    resumed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """Move by `event`; `record` is the provider's refund it rests on, where there is one.

    `surplus`: further refunds of this operation that were paid too; they open a case. `covers`:
    the finding proves of every ambiguous attempt that it paid nothing. `accepted`: ids of the
    accepted facts that it rests on.
    """

    event: str
    because: str
    record: RefundRecord | None = None
    surplus: tuple[RefundRecord, ...] = ()
    covers: bool = False
    accepted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Resend:
    """Ring for one more send under the same key; the statement compares everything again."""

    because: str


@dataclass(frozen=True, slots=True)
class OpenCase:
    """Ask a person. `surplus`: refunds of this operation that were paid besides the booked one."""

    reason: str
    because: str
    surplus: tuple[RefundRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class LookUpAgain:
    """Ask again at `at`; `not_before` where an earlier answer could not prove what this one can."""

    at: datetime
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do and nothing to wait for: the record agrees with us."""


Decision = Settle | Resend | OpenCase | LookUpAgain | Rest
