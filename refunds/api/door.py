"""Ninja's API as our door: strict bodies, one shape of error, and both of them documented."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from refunds.api import errors
from refunds.api.parsing import read_json
from refunds.domain.errors import Refusal

BODY_BYTES_MAX = 65_536
NDJSON: Final = "application/x-ndjson"

# Headers that an answer of this status always has.
_HEADERS: Final = {
    401: ("WWW-Authenticate", "string", "How to send the key"),
    405: ("Allow", "string", "The methods that exist"),
    429: ("Retry-After", "integer", "Seconds"),
    503: ("Retry-After", "integer", "Seconds"),
}


class StrictJson(Parser):
    """Bodies of at most 64 KiB of JSON, read without floats, repeated names or bombs."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise errors.not_json("application/json")
        if len(request.body) > BODY_BYTES_MAX:
            raise errors.too_large()
        return read_json(request.body)


class Door(NinjaAPI):
    """The API; every answer is documented under its own content type and with its headers."""

    def get_openapi_schema(self, **path: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**path)
        for operations in schema["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    _describe(int(status), response)
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    # A body that may be left out is not "required"; generators refuse a default.
                    content["schema"].pop("default", None)
        return schema


def _describe(status: int, response: dict[str, Any]) -> None:
    content = response.get("content", {})
    if status >= 400 and "application/json" in content:
        content[errors.CONTENT_TYPE] = content.pop("application/json")
    if NDJSON in content:
        content.pop("application/json", None)
    if status in _HEADERS:
        name, kind, says = _HEADERS[status]
        response["headers"] = {
            name: {"required": True, "description": says, "schema": {"type": kind}}
        }


def only(request: HttpRequest, *names: str) -> None:
    """Refuse query parameters that the address does not know: a misspelt one is not ignored."""
    for name in request.GET:
        if name not in names:
            raise Refusal(
                "field_unknown",
                f"{name[:60]}: this address has no such parameter.",
                what_to_do=f"Use: {', '.join(names) or 'no parameter'}.",
                field=name[:60],
            )
