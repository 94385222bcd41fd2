"""Other people's ids, typed into every address of a signed-in browser: no error, and not a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import uuid4

import pytest
from django.utils import timezone
from playwright.sync_api import Page

from reconciliation import statements
from reconciliation.models import Case
from refunds.credentials import mint
from refunds.models import Operation
from review.models import Draft, Intent, RoleChange
from tests import build
from tests.browser.visitor import Visitors
from tests.cast import Cast
from tests.flows.doors import DOORS, LEAD, PEOPLE, REP, STRANGER, Door
from tests.flows.factors import only_factor, with_app
from tests.flows.test_console_alerts import fire
from tests.flows.test_console_providers import proposed_fact
from tests.flows.test_every_door import told

# Where an answer of the table leads on to another page, only that nothing failed can be said.
_PLAIN = frozenset({200, 403, 404, 405, 422})
WALK = """async (addresses) => {
  const token = document.getElementsByName('csrfmiddlewaretoken')[0].value;
  const asked = [];
  for (const address of addresses) {
    for (const method of ['GET', 'POST']) {
      const body = method === 'POST' ? new URLSearchParams({csrfmiddlewaretoken: token}) : null;
      const answer = await fetch(address, {method, body});
      asked.push([address, method, answer.status, await answer.text()]);
    }
  }
  return asked;
}"""


class Secrets(NamedTuple):
    """Words of others, by who may read them."""

    of_readers: str
    of_ben: str
    of_admins: str

    def kept_from(self, role: str) -> tuple[str, ...]:
        return tuple(self[1:] if role == LEAD else self)


class Foreign(NamedTuple):
    parts: dict[str, object]
    secrets: Secrets


@pytest.fixture
def foreign(cast: Cast) -> Foreign:
    """One of everything that an address can name, each with words that give it away."""
    build.order()
    secrets = Secrets("the heel came off", "not the first time", "answers in May")
    operation = build.proposed(cast.echo, reason_text=secrets.of_readers)
    press = Intent.objects.create(pk=uuid4(), person=cast.ben, form="stop", object_ref="sending")
    Draft.objects.create(
        person=cast.ben,
        form="reject",
        object_ref=str(operation.pk),
        fields={"reason": secrets.of_ben},
    )
    with_app(cast.ben)
    change = RoleChange.objects.create(
        person=cast.dora,
        kind="change",
        before={"roles": [], "active": True},
        after={"roles": ["rep"], "active": True},
        reason=secrets.of_admins,
        proposed_by=cast.ava,
    )
    case = Case.objects.create(
        payment=operation.payment, reasons=["external"], because="rf_9", due_at=timezone.now()
    )
    paper = statements.attach(
        case, statements.stored(b"%PDF-1.7"), name="paper.pdf", by=cast.ines, intent=None
    )
    parts = {
        "case": case.pk,
        "statement": paper.pk,
        "delivery": told(operation).pk,
        "alarm": fire().pk,
        "fact": proposed_fact(cast.olga).pk,
        "operation": operation.pk,
        "order": "4821",
        "no_id": uuid4(),
        "foreign_press": press.pk,
        "foreign_factor": only_factor(cast.ben).pk,
        "own_factor": only_factor(cast.ben).pk,
        "person": cast.ben.pk,
        "change": change.pk,
        "agent": cast.echo.pk,
        "key": mint(cast.echo, scopes=["refund:read"])[0].prefix,
    }
    return Foreign(parts, secrets)


def _asked(page: Page, addresses: list[str]) -> Iterator[tuple[str, str, int, str]]:
    """Address, method, status and page of each, as this person's own page would ask for it."""
    yield from page.evaluate(WALK, addresses)


def _wanted(door: Door, role: str, method: str, *, missing: bool) -> int:
    if missing:
        return door.missing_answer(role, method.lower())
    return door.get_answer(role) if method == "GET" else door.post_answer(role)


@pytest.mark.parametrize("role", [STRANGER, REP, LEAD])
def test_foreign_ids_on_every_address_get_no_error_and_tell_nothing(
    visitors: Visitors, foreign: Foreign, role: str
) -> None:
    named = [door for door in DOORS.values() if "{" in door.path or door.missing]
    doors: dict[str, tuple[Door, bool]] = {}
    for door in named:
        # One's own factor is not somebody else's: that address is asked with a foreign one only.
        if "{own_factor}" not in door.path:
            doors[door.path.format(**foreign.parts)] = (door, False)
        if door.missing:
            doors[door.missing.format(**foreign.parts)] = (door, True)
    page = visitors.sign_in(PEOPLE[role])
    before = Operation.objects.values().get()
    wrong = []
    for address, method, status, text in _asked(page, list(doors)):
        door, missing = doors[address]
        wanted = _wanted(door, role, method, missing=missing)
        if status >= 500 or (wanted in _PLAIN and status != wanted):
            wrong.append(f"{method} {address}: {status}, not {wanted}")
        told = [secret for secret in foreign.secrets.kept_from(role) if secret in text]
        if told:
            wrong.append(f"{method} {address} tells {told}")
    assert not wrong, "\n".join(wrong)
    assert Operation.objects.values().get() == before
