"""Sessions that end, headers that Django has no setting for, and a page for a lost database."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth import logout
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from review import access, drafts, proof
from review.access import Forbidden
from review.roles import DECIDERS
from review.step_up import StepUpNeeded
from review.views import confirm, errors

IDLE_SECONDS = 1_800
ABSOLUTE_SECONDS = 43_200
# Seen is remembered to the minute, so that reading a page does not cost a write each time.
_SEEN_GRAIN_SECONDS = 60
# Doors of machines: they carry no session and answer in their own form.
_MACHINES = ("/api/", "/webhooks/", "/mcp")
# What somebody who decides may open before a second factor is there.
_WITHOUT_SECOND_FACTOR = (
    "second_factor",
    "second_factor_app",
    "second_factor_passkey",
    "confirm",
    "sign_in",
    "sign_out",
    "still_here",
)
_HEADERS = {
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ConsoleHeaders:
    """Every page of the console passes here; the doors of machines do not."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_MACHINES):
            return self.get_response(request)
        try:
            _end_old_session(request)
            response = self.get_response(request)
        except (OperationalError, InterfaceError):
            response = errors.unreadable(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Everything needs a signed-in person, except what says that it does not."""
        if request.path.startswith(_MACHINES) or not getattr(view, "login_required", True):
            return None
        return None if request.user.is_authenticated else _sign_in_first(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if request.path.startswith(_MACHINES):
            return None
        if isinstance(error, OperationalError | InterfaceError):
            return errors.unreadable(request)
        if isinstance(error, Forbidden):
            return errors.forbidden(request, str(error))
        if isinstance(error, StepUpNeeded):
            return confirm.needed(request, error)
        return None


class SameSitePosts:
    """Changes are taken from our own pages only: the browser says where a request began.

    Django's token stands behind this; it also compares the Origin header.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = request.headers.get("Sec-Fetch-Site", "same-origin")
        safe = request.method in ("GET", "HEAD", "OPTIONS")
        if not safe and began != "same-origin" and not request.path.startswith(_MACHINES):
            return errors.elsewhere(request)
        return self.get_response(request)


class TokenOnce:
    """The token's cookie is sent when it is new, not again with every form that is drawn.

    Django renews it each time. An answer that was on its way while somebody signed in would bring
    the old one back, and their next press would be refused.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        name = settings.CSRF_COOKIE_NAME
        sent = response.cookies.get(name)
        if sent is not None and sent.value == request.COOKIES.get(name):
            del response.cookies[name]
        return response


class SecondFactorFirst:
    """Who decides and has no second factor yet may set one up, and sign out; nothing else."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if not settings.SECOND_FACTOR or request.path.startswith(_MACHINES):
            return None
        here = request.resolver_match.url_name if request.resolver_match else ""
        if not request.user.is_authenticated or here in _WITHOUT_SECOND_FACTOR:
            return None
        who = access.viewer(request)
        if who.roles.isdisjoint(DECIDERS) or proof.enrolled(who.person):
            return None
        to = resolve_url("second_factor")
        if request.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": to})
        return HttpResponseRedirect(to)


def _end_old_session(request: HttpRequest) -> None:
    """End what was idle for 30 minutes or is 12 hours old; a poll is no sign of a person."""
    if not request.user.is_authenticated:
        return
    now, session = int(time.time()), request.session
    signed_in_at = session.setdefault("signed_in_at", now)
    seen_at = session.get("seen_at", now)
    if now - seen_at > IDLE_SECONDS or now - signed_in_at > ABSOLUTE_SECONDS:
        logout(request)
        request.session_ended = True  # type: ignore[attr-defined]
        return
    a_person = "since" not in request.GET and now - seen_at > _SEEN_GRAIN_SECONDS
    if a_person or "seen_at" not in session:
        session["seen_at"] = now


def _sign_in_first(request: HttpRequest) -> HttpResponse:
    """A form that comes after its session has ended is not executed; its text is kept."""
    ended = getattr(request, "session_ended", False)
    kept = request.method == "POST" and drafts.keep_unsent(request.POST.dict())
    if request.headers.get("HX-Request"):
        context = {"minutes": IDLE_SECONDS // 60, "wanted": _wanted(request)}
        response = render(request, "review/sign_in.html#ended", context, status=401)
        response["HX-Retarget"], response["HX-Reswap"] = "#slot", "innerHTML"
        return response
    query = {"next": _wanted(request)} | ({"ended": "1"} if ended or kept else {})
    query |= {"kept": "1"} if kept else {}
    return HttpResponseRedirect(f"{resolve_url(settings.LOGIN_URL)}?{urlencode(query)}")


def _wanted(request: HttpRequest) -> str:
    """Where to go after signing in: the page itself, or for a form the page it stood on."""
    if request.method == "GET" and not request.headers.get("HX-Request"):
        return request.get_full_path()
    came_from = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(came_from, {request.get_host()}):
        return "/"
    parts = urlsplit(came_from)
    return parts.path + (f"?{parts.query}" if parts.query else "")
