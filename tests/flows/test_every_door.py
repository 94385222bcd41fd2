"""Every address, every role, the stranger, and nobody: each answer as the role matrix has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.urls import URLResolver, get_resolver
from django.utils import timezone

from reconciliation import statements
from reconciliation.models import Case, Consequence, Delivery, Line
from refunds.credentials import mint
from refunds.models import Operation
from review.models import Intent, RefusedAct, RoleChange
from tests import build
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.flows.doors import DOORS, PEOPLE, Door
from tests.flows.factors import only_factor, signed_in_twice, with_app
from tests.flows.test_console_alerts import fire
from tests.flows.test_console_providers import proposed_fact

pytestmark = pytest.mark.django_db
# What may be written: the reader's own session, that a refused act was tried, and how many notices
# were turned away.
_BESIDE = ("django_session", "refused_act", "notice_refused")


def _routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern, route)
        else:
            yield route


@pytest.fixture
def parts(cast: Cast) -> dict[str, object]:
    """One of everything that an address can name."""
    build.order()
    operation = build.proposed(cast.echo)
    press = Intent.objects.create(pk=uuid4(), person=cast.ben, form="stop", object_ref="sending")
    with_app(cast.ben)
    change = RoleChange.objects.create(
        person=cast.dora,
        kind="change",
        before={"roles": [], "active": True},
        after={"roles": ["rep"], "active": True},
        reason="Answers customers from May on.",
        proposed_by=cast.ava,
    )
    case = Case.objects.create(
        payment=operation.payment, reasons=["external"], because="rf_9", due_at=timezone.now()
    )
    paper = statements.attach(
        case, statements.stored(b"%PDF-1.7"), name="paper.pdf", by=cast.ines, intent=None
    )
    return {
        "case": case.pk,
        "statement": paper.pk,
        "operation": operation.pk,
        "delivery": told(operation).pk,
        "order": "4821",
        "no_id": uuid4(),
        "foreign_press": press.pk,
        "foreign_factor": only_factor(cast.ben).pk,
        "person": cast.ben.pk,
        "change": change.pk,
        "agent": cast.echo.pk,
        "alarm": fire().pk,
        "fact": proposed_fact(cast.olga).pk,
        "key": mint(cast.echo, scopes=["refund:read"])[0].prefix,
    }


def told(operation: Operation) -> Delivery:
    """A message about it that was sent to the merchant."""
    now = timezone.now()
    delivery = Delivery.objects.create(
        pk=uuid4(), kind="customer_message", receiver="merchant", due_at=now, give_up_at=now
    )
    Line.objects.create(
        delivery=delivery,
        consequence=Consequence.objects.filter(operation=operation)[0],
        operation=operation,
        kind="customer_message",
        receiver="merchant",
        about="confirmed",
        text="Your refund was confirmed.",
        facts={"link": ""},
        at=now,
    )
    return delivery


def test_every_address_is_in_the_table() -> None:
    assert set(_routes(get_resolver())) == set(DOORS)


def _ask(client: Client, method: str, path: str) -> Any:
    return client.get(path) if method == "get" else client.post(path)


def _wrong(
    client: Client, method: str, path: str, wanted: int, *, audited: bool = False
) -> list[str]:
    """What is not as the table says; a 403 for a role must also be stored and say so."""
    before = RefusedAct.objects.count()
    answer = _ask(client, method, path)
    said = [f"{method} {path}: {answer.status_code}, not {wanted}"]
    if answer.status_code != wanted:
        return said
    if not audited or wanted != 403:
        return []
    if RefusedAct.objects.count() != before + 1:
        return [f"{method} {path}: 403 without a row in refused_act"]
    says = (
        "You cannot open this page. It is for" if method == "get" else "You can read this but not"
    )
    if says not in text(answer):
        return [f"{method} {path}: 403 without saying who can"]
    return []


def _contents() -> dict[str, str]:
    """A digest of every table; when a person was last there is no change of anything."""
    tables = connection.introspection.table_names()
    digests = {}
    with connection.cursor() as cursor:
        for table in sorted(set(tables) - set(_BESIDE)):
            cursor.execute(
                "SELECT md5(coalesce(string_agg(line, '|' ORDER BY line), '')) FROM ("
                f"SELECT (to_jsonb(t) - 'last_login')::text AS line FROM {table} t) AS lines"
            )
            digests[table] = cursor.fetchone()[0]
    return digests


def _walked() -> list[Door]:
    """Signing out comes last, and a removed factor is a change to be made after the others."""
    late = ("/sign-out", "/account/second-factor/{own_factor}/remove")
    doors = sorted(DOORS.values(), key=lambda door: door.path in late)
    return sorted(doors, key=lambda door: door.path == "/sign-out")


@pytest.mark.parametrize("role", PEOPLE)
def test_every_door_for_every_role(cast: Cast, parts: dict[str, object], role: str) -> None:
    person = cast.people[PEOPLE[role]]
    client = signed_in_twice(person, with_app(person))
    client.handler.enforce_csrf_checks = False
    parts |= {"own_factor": only_factor(person).pk}
    wrong = []
    before = _contents()
    for door in _walked():
        path = door.path.format(**parts)
        wrong += _wrong(client, "get", path, door.get_answer(role), audited=door.get is not None)
        if door.missing:
            gone = door.missing.format(**parts)
            wrong += _wrong(client, "get", gone, door.missing_answer(role, "get"))
    after = _contents()
    assert {table for table in after if before[table] != after[table]} == set(), "a GET changed it"
    for door in _walked():
        if door.missing:
            gone = door.missing.format(**parts)
            wrong += _wrong(client, "post", gone, door.missing_answer(role, "post"))
        path = door.path.format(**parts)
        audited = door.post is not None and role not in door.acts
        wrong += _wrong(client, "post", path, door.post_answer(role), audited=audited)
    assert not wrong, "\n".join(wrong)


def test_every_door_without_a_session(cast: Cast, parts: dict[str, object]) -> None:
    parts |= {"own_factor": parts["foreign_factor"]}
    client, wrong = Client(), []
    before = _contents()
    for door in DOORS.values():
        path = door.path.format(**parts)
        for method, wanted in (("get", door.open_get), ("post", door.open_post)):
            wrong += _wrong(client, method, path, wanted or 302)
            if wanted is None:
                answer = _ask(client, method, path)
                if not answer["Location"].startswith("/sign-in?next="):
                    wrong.append(f"{method} {path} leads to {answer['Location']}")
    assert not wrong, "\n".join(wrong)
    assert _contents() == before


def test_a_post_from_another_site_is_refused_before_anything(
    cast: Cast, parts: dict[str, object]
) -> None:
    client = signed_in(cast.ada)
    client.handler.enforce_csrf_checks = False
    before = _contents()
    for began in ("cross-site", "same-site", "none"):
        answer = client.post(
            "/sending/stop", {"reason": "x" * 20}, headers={"Sec-Fetch-Site": began}
        )
        assert answer.status_code == 403, began
        assert "This did not come from our own page" in text(answer)
    assert _contents() == before


def test_a_form_whose_origin_is_another_site_is_refused(cast: Cast) -> None:
    client = signed_in(cast.ada)
    token = client.cookies["csrftoken"].value
    answer = client.post(
        "/sign-out", {"csrfmiddlewaretoken": token}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert client.get("/").status_code == 200
