"""Ninja's API as our door: strict bodies, one shape of error, and both of them documented."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from refunds.api import errors
from refunds.api.parsing import read_json
from refunds.domain.errors import Refusal

BODY_BYTES_MAX = 65_536


class StrictJson(Parser):
    """Bodies of at most 64 KiB of JSON, read without floats, repeated names or bombs."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise errors.not_json("application/json")
        if len(request.body) > BODY_BYTES_MAX:
            raise errors.too_large()
        return read_json(request.body)


class Door(NinjaAPI):
    """The API; problems are documented under their own content type."""

    def get_openapi_schema(self, **path: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**path)
        for operations in schema["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    content = response.get("content", {})
                    if int(status) >= 400 and "application/json" in content:
                        content[errors.CONTENT_TYPE] = content.pop("application/json")
        return schema


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
