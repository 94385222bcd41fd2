"""Every error in one shape: RFC 9457, with a stable code and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from refunds.api.forms import from_validation
from refunds.domain.errors import Refusal
from refunds.domain.sameness import REUSED_NAMES

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5

# What is safe after an error that names no operation. A proposal repeated under the same
# session_id and tool_call_id is the same proposal, so repeating later is safe.
_NEXT_ACTION: Final = {401: "tell_a_person", 403: "tell_a_person"} | dict.fromkeys(
    (429, 500, 503), "repeat_later"
)


def body(refusal: Refusal, existing: dict[str, Any] | None = None) -> dict[str, Any]:
    """The problem of a refusal; a conflict also carries the fields of the `existing` operation.

    A name that was used for something else is a conflict too, and carries only the id of what it
    stands for: the wish that came with it was not recorded.
    """
    problem: dict[str, Any] = {
        "type": f"/problems/{refusal.code}",
        "title": refusal.code.replace("_", " ").capitalize(),
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
        "what_to_do": refusal.what_to_do,
        "field": refusal.field,
        "operation_id": str(refusal.operation_id) if refusal.operation_id else None,
        "outcome": "conflict" if existing or _names_another(refusal) else None,
        "next_action": _next_action(refusal),
        "retry_after_seconds": _retry_after_seconds(refusal),
    }
    return problem | existing if existing else problem


def _names_another(refusal: Refusal) -> bool:
    return refusal.code in REUSED_NAMES and refusal.operation_id is not None


def _next_action(refusal: Refusal) -> str:
    if refusal.code in REUSED_NAMES:
        return "correct_and_propose"
    if refusal.operation_id:
        return "ask_status"
    return _NEXT_ACTION.get(refusal.status, "correct_and_repeat")


def _retry_after_seconds(refusal: Refusal) -> int | None:
    """Also in the body: over MCP nobody sees a header."""
    if refusal.status not in (429, 503):
        return None
    return int(refusal.facts.get("retry_after_seconds", RETRY_AFTER_SECONDS))


def problem(refusal: Refusal, existing: dict[str, Any] | None = None) -> HttpResponse:
    """The response of a refusal, with the headers that its status asks for."""
    response = JsonResponse(
        body(refusal, existing), status=refusal.status, content_type=CONTENT_TYPE
    )
    if refusal.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="aftersend"'
    wait_seconds = _retry_after_seconds(refusal)
    if wait_seconds is not None:
        response["Retry-After"] = str(wait_seconds)
    return response


def not_found(what: str) -> Refusal:
    """404, also for what exists in an account that the credential does not have."""
    return Refusal(
        "not_found",
        f"There is no {what} that this credential may see.",
        status=404,
        what_to_do="Check the reference and the accounts of the agent.",
    )


def no_such_address() -> Refusal:
    """404 for an address that does not exist for anybody."""
    return Refusal(
        "not_found",
        "There is no such address.",
        status=404,
        what_to_do="The documentation at /api/docs names every address.",
    )


def database_unavailable() -> Refusal:
    """503: the database did not answer; a repeat of the same call is safe."""
    return Refusal(
        "database_unavailable",
        "The database does not answer. Nothing was sent, and nothing is known to be recorded.",
        status=503,
        what_to_do="Repeat the very same call later: with the same session_id and tool_call_id"
        " it can never become a second refund.",
    )


def recorded_but_away(operation_id: UUID) -> Refusal:
    """503 after the commit: the wish is recorded, only its result cannot be read now."""
    return Refusal(
        "database_unavailable",
        "The wish is recorded, but the database does not answer any more.",
        status=503,
        what_to_do="Ask for the status of this operation later; do not propose it again.",
        operation_id=operation_id,
    )


def method_not_allowed(allowed: str) -> Refusal:
    """405 with the methods that exist."""
    return Refusal(
        "method_not_allowed",
        "This address does not know that method.",
        status=405,
        what_to_do=f"Use one of: {allowed}.",
    )


def register(api: NinjaAPI) -> None:
    """Let every exception of the API's views leave as a problem."""
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        Refusal: lambda request, refusal: problem(refusal),
        ValidationError: lambda request, error: problem(from_validation(error.errors)),
        HttpError: _http_error,
        RequestDataTooBig: lambda request, error: problem(too_large()),
        OperationalError: _database_away,
        InterfaceError: _database_away,
        Exception: _unforeseen,
    }
    for kind, answer in handlers.items():
        api.exception_handler(kind)(answer)


def too_large() -> Refusal:
    """413 body_too_large."""
    return Refusal(
        "body_too_large",
        "The body is larger than this address takes.",
        status=413,
        what_to_do="Send at most 64 KiB; a batch at most 1,000 lines of 64 KiB and 2 MB in all.",
    )


def not_json(expected: str) -> Refusal:
    """415 not_json."""
    return Refusal(
        "not_json",
        f"The body is not sent as {expected}.",
        status=415,
        what_to_do=f"Send the header Content-Type: {expected}.",
    )


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    # Ninja wraps whatever its parser raises; our parser raises refusals.
    if isinstance(error.__cause__, Refusal):
        return problem(error.__cause__)
    return _unforeseen(request, error)


def _database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("database_unavailable", path=request.path, error=type(error).__name__)
    return problem(database_unavailable())


def _unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("unforeseen", path=request.path, exc_info=error)
    return problem(internal())


def internal() -> Refusal:
    """The answer to a fault of ours; the log has its traceback."""
    return Refusal(
        "internal_error",
        "Something failed that should not have.",
        status=500,
        what_to_do="Repeat the very same call later, or ask for the status of the operation;"
        " with the same session_id and tool_call_id it can never become a second refund.",
    )
