"""Several small proposals, ticked, reviewed and approved by one press: each by itself, none twice."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from refunds import dispatch, intake, policies, withdrawal
from refunds.domain import states
from refunds.models import Approval, Operation, Person
from review import intent, ticked
from review.models import Intent, RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, press, signed_in, text
from tests.provider_process import SandboxProcess

REVIEW, APPROVE = "/approvals/review", "/approvals/ticked"


@dataclass
class Desk:
    """A lead at the list, who ticks and presses as a browser without script does."""

    person: Person

    def __post_init__(self) -> None:
        self.client = signed_in(self.person)

    def ticks(self) -> dict[str, str]:
        """What each box of the list posts, by the id of its operation."""
        page = text(self.client.get("/approvals"))
        found = re.findall(r'name="item" value="([^"]+)" form="bulk-form"', page)
        return {value.partition(".")[0]: value for value in found}

    def post(self, address: str, items: list[str], **more: Any) -> Any:
        token = {"csrfmiddlewaretoken": self.client.cookies["csrftoken"].value}
        return self.client.post(address, token | {"item": items} | more)

    def review(self, *operations: Operation) -> str:
        """The review page of these; a box that the list does not draw cannot be ticked."""
        ticks = self.ticks()
        answer = self.post(REVIEW, [ticks[str(each.pk)] for each in operations])
        assert answer.status_code == 200, text(answer)
        return text(answer)

    def press(self, page: str, **more: Any) -> Any:
        """Press the button of a review page."""
        fields: dict[str, Any] = form_on(page, APPROVE)
        return self.client.post(APPROVE, fields | {"item": items_on(page)} | more)


def items_on(page: str) -> list[str]:
    return re.findall(r'<input type="hidden" name="item" value="([^"]+)"', page)


def state(operation: Operation) -> str:
    return Operation.objects.values_list("state", flat=True).get(pk=operation.pk)


def words(page: str) -> str:
    """The text of a page with single spaces and without tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.fixture
def three(cast: Cast) -> list[Operation]:
    """Three proposals of one agent, each on an order of its own."""
    return small(cast, 3)


def small(cast: Cast, count: int) -> list[Operation]:
    made = []
    for number in range(count):
        build.order(f"B-{number}")
        made.append(build.proposed(cast.foxtrot, f"B-{number}", 100 + number))
    return made


@pytest.mark.django_db
def test_reviewing_lists_each_with_its_consequence_and_changes_nothing(
    cast: Cast, three: list[Operation]
) -> None:
    page = words(Desk(cast.cleo).review(*three))
    assert "3 refunds, 3.03 USD in total. Each is listed below and can be removed." in page
    assert "0 changed while you were selecting and are left out." in page
    for operation in three:
        amount = f"1.0{operation.amount_minor % 10} USD"
        assert f"If you approve: {amount} will be sent to the original payment method" in page
    assert not Approval.objects.exists()
    assert not Intent.objects.exists()
    assert {state(each) for each in three} == {states.AWAITING_APPROVAL}


