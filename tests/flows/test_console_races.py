"""Two presses at once, and a database that is away: one effect, or a page that promises nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from django.test import Client

from refunds.domain import states
from refunds.ledger import lock
from refunds.models import Approval, Operation
from review.models import Intent
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, form_on, signed_in, text, url

pytestmark = pytest.mark.django_db(transaction=True)


def _at_once(clients: list[Client], address: str, fields: list[dict[str, str]]) -> list[Any]:
    gate = Barrier(len(clients))

    def go(client: Client, values: dict[str, str]) -> Any:
        gate.wait()
        try:
            return client.post(address, values)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(go, clients, fields))


def test_a_double_click_is_one_approval_and_both_answers_agree(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "approve")
    twin = Client(enforce_csrf_checks=True)
    twin.cookies = ben.cookies
    answers = _at_once([ben, twin], url(operation, "approve"), [fields, fields])
    assert sorted(answer.status_code for answer in answers) == [200, 303]
    assert Approval.objects.count() == 1
    assert Intent.objects.count() == 1


def test_two_leads_at_once_are_one_approval_and_one_told_so(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    clients = [signed_in(cast.ben), signed_in(cast.cleo)]
    fields = [drawn(client, operation, "approve") for client in clients]
    answers = _at_once(clients, url(operation, "approve"), fields)
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    assert Approval.objects.count() == 1
    loser = next(answer for answer in answers if answer.status_code == 409)
    assert "Your press changed nothing" in text(loser)


WISH = {"amount": "79.00", "reason_code": "damaged_item", "asked_by": "customer"}


def test_a_double_click_proposes_once_and_both_answers_lead_to_it(cast: Cast) -> None:
    build.order()
    cleo = signed_in(cast.cleo)
    fields = form_on(text(cleo.get("/orders/4821")), "/propose/4821") | WISH
    twin = Client(enforce_csrf_checks=True)
    twin.cookies = cleo.cookies
    answers = _at_once([cleo, twin], "/propose/4821", [fields, fields])
    assert [answer.status_code for answer in answers] == [303, 303]
    assert Operation.objects.count() == 1
    assert Intent.objects.count() == 1


def test_two_people_who_propose_the_same_refund_at_once_make_one(cast: Cast) -> None:
    build.order()
    clients = [signed_in(cast.cleo), signed_in(cast.rosa)]
    fields = [
        form_on(text(client.get("/orders/4821")), "/propose/4821") | WISH for client in clients
    ]
    answers = _at_once(clients, "/propose/4821", fields)
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    assert Operation.objects.count() == 1


@pytest.fixture
def lost_database() -> Iterator[None]:
    """The database's address leads nowhere until the test has ended."""
    kept = connection.settings_dict["PORT"], connection.settings_dict["HOST"]
    connection.close()
    connection.settings_dict |= {"HOST": "127.0.0.1", "PORT": "1"}
    yield
    connection.close()
    connection.settings_dict["PORT"], connection.settings_dict["HOST"] = kept


@pytest.mark.usefixtures("cast", "lost_database")
def test_without_the_database_the_page_promises_nothing() -> None:
    client = Client()
    client.cookies["sessionid"] = "some-session-of-yesterday"
    answer = client.get("/approvals")
    assert answer.status_code == 503
    page = text(answer)
    assert "We cannot read the state now" in page
    assert "Do not promise anything" in page
    assert answer["Retry-After"] == "10"


def test_a_press_that_the_database_did_not_answer_is_looked_up_and_not_repeated(
    cast: Cast,
) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "approve") | {"intent": str(uuid4())}
    with transaction.atomic():
        lock(operation.pk)  # somebody holds the rows for longer than a page waits
        [answer] = _at_once([ben], url(operation, "approve"), [fields])
    assert answer.status_code == 503
    page = text(answer)
    assert "We could not tell whether your action was recorded" in page
    assert "Do not repeat it yet" in page
    assert f'href="/recorded/{fields["intent"]}"' in page
    assert "Nothing is recorded" in text(ben.get(f"/recorded/{fields['intent']}"))
    assert Operation.objects.get(pk=operation.pk).state == states.AWAITING_APPROVAL
    assert not Approval.objects.exists()
