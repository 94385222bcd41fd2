"""The approvals list: its tabs, its pages, and what a poll of it says. The address is its state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.rejection import REJECTION_CODES
from refunds.domain.roles import LEAD
from refunds.ledger import dead_of_waiting
from refunds.models import Operation
from refunds.queries import pages, queue
from review import access, drafts, proposal, queue_rows
from review.access import Viewer
from review.context import counts
from review.intent import Pressed
from review.paging import PAGE_ROWS, cursor_instant, whole
from review.presenters.waiting import cause_title
from review.shown import shown_text

TABS = ("to_approve", "stale", "second", "mine", "all")
TICKED_MAX = 20
# "Decided by me" looks back this far, by the age of the refund; the audit trail has the rest.
DECIDED_DAYS = 30
_COUNT_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows under one heading; a list that is not grouped has one without."""

    title: str
    rows: list[queue_rows.Row]


def tab_of(request: HttpRequest) -> str:
    tab = request.GET.get("tab", TABS[0])
    return tab if tab in TABS else TABS[0]


def is_archive(request: HttpRequest) -> bool:
    """Whether the tab lists what ended, too."""
    return tab_of(request) in ("mine", "all")


def here(request: HttpRequest) -> str:
    """The query of the list that is shown, as links on it begin."""
    after = request.GET.get("after", "")
    return f"?tab={tab_of(request)}" + (f"&after={quote(after)}" if after else "")


def has_ticks(request: HttpRequest) -> bool:
    """Whether the tab has boxes for this reader: a lead, where something waits."""
    return LEAD in access.viewer(request).roles and tab_of(request) in ("to_approve", "second")


def decided_since(who: Viewer) -> datetime:
    return who.clock.now - timedelta(days=DECIDED_DAYS)


def listed(request: HttpRequest) -> QuerySet[Operation]:
    """The rows of the tab, from the cursor `after` on. Raises Http404 for a cursor not ours."""
    tab, after = tab_of(request), request.GET.get("after", "")
    if tab in ("mine", "all"):
        rows = queue.everything()
        if tab == "mine":
            who = access.viewer(request)
            rows = queue.decided_by(who.person, decided_since(who))
        return queue.before(rows, _id(after)) if after else rows
    if tab == "second":
        rows = queue.half_approved(dead_of_waiting())
    else:
        rows = queue.stale() if tab == "stale" else queue.waiting()
    if not after:
        return rows
    place, _, last = after.rpartition("~")
    if tab == "stale":
        cause, _, place = place.partition("~")
        if not cause.isprintable():
            raise Http404
        return queue.after_stale(rows, cause, cursor_instant(place), _id(last))
    return queue.after_due(rows, cursor_instant(place), _id(last))


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error


def _cursor(tab: str, last: Operation) -> str:
    if tab in ("mine", "all"):
        return str(last.pk)
    due = last.due_at.isoformat() if last.due_at else ""
    return f"{last.stale_cause}~{due}~{last.pk}" if tab == "stale" else f"{due}~{last.pk}"


def context(
    request: HttpRequest,
    slip: proposal.Slip | None,
    pressed: Pressed | None,
    *,
    refusal: Refusal | None = None,
    ticked: Collection[UUID] = (),
) -> dict[str, Any]:
    """Everything the page shows. `slip` is the opened proposal; `refusal` one of the ticked."""
    who, tab = access.viewer(request), tab_of(request)
    found = list(queue.in_lines(listed(request))[: PAGE_ROWS + 1])
    more = len(found) > PAGE_ROWS
    found = found[:PAGE_ROWS]
    shown = found
    if slip is not None and slip.op.pk not in {op.pk for op in found}:
        shown = [slip.op, *found]
    opened = slip.op.pk if slip else None
    rows = queue_rows.rows(shown, who, opened=opened, ticked=ticked, archive=is_archive(request))
    return {
        "clock": who.clock,
        "tab": tab,
        "here": here(request),
        "counts": counts(request),
        "tabs": queue.tab_counts(who.person, decided_since(who), dead_of_waiting(), _COUNT_MAX),
        "count_max": _COUNT_MAX,
        "decided_days": DECIDED_DAYS,
        "groups": _groups(tab, rows),
        "row_count": len(rows),
        **slip_context(request, slip),
        "pressed": pressed,
        "refusal": refusal,
        "ticks": has_ticks(request),
        "any_tick": any(row.tickable for row in rows),
        "ticked_max": TICKED_MAX,
        "next": _cursor(tab, found[-1]) if more else "",
        "shown": shown_text((op.pk, op.version) for op in found),
        "after": request.GET.get("after", ""),
    }


def slip_context(request: HttpRequest, slip: proposal.Slip | None) -> dict[str, Any]:
    """The opened proposal and what its forms hold: what was posted, or the reader's draft."""
    person = access.viewer(request).person
    draft = drafts.kept(request, person.pk, "reject", str(slip.op.pk)) if slip else None
    return {
        "slip": slip,
        "ended": states.ENDED,
        "kept": draft,
        "typed": request.POST or (draft.fields if draft else {}),
        "reject_codes": REJECTION_CODES.items(),
    }


def _groups(tab: str, rows: list[queue_rows.Row]) -> list[Group]:
    if tab != "stale":
        return [Group(title="", rows=rows)] if rows else []
    by_title: dict[str, list[queue_rows.Row]] = {}
    for row in rows:
        by_title.setdefault(cause_title(row.stale_cause), []).append(row)
    return [Group(title=title, rows=each) for title, each in by_title.items()]


def find_slip(request: HttpRequest, operation_id: UUID) -> proposal.Slip | None:
    """The opened proposal for this reader; a posted `order_version` is that of an older screen."""
    found = pages.operation(operation_id)
    if found is None:
        return None
    seen = whole(request.POST.get("order_version"))
    return proposal.slip(found, access.viewer(request), seen_version=seen or None)
