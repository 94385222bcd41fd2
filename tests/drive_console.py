"""Aftersend's two doors as their users have them: an agent's REST calls, a person's pages.

Pages are fetched with a session cookie, their own forms are read and sent back as a browser
without scripts would do it; nothing here knows a hidden field by name.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import httpx

from config.embedded import run_dir_from_environment
from tests.page import Form, Page

ROOT = Path(__file__).resolve().parents[1]
CALL_SECONDS_MAX = 20
# A program that is just being killed and started again: the same request may be sent again.
PASSING = frozenset({500, 502, 503})
AGAIN_SECONDS = 0.3
# By the field's name: the file's name, its bytes and its type.
Files = dict[str, tuple[str, bytes, str]]
APPROVERS = ("ben", "cleo", "fay")  # two leads who do not own Echo, and finance


class Refused(AssertionError):
    """A door did not do what was asked; the text is what it said."""


def _again(send: Callable[[], httpx.Response], patience_seconds: float) -> httpx.Response:
    """The answer, asked for again while the program is away and the patience lasts."""
    give_up_at = time.monotonic() + patience_seconds
    while True:
        try:
            answer = send()
            if answer.status_code not in PASSING or time.monotonic() > give_up_at:
                return answer
        except httpx.TransportError:
            if time.monotonic() > give_up_at:
                raise
        time.sleep(AGAIN_SECONDS)


def _client(address: str, **more: Any) -> httpx.Client:
    return httpx.Client(base_url=address, timeout=CALL_SECONDS_MAX, trust_env=False, **more)


class AgentDoor:
    """One agent with its bearer key."""

    def __init__(self, address: str, key: str, *, patience_seconds: float = 0) -> None:
        self._http = _client(address, headers={"Authorization": f"Bearer {key}"})
        self._patience_seconds = patience_seconds

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def call(self, method: str, path: str, content: Any = None, **query: Any) -> httpx.Response:
        """One call below `/api/v1`, whatever it answers."""
        return _again(
            lambda: self._http.request(method, f"/api/v1{path}", json=content, params=query),
            self._patience_seconds,
        )

    def propose(self, **fields: Any) -> httpx.Response:
        """POST /refunds without waiting, in the words of a headphones story where none are given."""
        usual = {
            "session_id": "chat-8812",
            "tool_call_id": f"call_{uuid.uuid4().hex[:12]}",
            "requested_by": {"kind": "customer", "ref": "cus_204"},
            "currency": "USD",
            "reason_code": "damaged_item",
            "reason_text": "headphones arrived broken",
            "wait_seconds": 0,
        }
        return self.call("POST", "/refunds", usual | fields)

    def status(self, operation_id: str, *, wait_seconds: int = 0) -> dict[str, Any]:
        """The result contract of one operation. Raises Refused for any other answer than 200."""
        return self._read("GET", f"/refunds/{operation_id}", wait_seconds=wait_seconds)

    def feed(self, order_ref: str, **facts: Any) -> dict[str, Any]:
        """PUT one order as the shop knows it now. Raises Refused when it is not taken."""
        now = datetime.now(UTC).isoformat()
        return self._read(
            "PUT", f"/orders/{order_ref}", {"currency": "USD", "facts_as_of": now} | facts
        )

    def _read(self, method: str, path: str, content: Any = None, **query: Any) -> dict[str, Any]:
        answer = self.call(method, path, content, **query)
        if answer.status_code not in (200, 201):
            raise Refused(f"{method} {path}: {answer.status_code} {answer.text[:600]}")
        found: dict[str, Any] = answer.json()
        return found


class Console:
    """One person at the console, with a session of their own."""

    def __init__(
        self, address: str, name: str, password: str, *, patience_seconds: float = 0
    ) -> None:
        self.name = name
        self._password = password
        self._patience_seconds = patience_seconds
        # A browser names the origin of a form it sends.
        self._http = _client(address, follow_redirects=True, headers={"Origin": address})

    def close(self) -> None:
        """Let go of the connection; the session stays open on the other side."""
        self._http.close()

    def sign_in(self) -> Self:
        """Through the sign-in page. Raises Refused when it lets nobody in."""
        page = self.get("/approvals")
        form = next((each for each in page.forms.values() if "password" in each.values), None)
        if form is None:
            raise Refused(f"no sign-in form at {page.url}: {page.status} {page.text[:600]}")
        after = self.send(form, {"username": self.name, "password": self._password})
        if after.status != 200 or any("password" in each.values for each in after.forms.values()):
            raise Refused(f"{self.name} is not let in: {after.status} {after.text[:600]}")
        return self

    def get(self, path: str, **query: str) -> Page:
        """The page as it answers. Raises Refused where there is none: whoever waits for its words
        would wait for ever."""
        page = self._page(lambda: self._http.get(path, params=query))
        if page.status == 404:
            raise Refused(f"{self.name} finds no page at {page.url}")
        return page

    def send(
        self,
        form: Form,
        values: dict[str, str] | None = None,
        button: str = "",
        files: Files | None = None,
    ) -> Page:
        """Send a form as it stands, with these values and files, by the button with these words."""
        sent = form.values | (values or {})
        action = form.action
        if button:
            pressed = form.button(button)
            action = pressed.action or action
            sent |= {pressed.name: pressed.value} if pressed.name else {}
        if form.method != "post":
            return self._page(lambda: self._http.get(action, params=sent))
        return self._page(lambda: self._http.post(action, data=sent, files=files))

    def read_operation_page(self, operation_id: str) -> Page:
        return self.get(f"/operations/{operation_id}")

    def open_proposal(self, operation_id: str) -> Page:
        """The approvals queue with this proposal opened, as its approver reads it."""
        return self.get("/approvals", open=operation_id)

    def press_approve(self, drawn: Page, **ticks: str) -> Page:
        """Send the approval form of a page that was drawn earlier."""
        return self.send(drawn.form("approval-form"), ticks, "Approve")

    def approve(self, operation_id: str, **ticks: str) -> Page:
        """Read the proposal and say yes to what is on the screen. Raises Refused otherwise."""
        return self._accepted(self.press_approve(self.open_proposal(operation_id), **ticks))

    def reject(self, operation_id: str, reason: str) -> Page:
        """Read the proposal and say no. Raises Refused when that is not recorded."""
        drawn = self.open_proposal(operation_id)
        return self._accepted(self.send(drawn.form("reject-form"), {"reason": reason}, "Reject"))

    def take_back(self, operation_id: str) -> Page:
        """Take an approval back before it is sent. Raises Refused when it is too late."""
        drawn = self.open_proposal(operation_id)
        return self._accepted(self.send(drawn.form("take-back-form")))

    def _accepted(self, page: Page) -> Page:
        if page.status != 200:
            raise Refused(f"{self.name} at {page.url}: {page.status} {page.text[:1500]}")
        return page

    def _page(self, send: Callable[[], httpx.Response]) -> Page:
        answer = _again(send, self._patience_seconds)
        return Page(str(answer.url), answer.status_code, answer.text)


def approve_one_refund(address: str, *, patience_seconds: float = 30) -> str:
    """Pay one customer of the demo back: feed, propose, approve; the operation's id.

    Uses the keys, the password and the sandbox's token in the run folder's demo.json, and the
    sandbox's address in its processes.json. Returns as soon as the approval stands; meets programs
    that are just being killed, so it repeats the same requests for `patience_seconds`.
    """
    run_dir = run_dir_from_environment(ROOT)
    kept = json.loads((run_dir / "demo.json").read_text())
    sandbox = json.loads((run_dir / "processes.json").read_text())["sandbox"]
    ref = uuid.uuid4().hex[:10]
    payment: dict[str, Any] = {"ref": f"pi_{ref}", "captured_minor": 5000}
    provider = _client(sandbox, headers={"X-Control-Token": kept["sandbox_token"]})
    made = {"account": "plain-main", "currency": "USD", **payment}
    _again(lambda: provider.post("/_control/payments", json=made), patience_seconds)
    keys = kept["keys"]
    AgentDoor(address, keys["Shop"], patience_seconds=patience_seconds).feed(
        f"walk-{ref}", customer_ref=f"cus_{ref}", payments=[captured("plain-main", **payment)]
    )
    echo = AgentDoor(address, keys["Echo"], patience_seconds=patience_seconds)
    call = {"tool_call_id": f"call_{ref}", "order_ref": f"walk-{ref}", "amount_minor": 100}
    answer = echo.propose(**call)
    if answer.status_code not in (200, 201):
        raise Refused(f"the proposal: {answer.status_code} {answer.text[:600]}")
    operation_id: str = answer.json()["operation_id"]
    for name in APPROVERS:
        person = Console(address, name, kept["password"], patience_seconds=patience_seconds)
        drawn = person.sign_in().open_proposal(operation_id)
        if "approval-form" in drawn.forms:
            person.press_approve(drawn)
        if echo.status(operation_id)["state"] != "awaiting_approval":
            return operation_id
    raise Refused(f"{', '.join(APPROVERS)} could not approve it: {drawn.text[:1500]}")


def captured(account: str, *, ref: str, captured_minor: int) -> dict[str, Any]:
    """A payment captured nine days ago, as the feed wants it; minor units."""
    at = datetime.now(UTC) - timedelta(days=9)
    return {
        "ref": ref,
        "provider_account": account,
        "state": "captured",
        "captured_minor": captured_minor,
        "captured_at": at.isoformat(),
    }
