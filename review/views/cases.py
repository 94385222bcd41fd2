"""Working on one case: its page, and every form of its panel that signs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from reconciliation import case_work, statements
from reconciliation.models import Case, CaseStatement
from refunds.domain.errors import Refusal
from refunds.models import Person
from refunds.queries import pages
from review import access, case_panel, case_reads, drafts, facts, intent, roles
from review.intent import Hidden, Pressed
from review.paging import whole
from review.presenters import rows
from review.presenters.steps import steps
from review.presenters.timeline import timed
from review.roles import Act
from review.views import operation as operation_page

_HOUR = 3_600


def find(request: HttpRequest, case_id: int, act: Act) -> Case:
    """A case for a page or an act; Http404 unless it exists and may be seen."""
    who = access.viewer(request)
    found = case_reads.one(case_id) if who.may(roles.SEE) else None
    if found is None:
        raise Http404
    access.require(request, act, f"C-{case_id}")
    return found


@require_GET
def case(request: HttpRequest, case_id: int) -> HttpResponse:
    """The page of a case that is about no operation; one about an operation is on its page."""
    found = find(request, case_id, roles.SEE)
    if found.operation_id is not None:
        url = reverse("operation", args=[found.operation_id])
        query = request.GET.urlencode()
        return HttpResponseRedirect(f"{url}{'?' + query if query else ''}#case")
    return _page(request, found, intent.pressed_before(request))


def answer(request: HttpRequest, case_id: int, pressed: Pressed) -> HttpResponse:
    """Where a press of a case's form leads: the page it stood on, with what became of it."""
    found = case_reads.one(case_id)
    assert found is not None, "a case is never deleted"
    if pressed.refusal is not None:
        _keep_text(request)
    if pressed.row is not None and not pressed.repeated:
        query = urlencode({"done": pressed.row.pk})
        return HttpResponseRedirect(f"{address(found)}?{query}#result", status=303)
    if found.operation_id is None:
        return _page(request, found, pressed)
    about = pages.operation(found.operation_id)
    assert about is not None, "an operation is never deleted"
    return operation_page.page(request, about, pressed)


def _keep_text(request: HttpRequest) -> None:
    """A refused press leaves its text as a draft: the form may not stand on the page any more."""
    try:
        drafts.save(request.POST.dict(), access.viewer(request).person.pk)
    except Refusal:
        return  # it is the text itself that may not be stored; the page still shows it


def address(found: Case) -> str:
    if found.operation_id is not None:
        return reverse("operation", args=[found.operation_id])
    return reverse("case", args=[found.pk])


def _page(request: HttpRequest, found: Case, pressed: Pressed | None) -> HttpResponse:
    who = access.viewer(request)
    plain = facts.case(found)
    panel = case_panel.panel(found, who) if found.closed_at is None else None
    done = [facts.step(each) for each in case_reads.steps_of([found])]
    entries = timed(steps(done), who.clock)
    context = {
        "clock": who.clock,
        "case": found,
        "plain": plain,
        "bar": rows.case_bar(plain, None, who.clock),
        "payment": found.payment,
        "refunds": case_reads.refunds_of(found),
        "timeline": {"entries": entries},
        "entries": entries,
        "pressed": pressed,
        **case_panel.context(request, panel),
    }
    status = pressed.status if pressed else 200
    return render(request, "review/case.html", context, status=status)


def _press(
    request: HttpRequest,
    case_id: int,
    act: Act,
    form: str,
    does: Callable[[Person, Hidden], object],
) -> HttpResponse:
    find(request, case_id, act)
    person = access.viewer(request).person

    def do(hidden: Hidden) -> dict[str, Any]:
        does(person, hidden)
        return {"act": form}

    pressed = intent.press(request, form=form, object_ref=str(case_id), act=do)
    return answer(request, case_id, pressed)


@require_POST
def claim(request: HttpRequest, case_id: int) -> HttpResponse:
    """Take a case that nobody holds. Posts intent, obj_version, shown_digest like every form."""
    return _press(
        request,
        case_id,
        roles.CLAIM,
        "case_claim",
        lambda person, hidden: case_work.claim(case_id, person, intent=hidden.intent),
    )


