"""A real door with a real shop behind it, and the document that it publishes about itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from django.db import connection
from schemathesis.specs.openapi.schemas import OpenApiSchema

from refunds import credentials
from refunds.models import Operation
from tests import build
from tests.api_schema.web_process import WebProcess
from tests.cast import Cast

NDJSON = "application/x-ndjson"
SCOPES = ("refund:propose", "refund:read", "order:write")
ORDERS = tuple(f"48{number}" for number in range(20, 32))


@schemathesis.serializer(NDJSON)
def one_line(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """A batch of one line; the document describes a line."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@schemathesis.deserializer(NDJSON)
def first_line(
    context: schemathesis.DeserializationContext, response: schemathesis.Response
) -> Any:
    """The answer to that line; nothing where no line was sent."""
    lines = response.content.splitlines()
    return json.loads(lines[0]) if lines else {"line": 1, "order_ref": None, "status": 200}


@dataclass
class Visit:
    """One door with its shop: keys by scope, orders and refunds that exist, one connection."""

    url: str
    schema: OpenApiSchema
    keys: dict[str, str]
    refunds: list[str]
    session: requests.Session = field(default_factory=requests.Session)

    def send(
        self, method: str, path: str, scope: str, content: bytes | str = b"", **headers: str
    ) -> requests.Response:
        """These very bytes with the key of the scope; `Content_Type` for another than JSON."""
        sent = {"Authorization": f"Bearer {self.keys[scope]}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.session.request(
            method, f"{self.url}/api/v1{path}", data=content, headers=sent, timeout=60
        )


@pytest.fixture(scope="session")
def web(django_db_setup: None) -> Iterator[WebProcess]:
    """One process a session, on this session's database."""
    process = WebProcess(connection.settings_dict)
    try:
        process.wait()
        yield process
    finally:
        process.stop()


@pytest.fixture
def visit(web: WebProcess, transactional_db: None, cast: Cast) -> Iterator[Visit]:
    """Orders with payments, a few refunds that wait, and a key for every scope."""
    refunds: list[Operation] = []
    for number, ref in enumerate(ORDERS):
        build.order(ref)
        if number < 4:
            refunds.append(build.proposed(cast.echo, ref))
    keys = {scope: credentials.mint(cast.echo, scopes=[scope])[1] for scope in SCOPES}
    revoked, keys["revoked"] = credentials.mint(cast.echo, scopes=["refund:read"])
    credentials.revoke(revoked)
    made = Visit(
        url=web.url,
        schema=schemathesis.openapi.from_url(f"{web.url}/api/v1/openapi.json"),
        keys=keys,
        refunds=[str(each.pk) for each in refunds],
    )
    yield made
    made.session.close()
    assert "Traceback" not in web.output()
