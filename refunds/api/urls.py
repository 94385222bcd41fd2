"""Everything below /api/: the versioned door, its documentation, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import URLPattern, path, re_path, reverse
from django.views.decorators.csrf import csrf_exempt

from refunds.api import errors
from refunds.api.views import api, no_such_address


def _shaped(view: Callable[..., Any]) -> Callable[..., Any]:
    """The view, with the answers that ninja gives outside its handlers made problems too."""

    def shape(response: HttpResponse) -> HttpResponse:
        if isinstance(response, HttpResponseNotAllowed):
            problem = errors.problem(errors.method_not_allowed(response["Allow"]))
            problem["Allow"] = response["Allow"]
            return problem
        response.setdefault("Cache-Control", "no-store")
        return response

    if iscoroutinefunction(view):

        @wraps(view)
        async def shaped_async(request: HttpRequest, **arguments: Any) -> HttpResponse:
            return shape(await view(request, **arguments))

        return shaped_async

    @wraps(view)
    def shaped(request: HttpRequest, **arguments: Any) -> HttpResponse:
        try:
            return shape(view(request, **arguments))
        except Http404:
            return no_such_address(request)

    return shaped


def docs(request: HttpRequest) -> HttpResponse:
    """The documentation to try things in; its files are our own, so the page's policy holds."""
    swagger = {"url": reverse("api:openapi-json"), "layout": "BaseLayout", "deepLinking": True}
    return render(request, "api/docs.html", {"swagger": swagger})


_patterns, _app_name, _namespace = api.urls
for _pattern in _patterns:
    assert isinstance(_pattern, URLPattern)
    _pattern.callback = _shaped(_pattern.callback)

urlpatterns = [
    path("v1/", (_patterns, _app_name, _namespace)),
    path("docs", docs, name="api_docs"),
    re_path("", csrf_exempt(no_such_address)),
]
