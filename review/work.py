"""My work: which lists a reader has, in which order. One list that fails spoils no other."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import DatabaseError
from django.urls import reverse

from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.roles import MANAGER
from refunds.queries import around, queue
from review import case_reads, roles, work_lines
from review.access import Viewer
from review.presenters.words import actor_word
from review.work_lines import BLOCK_ROWS, OWN_DAYS, Line

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A list before it is read: who has it, and what reads it (one line more than is shown).

    `page` and `query` are where all of it is; `by_words` heads the column of names.
    """

    name: str
    title: str
    about: str = ""
    page: str
    query: str = ""
    all_words: str
    by_words: str = "By"
    wanted: Callable[[Viewer], bool]
    read: Callable[[Viewer], list[Line]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One list with its lines; `failed` where it could not be read."""

    plan: Plan
    lines: list[Line] = field(default_factory=list)
    more: bool = False
    failed: bool = False

    @property
    def url(self) -> str:
        return reverse(self.plan.page) + self.plan.query

    @property
    def count(self) -> str:
        """ "4", or "7+" where more wait than are shown."""
        return f"{len(self.lines)}+" if self.more else str(len(self.lines))


def blocks(who: Viewer) -> list[Block]:
    """The lists of this reader, in the order of the page; each reads for itself."""
    return [_read(plan, who) for plan in PLANS if plan.wanted(who)]


def _read(plan: Plan, who: Viewer) -> Block:
    try:
        lines = plan.read(who)
    except DatabaseError:
        logger.exception("the list %s of the first page could not be read", plan.name)
        return Block(plan=plan, failed=True)
    return Block(plan=plan, lines=lines[:BLOCK_ROWS], more=len(lines) > BLOCK_ROWS)


def _approves(who: Viewer) -> bool:
    return who.may(roles.APPROVE)


def _works_cases(who: Viewer) -> bool:
    return who.may(roles.CLAIM)


def _gets_returns(who: Viewer) -> bool:
    return _approves(who) or (who.may(roles.PROPOSE) and who.may(roles.SEE))


def _only_asks(who: Viewer) -> bool:
    return who.may(roles.PROPOSE) and not who.may(roles.SEE)


def _oversees(who: Viewer) -> bool:
    return MANAGER in who.roles


_CASES = "?tab=person"

PLANS: Final = (
    Plan(
        name="mine",
        title="Waiting for my approval",
        page="approvals",
        all_words="All that wait",
        wanted=_approves,
        read=work_lines.to_approve,
    ),
    Plan(
        name="held",
        title="Cases I hold",
        page="unknown",
        query=_CASES,
        all_words="All cases",
        by_words="Owner",
        wanted=_works_cases,
        read=lambda who: work_lines.cases(who, case_reads.open_cases().filter(owner=who.person)),
    ),
    Plan(
        name="cases",
        title="Needs a person",
        about="Open cases that others hold or nobody does",
        page="unknown",
        query=_CASES,
        all_words="All cases",
        by_words="Owner",
        wanted=_works_cases,
        read=lambda who: work_lines.cases(who, case_reads.open_cases().exclude(owner=who.person)),
    ),
    Plan(
        name="back",
        title="Returned to me",
        about="Approved by me and stale now, or asked for by me and refused; the newest first",
        page="approvals",
        query="?tab=stale",
        all_words="All stale",
        wanted=_gets_returns,
        read=work_lines.returned,
    ),
    Plan(
        name="oldest",
        title="Oldest unresolved",
        about="By how long nobody knows the outcome",
        page="unknown",
        all_words="All that is unknown",
        wanted=_oversees,
        read=work_lines.oldest,
    ),
    Plan(
        name="twice",
        title="Paid twice",
        about="Open cases",
        page="unknown",
        query=_CASES,
        all_words="All cases",
        by_words="Owner",
        wanted=_oversees,
        read=lambda who: work_lines.cases(
            who, case_reads.open_cases().filter(reasons__contains=["duplicate"])
        ),
    ),
    Plan(
        name="asked",
        title="What I asked for",
        about=f"The last {OWN_DAYS} days, the newest first",
        page="status",
        all_words="Status of an order",
        wanted=_only_asks,
        read=work_lines.asked,
    ),
)


_OPERATION: Final = re.compile("[0-9a-f]{32}")
_CASE: Final = re.compile("case-([0-9]{1,18})")

# What became of a line that is on somebody's screen


def handled(places: Sequence[str], who: Viewer) -> dict[str, str]:
    """Per line that moved ("mine-<key>"): who handled it and when. What is nobody's is left out."""
    keys = {place: place.partition("-")[2] for place in places}
    words = _handled_cases(
        [int(found[1]) for key in keys.values() if (found := _CASE.fullmatch(key))], who
    )
    words |= _handled_operations([key for key in keys.values() if _OPERATION.fullmatch(key)], who)
    return {place: words[key] for place, key in keys.items() if key in words}


def _handled_operations(keys: Sequence[str], who: Viewer) -> dict[str, str]:
    ids = [UUID(key) for key in keys]
    if not ids:
        return {}
    words, given = {}, around.approvals_of(ids)
    for pk, event in queue.last_events(ids).items():
        newest = given[pk][-1] if given[pk] else None
        by, at = actor_word(event.actor), event.at
        if newest is not None and event.actor_kind not in (states.APPROVER, states.CALLER):
            by, at = newest.approver.username, newest.at
        words[pk.hex] = f"Handled by {by} at {who.clock.minutes(at)}"
    return words


def _handled_cases(ids: Sequence[int], who: Viewer) -> dict[str, str]:
    words = {}
    for case in Case.objects.select_related("owner").filter(pk__in=ids) if ids else ():
        if case.closed_at is not None:
            said = f"Closed at {who.clock.minutes(case.closed_at)}: {case.closed_because}"
        else:
            said = f"{case.owner.username if case.owner else 'Nobody'} has it now"
        words[f"case-{case.pk}"] = said
    return words
