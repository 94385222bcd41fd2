"""The queue of what nobody knows: what needs a person, and what is being checked by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from reconciliation import heartbeat
from reconciliation.models import Case
from refunds.domain.errors import Refusal
from refunds.models import Evidence, Operation, Payment
from refunds.queries import pages
from review import access, case_reads, clusters, facts, intent, polled, roles
from review.context import counts
from review.intent import Hidden, Pressed
from review.paging import PAGE_ROWS, cursor_instant, signature
from review.presenters import case as case_words
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
    held: str = ""
    notes: tuple[str, ...] = ()
    url: str = ""


# Every list of the page; "" shows what needs a person, and below it what is being checked.
_CASES: Final[dict[str, Callable[[access.Viewer], QuerySet[Case]]]] = {
    "person": lambda who: case_reads.needs_a_person(),
    "mine": lambda who: case_reads.open_cases().filter(
        owner=who.person, owned_until__gt=who.clock.now
    ),
    "second": lambda who: case_reads.wait_for_second(),
    "snoozed": lambda who: case_reads.snoozed(),
    "owed": lambda who: case_reads.owed(),
}
TABS: Final = ("", "person", "mine", "second", "auto", "snoozed", "owed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows under one heading; without a cluster there is none."""

    cluster: clusters.Cluster | None
    rows: list[Row]


@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """`tab` shows one list from `after`; without it what needs a person and what is being checked.
    `done` is a press of this reader; `since` is a poll."""
    access.require(request, roles.SEE)
    if "since" in request.GET:
        return _poll(request, _people(request), _auto(request))
    return _page(request, intent.pressed_before(request))


@require_POST
def together(request: HttpRequest) -> HttpResponse:
    """One act for a whole cluster. Posts `act` (claim, check, note, attach) and `case` once per
    case, as id and version; a note carries `note`, a statement `file`."""
    name = request.POST.get("act", "")
    act = clusters.ACTS.get(name, roles.NOTE)
    who = access.require(request, act, "cluster")

    def do(hidden: Hidden) -> dict[str, Any]:
        if name not in clusters.ACTS:
            raise Refusal(
                "form_incomplete",
                "Not recorded. The form did not say what to do.",
                what_to_do="Open the page again and use the form that it draws.",
            )
        return clusters.work(request, who.person, hidden, name)

    pressed = intent.press(request, form="together", object_ref="cluster", act=do)
    if pressed.row is not None and not pressed.repeated:
        url = reverse("unknown", query={"tab": "person", "done": pressed.row.pk})
        return HttpResponseRedirect(url, status=303)
    return _page(request, pressed)


def _tab(request: HttpRequest) -> str:
    tab = request.GET.get("tab", "")
    return tab if tab in TABS else ""


def _page(request: HttpRequest, pressed: Pressed | None) -> HttpResponse:
    who, tab = access.viewer(request), _tab(request)
    people, auto = _people(request), _auto(request)
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
        "groups": _groups(cases[:PAGE_ROWS], last, who, apart=tab in ("", "person")),
        "case_count": len(cases[:PAGE_ROWS]),
        "auto": [_row(each, last, who) for each in operations[:PAGE_ROWS]],
        "next_person": _case_cursor(cases),
        "next_auto": operations[PAGE_ROWS - 1].pk if len(operations) > PAGE_ROWS else "",
        "checker": rows.checker_line(ran_at, who.clock),
        "empty": rows.nothing_unknown(ran_at, who.clock, alive_seconds=CHECKER_ALIVE_SECONDS),
        "signature": _signature(cases[:PAGE_ROWS], operations[:PAGE_ROWS]),
        "works": who.may(roles.CLAIM),
        "notes": who.may(roles.NOTE),
        "pressed": pressed,
        "typed": request.POST,
    }
    status = pressed.status if pressed else 200
    return render(request, "review/unknown.html", context, status=status)


def _groups(
    cases: list[Case], last: dict[UUID, Evidence], who: access.Viewer, *, apart: bool
) -> list[Group]:
    """`apart`: cases that began together stand together, under what may be done for all."""
    found = clusters.grouped(cases) if apart else [(None, cases)]
    groups: list[Group] = []
    for cluster, listed in found:
        made = [_case_row(each, last, who) for each in listed]
        if cluster is None and groups and groups[-1].cluster is None:
            groups[-1].rows.extend(made)
        elif made:
            groups.append(Group(cluster=cluster, rows=made))
    return groups


def _people(request: HttpRequest) -> QuerySet[Case] | None:
    tab = _tab(request)
    if tab == "auto":
        return None
    found = _CASES[tab or "person"](access.viewer(request))
    at, _, last = request.GET.get("after", "").rpartition("~")
    if not last or not tab:
        return found
    try:
        return case_reads.cases_after(found, cursor_instant(at), int(last))
    except ValueError as error:
        raise Http404 from error


def _auto(request: HttpRequest) -> QuerySet[Operation] | None:
    tab = _tab(request)
    if tab not in ("", "auto"):
        return None
    found = case_reads.automatic()
    after = request.GET.get("after", "")
    if not after or not tab:
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
        [
            (f"case {each.pk}", each.version + (each.operation.version if each.operation else 0))
            for each in cases
        ]
        + [(each.pk, each.version) for each in operations]
    )


def _poll(
    request: HttpRequest, people: QuerySet[Case] | None, auto: QuerySet[Operation] | None
) -> HttpResponse:
    now: list[tuple[object, int]] = []
    if people is not None:
        found = people.values_list("pk", "version", "operation__version")[:PAGE_ROWS]
        now += [(f"case {pk}", own + (version or 0)) for pk, own, version in found]
    if auto is not None:
        now += auto.values_list("pk", "version")[:PAGE_ROWS]
    tab = _tab(request)
    return polled.answer(request, now, url=f"{request.path}?tab={tab}" if tab else "")


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
            held=case_words.held_words(plain, who.clock),
            notes=tuple(case_words.flags(plain, who.clock)),
            url=reverse("case", args=[case.pk]),
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
        held=case_words.held_words(plain, who.clock),
        notes=tuple(case_words.flags(plain, who.clock)),
        url=f"{reverse('operation', args=[case.operation.pk])}#case",
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
