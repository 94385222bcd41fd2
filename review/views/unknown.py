"""The queue of what nobody knows: what needs a person, and what is being checked by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from reconciliation import heartbeat
from reconciliation.models import Case
from refunds.models import Evidence, Operation, Payment
from refunds.queries import pages
from review import access, case_reads, facts, roles
from review.context import counts
from review.paging import PAGE_ROWS, changed_since, cursor_instant, signature
from review.presenters import rows
from review.presenters.facts import CaseFacts

# The sweep runs every second; after so long without it the queue is no all clear.
CHECKER_ALIVE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line; a case about a payment that no operation explains has no `op`, and one about
    payments that are not known here has no `payment` either."""

    op: Operation | None
    payment: Payment | None
    account: str
    case: CaseFacts | None
    bar: rows.Bar
    knows: str
    last_look: str
    next_look: str
    id: str


@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """`tab` person or auto shows one list from `after`; without it both lists begin."""
    who = access.require(request, roles.SEE)
    tab = request.GET.get("tab", "")
    people = _people(request) if tab in ("", "person") else None
    auto = _auto(request) if tab in ("", "auto") else None
    if "since" in request.GET:
        return _poll(request, people, auto)
    cases = list(people[: PAGE_ROWS + 1]) if people is not None else []
    operations = list(auto[: PAGE_ROWS + 1]) if auto is not None else []
    ids = [each.pk for each in operations] + [
        each.operation_id for each in cases if each.operation_id
    ]
    last = pages.last_evidence(ids)
    ran_at = heartbeat.last_beat()
    context: dict[str, Any] = {
        "clock": who.clock,
        "tab": tab,
        "counts": counts(request),
        "people": [_case_row(each, last, who) for each in cases[:PAGE_ROWS]],
        "auto": [_row(each, last, who) for each in operations[:PAGE_ROWS]],
        "next_person": _case_cursor(cases),
        "next_auto": operations[PAGE_ROWS - 1].pk if len(operations) > PAGE_ROWS else "",
        "checker": rows.checker_line(ran_at, who.clock),
        "empty": rows.nothing_unknown(ran_at, who.clock, alive_seconds=CHECKER_ALIVE_SECONDS),
        "signature": _signature(cases[:PAGE_ROWS], operations[:PAGE_ROWS]),
    }
    return render(request, "review/unknown.html", context)


def _people(request: HttpRequest) -> QuerySet[Case]:
    found = case_reads.open_cases()
    at, _, last = request.GET.get("after", "").rpartition("~")
    if not last or request.GET.get("tab") != "person":
        return found
    try:
        return case_reads.cases_after(found, cursor_instant(at), int(last))
    except ValueError as error:
        raise Http404 from error


def _auto(request: HttpRequest) -> QuerySet[Operation]:
    found = case_reads.automatic()
    after = request.GET.get("after", "")
    if not after or request.GET.get("tab") != "auto":
        return found
    try:
        return found.filter(pk__gt=UUID(after))
    except ValueError as error:
        raise Http404 from error


def _case_cursor(cases: list[Case]) -> str:
    if len(cases) <= PAGE_ROWS:
        return ""
    last = cases[PAGE_ROWS - 1]
    return f"{last.due_at.isoformat()}~{last.pk}"


def _signature(cases: list[Case], operations: list[Operation]) -> str:
    return signature(
        [(f"case {each.pk}", each.operation.version if each.operation else 0) for each in cases]
        + [(each.pk, each.version) for each in operations]
    )


def _poll(
    request: HttpRequest, people: QuerySet[Case] | None, auto: QuerySet[Operation] | None
) -> HttpResponse:
    now: list[tuple[object, int]] = []
    if people is not None:
        found = people.values_list("pk", "operation__version")[:PAGE_ROWS]
        now += [(f"case {pk}", version or 0) for pk, version in found]
    if auto is not None:
        now += auto.values_list("pk", "version")[:PAGE_ROWS]
    changed = changed_since(request.GET["since"], now)
    if not changed:
        return HttpResponse(status=204)
    tab = request.GET.get("tab", "")
    url = f"{request.path}?tab={tab}" if tab in ("person", "auto") else request.path
    return render(request, "review/parts.html#changed", {"count": changed, "url": url})


def _case_row(case: Case, last: dict[UUID, Evidence], who: access.Viewer) -> Row:
    plain = facts.case(case)
    if case.operation is None:
        return Row(
            op=None,
            payment=case.payment,
            account=case.account,
            case=plain,
            bar=rows.case_bar(plain, None, who.clock),
            knows=plain.because,
            last_look="",
            next_look="",
            id=f"case-{case.pk}",
        )
    row = _row(case.operation, last, who)
    bar = rows.case_bar(plain, facts.operation(case.operation), who.clock)
    return Row(
        op=row.op,
        payment=row.payment,
        account=row.account,
        case=plain,
        bar=bar,
        knows=plain.because,
        last_look=row.last_look,
        next_look=row.next_look,
        id=row.id,
    )


def _row(op: Operation, last: dict[UUID, Evidence], who: access.Viewer) -> Row:
    plain = facts.operation(op)
    found = last.get(op.pk)
    seen = facts.evidence(found) if found else None
    last_look, next_look = rows.looked(plain, seen, who.clock)
    return Row(
        op=op,
        payment=op.payment,
        account=op.provider_account,
        case=None,
        bar=rows.target_bar(plain, who.clock),
        knows=rows.what_we_know(plain, seen, who.clock),
        last_look=last_look,
        next_look=next_look,
        id=str(op.pk),
    )