@pytest.mark.django_db
def test_one_press_approves_each_by_itself_and_says_so(cast: Cast, three: list[Operation]) -> None:
    desk = Desk(cast.cleo)
    answer = desk.press(desk.review(*three))
    assert answer.status_code == 303
    assert {state(each) for each in three} == {states.AUTHORIZED}
    assert Approval.objects.filter(approver=cast.cleo).count() == 3
    assert "3 approved" in words(text(desk.client.get(answer["Location"])))
    pressed = Intent.objects.get()
    recorded = text(desk.client.get(f"/recorded/{pressed.pk}"))
    assert f'href="/approvals/pressed/{pressed.pk}"' in recorded
    assert Desk(cast.ada).client.get(answer["Location"]).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_three_parcels_of_one_order_approved_together_are_three_refunds_in_the_book(
    cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    build.order()
    parcels = [build.proposed(cast.foxtrot, "4821", minor) for minor in (1200, 1850, 725)]
    desk = Desk(cast.cleo)
    page = desk.review(*parcels)
    assert "Also on this order, and on screen when you approve" in page
    desk.press(page)
    for parcel in parcels:
        assert dispatch.send(str(parcel.pk)) == "confirmed"
    assert sorted(each["amount_minor"] for each in provider.refunds()) == [725, 1200, 1850]


@pytest.mark.django_db
def test_the_same_press_again_shows_the_first_result_and_does_nothing(
    cast: Cast, three: list[Operation]
) -> None:
    desk = Desk(cast.cleo)
    page = desk.review(*three)
    desk.press(page)
    press(desk.client, three[0], "take-back")
    again = desk.press(page)
    assert again.status_code == 200
    assert "This second press changed nothing" in text(again)
    assert state(three[0]) == states.AWAITING_APPROVAL
    assert Approval.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_double_click_approves_each_once(cast: Cast) -> None:
    several = small(cast, 4)
    desk = Desk(cast.cleo)
    page = desk.review(*several)
    fields = form_on(page, APPROVE) | {"item": items_on(page)}
    twin = Client(enforce_csrf_checks=True)
    twin.cookies = desk.client.cookies
    gate = Barrier(2)

    def go(client: Client) -> int:
        gate.wait()
        try:
            return int(client.post(APPROVE, fields).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(go, [desk.client, twin]))
    assert answers == [200, 303]
    assert Approval.objects.count() == 4
    assert all(item["approved"] for item in Intent.objects.get().outcome["items"].values())


@pytest.mark.django_db
def test_what_moved_after_the_review_is_left_out_by_name_and_the_others_are_approved(
    cast: Cast, three: list[Operation]
) -> None:
    desk = Desk(cast.cleo)
    page = desk.review(*three)
    build.external_refund("B-0", 50)
    press(signed_in(cast.ada), three[1], "approve")
    result = words(text(desk.client.get(desk.press(page)["Location"])))
    assert "1 approved, 2 left out" in result
    assert "Order B-0 changed from version 1 to 2" in result
    assert "ada approved this at" in result
    assert state(three[0]) == states.AWAITING_APPROVAL
    assert Approval.objects.get(operation=three[1]).approver == cast.ada
    assert Approval.objects.get(operation=three[2]).approver == cast.cleo


@pytest.mark.django_db
def test_another_refund_on_the_order_since_the_review_leaves_that_one_out(
    cast: Cast, three: list[Operation]
) -> None:
    desk = Desk(cast.cleo)
    page = desk.review(*three)
    build.proposed(cast.foxtrot, "B-1", 4000)
    desk.press(page)
    assert [state(each) for each in three] == [
        states.AUTHORIZED,
        states.AWAITING_APPROVAL,
        states.AUTHORIZED,
    ]


@pytest.mark.django_db
def test_what_moved_while_selecting_is_counted_and_named(
    cast: Cast, three: list[Operation]
) -> None:
    desk = Desk(cast.cleo)
    ticks = desk.ticks()
    build.external_refund("B-0", 50)
    withdrawal.withdraw(three[1].pk, by=intake.Caller(agent=cast.foxtrot))
    page = words(text(desk.post(REVIEW, list(ticks.values()))))
    assert "1 refund, 1.02 USD in total" in page
    assert "2 changed while you were selecting and are left out" in page
    assert "Order B-0 changed from version 1 to 2 while you were selecting." in page
    assert "It is withdrawn now." in page


@pytest.mark.django_db
def test_each_can_be_removed_without_script(cast: Cast, three: list[Operation]) -> None:
    desk = Desk(cast.cleo)
    items = items_on(desk.review(*three))
    page = text(desk.post(REVIEW, items, remove=str(three[1].pk)))
    assert [item.partition(".")[0] for item in items_on(page)] == [
        str(three[0].pk),
        str(three[2].pk),
    ]
    desk.press(page)
    assert state(three[1]) == states.AWAITING_APPROVAL


@pytest.mark.django_db
def test_too_many_none_unreadable_and_mixed_are_each_said_and_keep_the_ticks(cast: Cast) -> None:
    several = small(cast, 21)
    build.order("P-1")
    build.proposed(cast.rosa, "P-1", 300)
    desk = Desk(cast.cleo)
    ticks = list(desk.ticks().values())
    assert len(ticks) == 22
    agents = [tick for tick in ticks if tick.partition(".")[0] in {str(op.pk) for op in several}]
    for items, says in (
        (agents, "You ticked 21; at most 20 can be approved together."),
        ([], "Nothing is ticked."),
        ([str(several[0].pk)], "A ticked line could not be read: it needs an id and its versions."),
        (ticks[-2:], "You ticked 1 that agents proposed and 1 that people proposed."),
    ):
        answer = desk.post(REVIEW, items)
        assert answer.status_code == 422
        assert says in text(answer)
        assert text(answer).count(" checked") == len([item for item in items if "." in item]) + (
            len(items) == 1
        )
        assert desk.post(APPROVE, items).status_code == 422
    assert not Approval.objects.exists()


@pytest.mark.django_db
def test_what_needs_a_look_of_its_own_has_no_box_and_is_refused_when_posted(cast: Cast) -> None:
    build.order(captured_minor=90_000)
    own = build.proposed(cast.echo, amount_minor=900)
    two_leads = build.proposed(cast.foxtrot, amount_minor=15_000)
    first = build.proposed(cast.foxtrot, amount_minor=1000)
    withdrawal.withdraw(first.pk, by=intake.Caller(agent=cast.foxtrot))
    repeat = build.proposed(cast.foxtrot, amount_minor=1000, separate_from=first.pk)
    asked = build.proposed(
        cast.foxtrot, amount_minor=700, requested_by_kind="person", requested_by_ref="ada"
    )
    desk = Desk(cast.ada)
    assert desk.ticks() == {}
    crafted = [f"{op.pk}.2.1" for op in (own, two_leads, repeat, asked)]
    page = words(text(desk.post(REVIEW, crafted)))
    for why in (
        "It was proposed by you or your agent.",
        "It needs two leads.",
        "You asked for it yourself",
        "None of the ticked can be approved together.",
    ):
        assert why in page, why
    plain = [f"{op.pk}.2.1.{bytes(op.fingerprint).hex()}.x" for op in (own, two_leads, repeat)]
    drawn = _drawn_for(plain)
    desk.post(APPROVE, plain, **drawn)
    assert not Approval.objects.exists()
    said = Intent.objects.get().outcome["items"]
    assert {item["refused"] for item in said.values()} == {
        "own_proposal",
        "not_together",
        "proof_missing",
    }
    assert RefusedAct.objects.get().code == "own_proposal"


def _drawn_for(items: list[str]) -> dict[str, str]:
    """The hidden values that would fit a list of somebody's own making."""
    hidden = intent.drawn(version=len(items), shown_digest=ticked.digest(ticked.read(items)))
    return {
        "intent": str(hidden.intent),
        "obj_version": str(hidden.obj_version),
        "shown_digest": hidden.shown_digest,
    }


@pytest.mark.django_db
def test_a_list_that_is_not_the_one_that_was_drawn_is_refused_whole(
    cast: Cast, three: list[Operation]
) -> None:
    desk = Desk(cast.cleo)
    page = desk.review(*three)
    answer = desk.press(page, item=items_on(page)[:2])
    assert answer.status_code == 409
    assert "The list that came is not the list that was drawn" in text(answer)
    assert not Approval.objects.exists()
    assert not Intent.objects.exists()


@pytest.mark.django_db
def test_the_approvals_of_an_hour_are_limited_in_a_list_too(
    cast: Cast, three: list[Operation], settings: Any, tmp_path: Path
) -> None:
    usual = settings.POLICY_FILE
    policy = usual.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(
        policy.replace("approvals_per_person_hour_max = 60", "approvals_per_person_hour_max = 2")
    )
    policies.current.cache_clear()
    desk = Desk(cast.cleo)
    page = desk.review(*three)
    result = words(text(desk.client.get(desk.press(page)["Location"])))
    assert "2 approved, 1 left out" in result
    assert "You gave 2 approvals in the last hour; 2 are allowed." in result
    assert Approval.objects.count() == 2
    settings.POLICY_FILE = usual
    policies.current.cache_clear()
    again = words(text(desk.press(page)))
    assert "This second press changed nothing" in again
    assert "You gave 2 approvals in the last hour" in again
    assert Approval.objects.count() == 2


@pytest.mark.django_db
def test_who_may_not_approve_has_no_boxes_and_no_way_around(
    cast: Cast, three: list[Operation]
) -> None:
    items = list(Desk(cast.cleo).ticks().values())
    for person in (cast.omar, cast.mia):
        desk = Desk(person)
        assert desk.ticks() == {}
        assert desk.post(REVIEW, items).status_code == 403
        assert desk.post(APPROVE, items).status_code == 403
    fay = Desk(cast.fay)
    assert fay.ticks() == {}
    assert "Approving several needs the role support lead." in text(fay.post(REVIEW, items))


@pytest.mark.django_db
def test_reviewing_twelve_costs_as_many_queries_as_reviewing_two(cast: Cast) -> None:
    several = small(cast, 12)
    desk = Desk(cast.cleo)
    ticks = [desk.ticks()[str(op.pk)] for op in several]
    assert _queries(desk, ticks[:2]) == _queries(desk, ticks)


def _queries(desk: Desk, items: list[str]) -> int:
    desk.post(REVIEW, items)
    with CaptureQueriesContext(connection) as caught:
        assert desk.post(REVIEW, items).status_code == 200
    return len(caught)
