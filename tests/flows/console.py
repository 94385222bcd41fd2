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
    page = client.get("/sign-in")
    values = form_on(page.content.decode(), "/sign-in")
    answer = client.post("/sign-in", values | {"username": person.username, "password": PASSWORD})
    assert answer.status_code == 302, answer.content
    return client


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        table = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = True
            self.forms.append((table.get("action", ""), {}))
        elif tag in ("input", "textarea") and self._open and "name" in table:
            kept = self.forms[-1][1]
            kept |= (
                {} if table.get("type") == "checkbox" else {table["name"]: table.get("value", "")}
            )

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False


def form_on(html: str, action: str) -> dict[str, str]:
    """The fields of the form that posts to `action`, as they stand on the page."""
    parser = _Forms()
    parser.feed(html)
    for found, fields in parser.forms:
        if found == action:
            return fields
    raise AssertionError(
        f"no form posts to {action}; there are {[each for each, _ in parser.forms]}"
    )


def has_form(html: str, action: str) -> bool:
    parser = _Forms()
    parser.feed(html)
    return any(found == action for found, _ in parser.forms)


def opened(client: Client, operation: Operation) -> str:
    """The approvals page with this proposal open."""
    answer = client.get(f"/approvals?open={operation.pk}")
    assert answer.status_code == 200
    return answer.content.decode()


def approval_form(client: Client, operation: Operation) -> dict[str, str]:
    return form_on(opened(client, operation), f"/approvals/{operation.pk}/approve")


def approve(client: Client, operation: Operation, fields: dict[str, str], **more: Any) -> Any:
    return client.post(f"/approvals/{operation.pk}/approve", fields, **more)
