"""Pages for what went wrong, in our words; none of them asks the database anything."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form's token did not match: nothing was done."""
    return _page(
        request,
        status=403,
        title="The form could not be verified",
        says="Nothing was recorded. The form was drawn before you signed in, or in another window.",
        do="Go back, reload the page, and press again if it still holds.",
    )


def forbidden(request: HttpRequest, says: str) -> HttpResponse:
    """A visible page and a forbidden act; the sentence names who can."""
    return _page(request, status=403, title="Not for your role", says=says)


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
        says="Nothing was recorded. The form was sent from another site.",
        do="Open the console itself and press there.",
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(
        request,
        status=404,
        title="There is no such page",
        says="It never existed, or it is not yours to see. Nothing in the console is ever deleted.",
        do="Check the address, or start from your work.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    return _page(
        request,
        status=500,
        title="Something broke on our side",
        says="The page could not be drawn. It says nothing about any refund.",
    )


def unreadable(request: HttpRequest) -> HttpResponse:
    """The database is away or too busy: promise nothing."""
    response = _page(
        request,
        status=503,
        title="We cannot read the state now",
        says="We cannot say whether any refund happened. Do not promise anything, and do not send"
        " a refund by hand.",
        do="Reload in a minute. What was recorded is kept.",
    )
    response["Retry-After"] = "10"
    return response


def _page(
    request: HttpRequest, *, status: int, title: str, says: str, do: str = ""
) -> HttpResponse:
    """`press` is the intent of a form whose outcome we do not know (a 5xx after a POST)."""
    press = _intent(request) if status >= 500 else None
    body = render_to_string(
        "review/plain.html",
        {"status": status, "title": title, "says": says, "do": do, "press": press},
    )
    return HttpResponse(body, status=status)


def _intent(request: HttpRequest) -> UUID | None:
    if request.method != "POST":
        return None
    try:
        return UUID(request.POST.get("intent", ""))
    except ValueError:
        return None
