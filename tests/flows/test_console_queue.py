"""The approvals list: its tabs, its pages, what its rows warn of, and what a poll says of them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from refunds import approvals, dispatch
from refunds.ledger.lapse import expire
from refunds.models import Operation
from refunds.queries import results
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, opened, press, signed_in, text, url
from tests.provider_process import SandboxProcess

HTMX: Any = {"HX-Request": "true"}
QUERIES_MAX = 12


def listed(page: str) -> list[UUID]:
    """The operations of the rows, in their order."""
    return [UUID(found) for found in re.findall(r'<tr role="row" id="row-([0-9a-f-]{36})"', page)]


def row(page: str, operation: Operation) -> str:
    """The words of one row."""
    found = re.search(rf'<tr role="row" id="row-{operation.pk}".*?</tr>', page, re.S)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def count(page: str, tab: str) -> str:
    found = re.search(rf'href="/approvals\?tab={tab}"[^>]*>[^<]*<span class="n">([^<]*)', page)
    assert found is not None
    return found[1]


def tab(client: Client, name: str) -> str:
    answer = client.get(f"/approvals?tab={name}")
    assert answer.status_code == 200
    return text(answer)


def poll(client: Client, page: str, **more: list[str]) -> Any:
    found = re.search(r'hx-get="(/approvals\?[^"]*since=[^"]*)"', page)
    assert found is not None
    address = found[1].replace("&amp;", "&") + "".join(
        f"&{name}={value}" for name, values in more.items() for value in values
    )
    return client.get(address, headers=HTMX)


def ends_in(operation: Operation, **left: float) -> None:
    """Let a waiting proposal end so soon."""
    soon = timezone.now() + timedelta(**left)
    Operation.objects.filter(pk=operation.pk).update(expires_at=soon, due_at=soon)


@pytest.fixture
def waiting(cast: Cast) -> Operation:
    build.order()
    return build.proposed(cast.foxtrot)


@pytest.mark.django_db
def test_the_tabs_hold_and_count_what_they_say(cast: Cast) -> None:
    build.order(captured_minor=90_000)
    plain = build.proposed(cast.omar, amount_minor=1000)
    two = build.proposed(cast.ines, amount_minor=15_000)
    approvals.approve(two.pk, cast.ben, build.shown(two))
    refused = build.proposed(cast.olga, amount_minor=2000)
    ben = signed_in(cast.ben)
    press(ben, refused, "reject", reason="The parcel never came back.", reason_code="not_owed")
    page = tab(ben, "to_approve")
    counts = {name: count(page, name) for name in ("to_approve", "stale", "second", "mine", "all")}
    assert counts == {"to_approve": "2", "stale": "0", "second": "1", "mine": "2", "all": "3"}
    assert listed(page) == [plain.pk, two.pk]
    second = tab(ben, "second")
    assert listed(second) == [two.pk]
    assert "Approved by ben at" in row(second, two)
    mine = tab(ben, "mine")
    assert listed(mine) == [refused.pk, two.pk]
    assert "Rejected by ben at" in row(mine, refused)
    assert listed(tab(signed_in(cast.cleo), "mine")) == []
    assert listed(tab(ben, "all")) == [refused.pk, two.pk, plain.pk]


@pytest.mark.django_db
def test_what_a_person_decided_twice_is_counted_and_listed_once(cast: Cast) -> None:
    build.order(captured_minor=90_000)
    again = build.proposed(cast.olga, amount_minor=1000)
    turned = build.proposed(cast.olga, amount_minor=2000)
    for operation in (again, turned):
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
        operation.refresh_from_db()
        approvals.revoke(operation.pk, cast.ben, version=operation.version)
        operation.refresh_from_db()
    approvals.approve(again.pk, cast.ben, build.shown(again))
    approvals.reject(turned.pk, cast.ben, reason="Asked for in error.", version=turned.version)
    page = tab(signed_in(cast.ben), "mine")
    assert (count(page, "mine"), listed(page)) == ("2", [turned.pk, again.pk])
    assert count(tab(signed_in(cast.cleo), "mine"), "mine") == "0"


@pytest.mark.django_db
def test_what_lost_the_instant_of_its_next_look_is_listed_and_counted_still(
    cast: Cast, waiting: Operation
) -> None:
    Operation.objects.filter(pk=waiting.pk).update(due_at=None)
    page = tab(signed_in(cast.ben), "to_approve")
    assert (count(page, "to_approve"), listed(page)) == ("1", [waiting.pk])


@pytest.mark.django_db(transaction=True)
def test_stale_ones_stand_under_what_ended_their_approval(
    cast: Cast, provider: SandboxProcess
) -> None:
    made = {}
    for ref in ("S-1", "S-2", "S-3"):
        build.order(ref)
        provider.payment(f"pi_{ref}")
        made[ref] = build.authorized(cast.omar, cast.ben, order_ref=ref, amount_minor=500)
    for ref in ("S-1", "S-3"):
        build.external_refund(ref, 100, ref=f"rf_{ref}")
        assert dispatch.send(str(made[ref].pk)) == "lapsed"
    approvals.revoke(made["S-2"].pk, cast.ben, version=made["S-2"].version)
    page = tab(signed_in(cast.cleo), "stale")
    titles = re.findall(r'class="group"><th[^>]*>([^<]+)<span class="m">(\d+)', page)
    assert titles == [("Order changed ", "2"), ("Taken back ", "1")]
    assert listed(page) == [made["S-1"].pk, made["S-3"].pk, made["S-2"].pk]
    assert "v1, now v2" in row(page, made["S-1"])


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["to_approve", "second", "mine", "all"])
def test_every_list_goes_on_after_its_last_row(cast: Cast, name: str) -> None:
    build.order(captured_minor=9_000_000)
    made = [build.proposed(cast.olga, amount_minor=11_000 + number) for number in range(53)]
    for operation in made:
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
    ben = signed_in(cast.ben)
    first = tab(ben, name)
    more = re.search(r'href="\?(tab=[^"]+after=[^"]+)">Next 50', first)
    assert more is not None
    second = text(ben.get(f"/approvals?{more[1].replace('&amp;', '&')}"))
    everything = [op.pk for op in made]
    if name in ("mine", "all"):
        everything.reverse()
    assert listed(first) + listed(second) == everything


@pytest.mark.django_db
@pytest.mark.parametrize(
    "after", ["x", "~", "2026-01-01~x", "x~0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"]
)
@pytest.mark.parametrize("name", ["to_approve", "stale", "mine", "all"])
def test_a_cursor_of_somebody_elses_making_is_no_page(cast: Cast, name: str, after: str) -> None:
    assert signed_in(cast.ben).get("/approvals", {"tab": name, "after": after}).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_rows_warn_in_words(cast: Cast, provider: SandboxProcess) -> None:
    build.order(captured_minor=90_000)
    provider.payment(captured_minor=90_000)
    for minor in (300, 400):
        operation = build.authorized(cast.omar, cast.ben, amount_minor=minor)
        assert dispatch.send(str(operation.pk)) == "confirmed"
    third = build.proposed(cast.foxtrot, amount_minor=500, claims={"order_total_minor": 15900})
    build.order("X-1", account="plain-blind")
    blind = build.proposed(cast.omar, "X-1", 500)
    page = tab(signed_in(cast.cleo), "to_approve")
    assert "Third refund on this order" in row(page, third)
    assert "The agent states 159.00 USD; our order record says 900.00 USD." in row(page, third)
    assert "If its answer is lost, only a person can find out" in row(page, blind)
    assert "Third refund" not in row(page, blind)


@pytest.mark.django_db
def test_the_last_half_hour_is_told_in_minutes_and_said_once(
    cast: Cast, waiting: Operation
) -> None:
    cleo = signed_in(cast.cleo)
    assert "expiring" not in row(tab(cleo, "to_approve"), waiting)
    ends_in(waiting, minutes=29, seconds=50)
    page = tab(cleo, "to_approve")
    assert "expiring: 29 min left" in row(page, waiting)
    told = text(poll(cleo, page))
    assert "1 proposal will expire in 30 minutes." in told
    ends_in(waiting, minutes=22, seconds=30)
    told = text(poll(cleo, page))
    assert f'id="left-{waiting.pk}" class="late" hx-swap-oob="true">expiring: 22 min left' in told
    assert "will expire" not in told
    assert "<tr" not in told


@pytest.mark.django_db
def test_handled_and_expired_rows_keep_their_place_until_the_page_is_drawn_again(
    cast: Cast,
) -> None:
    build.order()
    made = [build.proposed(cast.foxtrot, amount_minor=minor) for minor in (100, 200, 300)]
    cleo = signed_in(cast.cleo)
    page = tab(cleo, "to_approve")
    press(signed_in(cast.ada), made[0], "approve")
    ends_in(made[1], minutes=-1)
    expire(timezone.now(), batch_max=10)
    told = text(poll(cleo, page))
    assert "2 changed: show" in told
    assert listed(told) == [made[0].pk, made[1].pk]
    assert re.search(
        r"Approved by ada at \d\d:\d\d. It stays here until you reload.", row(told, made[0])
    )
    assert "Expired at" in row(told, made[1])
    drawn_anew = re.findall(r'name="moved" value="([^"]+)"', told)
    assert poll(cleo, page, moved=drawn_anew).status_code == 204
    assert listed(tab(cleo, "to_approve")) == [made[2].pk]


@pytest.mark.django_db
def test_an_opened_proposal_that_moved_puts_its_buttons_away(
    cast: Cast, waiting: Operation
) -> None:
    cleo = signed_in(cast.cleo)
    page = opened(cleo, waiting)
    assert poll(cleo, page).status_code == 204
    build.external_refund("4821", 100)
    other = build.proposed(cast.foxtrot, amount_minor=100)
    told = text(poll(cleo, page))
    assert 'id="acts" data-must-show hx-swap-oob="true"' in told
    assert "The buttons are off until you look at the change" in told
    assert str(other.pk) not in told


@pytest.mark.django_db
def test_a_no_has_a_code_and_words_and_the_proposer_is_told_both(
    cast: Cast, waiting: Operation
) -> None:
    ben = signed_in(cast.ben)
    fields = drawn(ben, waiting, "reject") | {"reason": "The parcel never came back."}
    wrong = ben.post(url(waiting, "reject"), fields | {"reason_code": "because"})
    assert wrong.status_code == 422
    assert "The kind of reason is not one of the list" in text(wrong)
    assert press(ben, waiting, "reject", **fields, reason_code="not_owed").status_code == 303
    told = results.find(waiting.pk)
    assert told is not None
    assert results.reasons(told) == [{"code": "not_owed", "says": "The parcel never came back."}]


@pytest.mark.django_db
def test_no_tab_costs_more_with_more_rows(cast: Cast) -> None:
    build.order(captured_minor=9_000_000)
    ben = signed_in(cast.ben)
    _some(cast, 11_000, 2)
    addresses = [
        f"/approvals?tab={name}" for name in ("to_approve", "stale", "second", "mine", "all")
    ]
    few = {address: _queries(ben, address) for address in addresses}
    _some(cast, 12_000, 30)
    for address, before in few.items():
        assert _queries(ben, address) == before, address
        assert before <= QUERIES_MAX, (address, before)


def _some(cast: Cast, base: int, number: int) -> None:
    """Approved once, rejected and waiting, so that every list has rows of every kind."""
    for each in range(base, base + number):
        operation = build.proposed(cast.olga, amount_minor=each)
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
        refused = build.proposed(cast.olga, amount_minor=each + 500)
        approvals.reject(
            refused.pk, cast.ben, reason="Asked for in error.", version=refused.version
        )


def _queries(client: Client, address: str) -> int:
    client.get(address)
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return len(caught)
