"""One sandbox process for the whole suite, emptied before each test."""

import ssl
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.provider_process import SandboxProcess

# Plain http on loopback: loading certificates for every client would take most of the time.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture(scope="session")
def running_sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(running_sandbox: SandboxProcess) -> SandboxProcess:
    running_sandbox.reset()
    return running_sandbox


class PlainClient:
    """A caller of the plain dialect with a new connection for each request."""

    def __init__(self, sandbox: SandboxProcess) -> None:
        self.sandbox = sandbox
        self.timeout = 5.0

    def request(
        self,
        method: str,
        path: str,
        *,
        account: str = "plain-main",
        api_key: str | None = None,
        **more: Any,
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {api_key or f'sandbox-key-{account}'}"}
        headers |= more.pop("headers", {})
        with httpx.Client(trust_env=False, verify=NO_TLS, timeout=self.timeout) as client:
            return client.request(
                method, self.sandbox.plain_base(account) + path, headers=headers, **more
            )

    def refund(
        self,
        amount_minor: int = 1000,
        *,
        key: str | None = None,
        marker: str | None = None,
        payment: str = "pi_4821",
        account: str = "plain-main",
        api_key: str | None = None,
        **fields: object,
    ) -> httpx.Response:
        body = {
            "payment": payment,
            "amount_minor": amount_minor,
            "currency": "USD",
            "reason_code": "damaged_item",
            "aftersend_operation": marker or str(uuid.uuid4()),
        }
        return self.request(
            "POST",
            "/refunds",
            account=account,
            api_key=api_key,
            json=body | fields,
            headers={} if key is None else {"Idempotency-Key": key},
        )

    def get(self, path: str, *, account: str = "plain-main", **query: object) -> httpx.Response:
        return self.request("GET", path, account=account, params=query)


@pytest.fixture
def plain(sandbox: SandboxProcess) -> PlainClient:
    return PlainClient(sandbox)


def code_of(answer: httpx.Response) -> str:
    code: str = answer.json()["error"]["code"]
    return code
