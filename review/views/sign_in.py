"""Signing in and out: the same words for an unknown name and a wrong password."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

FAILURES_PER_NAME = 5
FAILURES_PER_ADDRESS = 20
WINDOW_SECONDS = 900


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "That name and password do not fit together. Nothing was signed in.",
        "inactive": "That name and password do not fit together. Nothing was signed in.",
    }


class SignIn(LoginView):
    """The sign-in page; in place of an ended session it answers with a fragment."""

    template_name = "review/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        wait = _wait_seconds(request)
        if wait:
            form = self.get_form()
            context = self.get_context_data(form=form) | {"minutes_to_wait": -(-wait // 60)}
            response = self._answer(context, status=429)
            response["Retry-After"] = str(wait)
            return response
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        if not self.request.headers.get("HX-Request"):
            return super().form_valid(form)
        login(self.request, form.get_user())
        return render(self.request, "review/sign_in.html#back", {"reader": form.get_user()})

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        _count_failure(self.request)
        return self._answer(self.get_context_data(form=form), status=422)

    def _answer(self, context: dict[str, Any], *, status: int) -> HttpResponse:
        part = "#ended" if self.request.headers.get("HX-Request") else ""
        return render(self.request, f"review/sign_in.html{part}", context, status=status)


class SignOut(LogoutView):
    """Sign out by POST; what the browser kept of the console goes too."""

    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().post(request, *args, **kwargs)
        response["Clear-Site-Data"] = '"cache", "storage"'
        return response


@require_GET
def still_here(request: HttpRequest) -> HttpResponse:
    """A person pressed "stay signed in": the session counts from now again."""
    request.session["seen_at"] = int(time.time())
    return HttpResponse(status=204)


def _keys(request: HttpRequest) -> list[tuple[str, int]]:
    name = request.POST.get("username", "")[:150].casefold()
    address = request.META.get("REMOTE_ADDR", "")
    return [
        (f"sign-in:name:{name.encode().hex()[:180]}", FAILURES_PER_NAME),
        (f"sign-in:address:{address}", FAILURES_PER_ADDRESS),
    ]


def _count_failure(request: HttpRequest) -> None:
    for key, _ in _keys(request):
        cache.add(f"{key}:until", int(time.time()) + WINDOW_SECONDS, WINDOW_SECONDS)
        cache.add(key, 0, WINDOW_SECONDS)
        cache.incr(key)


def _wait_seconds(request: HttpRequest) -> int:
    """Seconds until another try, 0 when one is free."""
    now = int(time.time())
    waits = [
        max(cache.get(f"{key}:until", now) - now, 1)
        for key, allowed in _keys(request)
        if cache.get(key, 0) >= allowed
    ]
    return max(waits, default=0)
