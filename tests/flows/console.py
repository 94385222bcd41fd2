"""Driving the console as a browser without script does: pages, their forms, and plain posts."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.test import Client

from refunds.models import Operation, Person
from tests.cast import PASSWORD


def signed_in(person: Person) -> Client:
    """A browser of this person, with CSRF checks on as for everybody."""
    client = Client(enforce_csrf_checks=True)
    answer = try_password(client, person.username, PASSWORD)
    assert answer.status_code == 302, answer.content
    return client


def try_password(client: Client, name: str, password: str) -> Any:
    fields = form_on(text(client.get("/sign-in")), "/sign-in")
    return client.post("/sign-in", fields | {"username": name, "password": password})


def text(answer: Any) -> str:
    return str(answer.content.decode())


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        table = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = True
            self.found.append((table.get("action", ""), {}))
        elif tag in ("input", "textarea") and self._open and table.get("type") != "checkbox":
            self.found[-1][1][table.get("name", "")] = table.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False


def _forms(html: str) -> list[tuple[str, dict[str, str]]]:
    parser = _Forms()
    parser.feed(html)
    return parser.found


def form_on(html: str, action: str) -> dict[str, str]:
    """The fields of the form that posts to `action`, as they stand on the page."""
    for found, fields in _forms(html):
        if found == action:
            return fields
    raise AssertionError(f"no form posts to {action}; there are {[at for at, _ in _forms(html)]}")


def has_form(html: str, action: str) -> bool:
    return any(found == action for found, _ in _forms(html))


def opened(client: Client, operation: Operation) -> str:
    """The approvals page with this proposal open."""
    answer = client.get(f"/approvals?open={operation.pk}")
    assert answer.status_code == 200
    return text(answer)


def drawn(client: Client, operation: Operation, act: str) -> dict[str, str]:
    """The fields of the approve, reject or take-back form on the opened proposal."""
    return form_on(opened(client, operation), url(operation, act))


def url(operation: Operation, act: str) -> str:
    room = "operations" if act == "take-back" else "approvals"
    return f"/{room}/{operation.pk}/{act}"


def press(client: Client, operation: Operation, act: str, **more: str) -> Any:
    """Open the proposal, fill the form's own fields, and post it once."""
    return client.post(url(operation, act), drawn(client, operation, act) | more)
