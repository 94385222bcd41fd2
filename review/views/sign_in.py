"""Signing in and out: the same words for an unknown name and a wrong password, and a second step
for whoever has a second factor; on a page of its own, or in place over the form that was open."""

from __future__ import annotations

import time
from typing import Any, cast

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.account.stages import LoginStageController
from allauth.mfa.stages import AuthenticateStage
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_http_methods

from refunds.models import Person
from review import attempts, proof


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
        attempt = attempts.begin(request, request.POST.get("username", ""))
        form = self.get_form()
        if attempt.wait_seconds:
            context = self.get_context_data(form=form)
            context["minutes_to_wait"] = attempt.minutes_to_wait
            response = self._answer(context, status=429)
            response["Retry-After"] = str(attempt.wait_seconds)
            return response
        if not form.is_valid():
            return self._answer(self.get_context_data(form=form), status=422)
        attempt.succeeded()
        login = Login(user=form.get_user(), redirect_url=self.get_success_url())
        response = perform_password_login(request, {"username": form.get_user().username}, login)
        return _in_place(request) if _is_fragment(request) else response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"oidc": settings.OIDC}

    def _answer(self, context: dict[str, Any], *, status: int) -> HttpResponse:
        part = "#ended" if _is_fragment(self.request) else ""
        context["wanted"] = self.get_redirect_url()
        return render(self.request, f"review/sign_in.html{part}", context, status=status)


@login_not_required
@require_http_methods(["GET", "POST"])
def second_step(request: HttpRequest) -> HttpResponse:
    """The second step of signing in. Posts `code` (of an app, or a recovery code) or `credential`.

    A second press after the first went through leads where the first one led.
    """
    if request.user.is_authenticated:
        return HttpResponseRedirect(_wanted(request))
    stage = LoginStageController.enter(request, AuthenticateStage.key)
    if stage is None:
        return _first_step_again(request)
    person = cast(Person, stage.login.user)
    refused = proof.read(request, person, again=False) if request.method == "POST" else None
    if request.method == "GET" or refused:
        return _draw_second(request, person, refused, stage.login.redirect_url or "/")
    response = stage.exit()
    return _in_place(request) if _is_fragment(request) else response


def _draw_second(
    request: HttpRequest, person: Person, refused: proof.Refused | None, wanted: str
) -> HttpResponse:
    asked = proof.asked(person, refused)
    part = "#step" if _is_fragment(request) else ""
    context = {"asked": asked, "name": person.username, "wanted": wanted}
    return render(request, f"review/second_step.html{part}", context, status=asked.status)


def _first_step_again(request: HttpRequest) -> HttpResponse:
    """The first step is too long ago, or never was."""
    if _is_fragment(request):
        context = {"wanted": _wanted(request)}
        return render(request, "review/sign_in.html#ended", context, status=401)
    return HttpResponseRedirect(reverse("sign_in", query={"next": _wanted(request)}))


def _in_place(request: HttpRequest) -> HttpResponse:
    """What stands above the kept form next: the second step, or the way back to the form."""
    if request.user.is_authenticated:
        return render(request, "review/sign_in.html#back", {"reader": request.user})
    stage = LoginStageController.enter(request, AuthenticateStage.key)
    assert stage is not None, "whoever is not in yet owes the second step"
    return _draw_second(request, stage.login.user, None, stage.login.redirect_url or "/")


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


def _is_fragment(request: HttpRequest) -> bool:
    return bool(request.headers.get("HX-Request"))


def _wanted(request: HttpRequest) -> str:
    wanted = request.POST.get("next", "")
    return wanted if url_has_allowed_host_and_scheme(wanted, {request.get_host()}) else "/"
