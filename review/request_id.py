"""A name for every request: in the answer, on error pages, and on each line it logs."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import structlog
from django.http import HttpRequest, HttpResponse


class RequestId:
    """Outermost: what a caller sends as an id of its own is not taken over."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = uuid4().hex  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=of(request)):
            response = self.get_response(request)
        response["X-Request-Id"] = of(request)
        return response


def of(request: HttpRequest) -> str:
    """The id of this request; empty for one that came past the middleware, as in a unit test."""
    return str(getattr(request, "request_id", ""))
