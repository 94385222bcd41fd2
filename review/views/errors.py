"""Pages for what went wrong, in our words: what was recorded, who can help, and the request's id.

None of them invites to press again. A page for a lost database asks the database nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from review import drafts, request_id
from review.models import Intent

_NOTHING = "Nothing was recorded."
_HELP = "An admin of this console can find out more; give them the request id below."


@dataclass(frozen=True, slots=True)
class Press:
    """A press whose answer got lost on our side. `at` is when it was recorded, None for not;
    `known` is False where we could not even look."""

    intent: UUID
    known: bool = False
    at: datetime | None = None


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form's token did not match: nothing was done. A typed text is kept for its writer."""
    kept = drafts.keep_unsent(request.POST.dict())
    return _page(
        request,
        status=403,
        title="The form could not be verified",
        says=f"{_NOTHING} The form was drawn before you signed in, or in another window."
        + (" What you typed is kept as a draft." if kept else ""),
        do="Go back and reload the page. It shows what stands now, and takes your decision on it.",
    )


def forbidden(request: HttpRequest, says: str) -> HttpResponse:
    """A forbidden act or page, within the console; the sentence names who can."""
    context = {"says": says, "do": _recorded(request), "request_id": request_id.of(request)}
    return render(request, "review/forbidden.html", context, status=403)


def whom_to_ask(request: HttpRequest, name: str) -> HttpResponse:
    """Somebody who proved who they are, and whom nobody gave a role."""
    return _page(
        request,
        status=403,
        title="You have no role here",
        says=f"You are known as {name}, and no role was given to you. You were not signed in.",
        do="Ask whoever looks after your groups at the sign-in provider, or an admin of this console.",
    )


def elsewhere(request: HttpRequest) -> HttpResponse:
    """A form that was posted from a page of another site."""
    return _page(
        request,
        status=403,
        title="This did not come from our own page",
        says=f"{_NOTHING} The form was sent from another site.",
        do="Open the console itself and press there.",
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(
        request,
        status=404,
        title="There is no such page",
        says="It never existed, or it is not yours to see. Nothing in the console is ever deleted.",
        do=f"{_recorded(request)} Check the address, or start from your work.".strip(),
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """What broke was rolled back or was after the fact: the press itself is looked up."""
    press = _looked_up(request)
    says = "The page could not be drawn. It says nothing about any refund."
    if press is not None and press.known:
        says = (
            f"Your action was recorded at {press.at.astimezone(UTC):%H:%M:%S} UTC; only the answer"
            " could not be drawn. A second press changes nothing."
            if press.at
            else f"{_NOTHING} We looked this exact press up, and there is no row of it."
        )
    return _page(
        request,
        status=500,
        title="Something broke on our side",
        says=says,
        do=_HELP,
        press=press if press and not press.known else None,
    )


def unreadable(request: HttpRequest) -> HttpResponse:
    """The database is away or too busy: promise nothing."""
    intent = _intent(request)
    response = _page(
        request,
        status=503,
        title="We cannot read the state now",
        says="We cannot say whether any refund happened. Do not promise anything, and do not send"
        " a refund by hand.",
        do=f"Reload in a minute. What was recorded is kept. {_HELP}",
        press=Press(intent) if intent else None,
    )
    response["Retry-After"] = "10"
    return response


def _page(
    request: HttpRequest,
    *,
    status: int,
    title: str,
    says: str,
    do: str = "",
    press: Press | None = None,
) -> HttpResponse:
    """`press` is one whose outcome the page cannot tell, with the link that looks it up."""
    body = render_to_string(
        "review/plain.html",
        {
            "status": status,
            "title": title,
            "says": says,
            "do": do,
            "press": press.intent if press else None,
            "request_id": request_id.of(request),
        },
    )
    return HttpResponse(body, status=status)


def _recorded(request: HttpRequest) -> str:
    """A refused or unknown address is answered before anything is done."""
    return _NOTHING if request.method == "POST" else ""


def _looked_up(request: HttpRequest) -> Press | None:
    intent = _intent(request)
    if intent is None:
        return None
    try:
        at = Intent.objects.filter(pk=intent).values_list("at", flat=True).first()
    except DatabaseError:
        return Press(intent)
    return Press(intent, known=True, at=at)


def _intent(request: HttpRequest) -> UUID | None:
    if request.method != "POST":
        return None
    try:
        return UUID(request.POST.get("intent", ""))
    except ValueError:
        return None