@require_POST
def release(request: HttpRequest, case_id: int) -> HttpResponse:
    """Give it back."""
    return _press(
        request,
        case_id,
        roles.CLAIM,
        "case_release",
        lambda person, hidden: case_work.release(case_id, person, intent=hidden.intent),
    )


@require_POST
def take_over(request: HttpRequest, case_id: int) -> HttpResponse:
    """Take it from somebody. Posts `reason`, 10 characters or more."""
    return _press(
        request,
        case_id,
        roles.CLAIM,
        "case_take_over",
        lambda person, hidden: case_work.take_over(
            case_id,
            person,
            reason=request.POST.get("reason", ""),
            version=hidden.obj_version,
            intent=hidden.intent,
        ),
    )


@require_POST
def note(request: HttpRequest, case_id: int) -> HttpResponse:
    """A line in its history. Posts `note`, at most 500 characters."""
    return _press(
        request,
        case_id,
        roles.NOTE,
        "case_note",
        lambda person, hidden: case_work.note(
            case_id, person, text=request.POST.get("note", ""), intent=hidden.intent
        ),
    )


@require_POST
def check(request: HttpRequest, case_id: int) -> HttpResponse:
    """Ask the provider now: reading only, once per 10 s."""
    return _press(
        request,
        case_id,
        roles.CHECK_NOW,
        "case_check",
        lambda person, hidden: case_work.check_now(case_id, person, intent=hidden.intent),
    )


@require_POST
def snooze(request: HttpRequest, case_id: int) -> HttpResponse:
    """Let it rest. Posts `hours` (1 to 24) and `reason`."""
    return _press(
        request,
        case_id,
        roles.SNOOZE,
        "case_snooze",
        lambda person, hidden: case_work.snooze(
            case_id,
            person,
            seconds=(whole(request.POST.get("hours")) or 0) * _HOUR,
            reason=request.POST.get("reason", ""),
            version=hidden.obj_version,
            intent=hidden.intent,
        ),
    )


@require_POST
def assign(request: HttpRequest, case_id: int) -> HttpResponse:
    """Give it to somebody. Posts `to`, a name."""
    found = Person.objects.filter(username=request.POST.get("to", "")[:150]).first()
    return _press(
        request,
        case_id,
        roles.ASSIGN,
        "case_assign",
        lambda person, hidden: case_work.assign(
            case_id,
            person,
            found or Person(username="Nobody", is_active=False),
            version=hidden.obj_version,
            intent=hidden.intent,
        ),
    )


@require_POST
def escalate(request: HttpRequest, case_id: int) -> HttpResponse:
    """Hand it on. Posts `to` (ops_lead, provider, on_call) and `reason`."""
    return _press(
        request,
        case_id,
        roles.ESCALATE,
        "case_escalate",
        lambda person, hidden: case_work.escalate(
            case_id,
            person,
            to=request.POST.get("to", ""),
            reason=request.POST.get("reason", ""),
            version=hidden.obj_version,
            intent=hidden.intent,
        ),
    )


@require_POST
def attach(request: HttpRequest, case_id: int) -> HttpResponse:
    """Put a provider's statement beside it. Posts `file`: PDF, PNG or EML, 5 MB at most."""
    upload = request.FILES.get("file")

    def does(person: Person, hidden: Hidden) -> None:
        # A byte more than is allowed is enough to know that it is too long.
        content = upload.read(statements.STATEMENT_BYTES_MAX + 1) if upload else b""
        statement = statements.stored(content)
        found = case_work.open_for_work(case_id)
        name = upload.name if upload and upload.name else ""
        statements.attach(found, statement, name=name, by=person, intent=hidden.intent)

    return _press(request, case_id, roles.ATTACH, "case_attach", does)


@require_GET
def statement(request: HttpRequest, case_id: int, statement_id: int) -> HttpResponse:
    """The file itself, to be saved and never shown in the page."""
    find(request, case_id, roles.SEE)
    found = (
        CaseStatement.objects.select_related("statement")
        .filter(pk=statement_id, case=case_id)
        .first()
    )
    if found is None:
        raise Http404
    media_type = found.statement.media_type
    name = f"C-{case_id}-statement-{found.pk}.{statements.EXTENSIONS[media_type]}"
    return HttpResponse(
        bytes(found.statement.content),
        content_type=media_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        },
    )
