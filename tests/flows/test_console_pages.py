"""The queues and the operation page: what they say, how they page, and what they cost."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reconciliation import heartbeat, reconciler
from reconciliation.models import Case
from refunds import approvals, dispatch
from refunds.domain import states
from refunds.models import Operation, Person, ProviderRefund
from tests import build
from tests.browser.stage import Stage
from tests.cast import Cast
from tests.flows.console import opened, signed_in, text
from tests.page import Page
from tests.provider_process import SandboxProcess

LIST_QUERIES_MAX = 12
OPERATION_QUERIES_MAX = 18
HTMX: Any = {"HX-Request": "true"}


def _queries(client: Client, url: str) -> int:
    client.get(url)  # caches and the session's own first write are not the page's
    with CaptureQueriesContext(
        connection,
    ) as caught:
        assert client.get(url).status_code == 200
    return len(caught)


@pytest.mark.django_db
def test_a_list_costs_the_same_few_queries_with_one_row_or_forty(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    build.proposed(cast.olga, amount_minor=100)
    ben = signed_in(cast.ben)
    one = {url: _queries(ben, url) for url in ("/", "/approvals", "/approvals?tab=all", "/unknown")}
    for minor in range(101, 140):
        build.proposed(cast.olga, amount_minor=minor)
    for url, before in one.items():
        after = _queries(ben, url)
        assert after <= max(before, LIST_QUERIES_MAX), (url, before, after)
        assert after <= LIST_QUERIES_MAX, (url, after)


@pytest.mark.django_db
def test_an_opened_proposal_and_an_operation_stay_below_their_cap(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    for url in (f"/approvals?open={operation.pk}", f"/operations/{operation.pk}"):
        assert _queries(ben, url) <= OPERATION_QUERIES_MAX, url


@pytest.mark.django_db
def test_what_ends_first_comes_first_and_the_next_page_goes_on_after_it(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    made = [build.proposed(cast.olga, amount_minor=100 + n) for n in range(53)]
    ben = signed_in(cast.ben)
    first = text(ben.get("/approvals"))
    assert first.count('id="row-') == 50
    at = first.rindex("after=") + len("after=")
    second = text(ben.get(f"/approvals?tab=to_approve&after={first[at : first.index('"', at)]}"))
    assert [op.pk for op in made[50:]] == _listed(second)
    assert "Back to the first page" in second


def _listed(page: str) -> list[UUID]:
    return [UUID(part[:36]) for part in page.split('id="row-')[1:]]


@pytest.mark.django_db
def test_a_poll_is_silent_until_something_changed_and_moves_nothing(cast: Cast) -> None:
    build.order()
    build.proposed(cast.echo, amount_minor=100)
    ben = signed_in(cast.ben)
    page = text(ben.get("/approvals"))
    at = page.index("since=") + len("since=")
    since = page[at : page.index('"', at)]
    quiet = ben.get(f"/approvals?tab=to_approve&since={since}", headers=HTMX)
    assert (quiet.status_code, quiet.content) == (204, b"")
    build.proposed(cast.echo, amount_minor=200)
    told = ben.get(f"/approvals?tab=to_approve&since={since}", headers=HTMX)
    assert "1 changed: show" in text(told)
    assert "<tr" not in text(told)


@pytest.mark.django_db
def test_the_agents_text_stands_beside_our_record_and_is_called_unverified(cast: Cast) -> None:
    build.order(return_state="received")
    claims = {"order_total_minor": 15900, "return_state": "received", "mood": "polite"}
    operation = build.proposed(cast.echo, claims=claims)
    page = opened(signed_in(cast.ben), operation)
    assert "What the agent says, unverified, beside our record" in page
    assert "The agent states 159.00 USD; our order record says 129.00 USD." in page
    assert "no record of this" in page


@pytest.mark.django_db
def test_an_account_that_only_a_person_can_settle_says_so_before_the_approval(cast: Cast) -> None:
    build.order(account="plain-blind")
    operation = build.proposed(cast.echo, amount_minor=100)
    page = opened(signed_in(cast.ben), operation)
    assert "only a person can find out: this account has no lookup" in page


@pytest.mark.django_db
def test_an_empty_queue_with_a_dead_checker_is_no_all_clear(cast: Cast) -> None:
    omar = signed_in(cast.omar)
    assert "Do not read this as all clear" in text(omar.get("/unknown"))
    heartbeat.beat(timezone.now() - timedelta(minutes=5))
    assert "the checker has not run since" in text(omar.get("/unknown"))
    heartbeat.beat(timezone.now())
    assert "No refund has an unknown outcome. The checker last ran" in text(omar.get("/unknown"))
    cache.clear()


@pytest.mark.django_db
def test_hostile_words_stay_words(cast: Cast) -> None:
    build.order("<script>alert(1)</script>")
    operation = build.proposed(
        cast.echo, "<script>alert(1)</script>", reason_text="<img src=x onerror=alert(1)>"
    )
    ben = signed_in(cast.ben)
    for url in ("/", f"/approvals?open={operation.pk}", f"/operations/{operation.pk}"):
        page = text(ben.get(url))
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "&lt;script&gt;alert(1)" in page


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_is_a_tear_in_the_rail_and_nobody_is_offered_to_send_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    page = text(signed_in(cast.omar).get(f"/operations/{operation.pk}"))
    assert "no answer after" in page
    assert 'class="tear"' in page
    assert "It may or may not have happened" in page
    assert "Do not send it again" in page
    assert "There is no ‘send again’ while the outcome is unknown" in page
    assert "<form" not in page.partition("<main")[2].partition("</main>")[0]
    assert "Next automatic lookup" in page


@pytest.mark.django_db(transaction=True)
def test_evidence_stands_field_by_field_beside_our_record(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    omar = signed_in(cast.omar)
    address = f"/operations/{operation.pk}"
    before = text(omar.get(address))
    at = before.index("since=") + len("since=")
    since = before[at : before.index('"', at)]
    assert omar.get(f"{address}?since={since}", headers=HTMX).status_code == 204
    reconciler.look_up(operation.pk)
    moved = text(omar.get(f"{address}?since={since}", headers=HTMX))
    assert 'id="status-panel"' in moved
    assert "This operation is now succeeded" in moved
    assert "The buttons are off" not in moved, "omar has no button here"
    parts = Page(address, 200, f"<main>{moved}</main>").text
    assert "none known" not in parts, "the head still names no refund of the provider"
    assert "Refunded\n79.00 USD" in parts, "the order still has its money"
    page = text(omar.get(address))
    [refund] = provider.refunds("plain-main")
    assert "Match: the provider holds this refund" in page
    assert refund["id"] in page
    assert page.count('href="#v-match"') >= 5
    assert "Lookup 1: match" in page


@pytest.mark.django_db(transaction=True)
def test_a_refund_that_exists_twice_is_counted_and_waits_for_a_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment(account="plain-nokeys")
    build.order(account="plain-nokeys")
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("execute_twice", account="plain-nokeys")
    dispatch.send(str(operation.pk))
    omar = signed_in(cast.omar)
    assert "No request has more than one refund that counts" in text(omar.get("/"))
    reconciler.look_up(operation.pk)
    assert len(provider.refunds("plain-nokeys")) == 2
    assert ProviderRefund.objects.filter(operation=operation, counts=True).count() == 2
    assert "More than one refund counts for one request" in text(omar.get("/"))
    queue = text(omar.get("/unknown?tab=person"))
    assert "Case: duplicate" in queue
    assert "A person must look at this" in text(omar.get(f"/operations/{operation.pk}"))


@pytest.mark.django_db(transaction=True)
def test_a_stale_approval_shows_then_and_now_and_who_moved_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben, amount_minor=9900)
    build.external_refund("4821", 5000, ref="rf_by_hand")
    assert dispatch.send(str(operation.pk)) == "lapsed"
    cleo = signed_in(cast.cleo)
    assert _listed(text(cleo.get("/approvals?tab=stale"))) == [operation.pk]
    page = opened(cleo, operation)
    assert "The approval no longer applies: the order changed." in page
    assert "Less than the 99.00 USD asked for" in page
    for shown in ("129.00 USD", "79.00 USD", "rf_by_hand", "by ben", "shop"):
        assert shown in page, shown
    assert "Only 79.00 USD is still refundable" in page


@pytest.mark.django_db(transaction=True)
def test_every_state_of_the_stage_has_a_page_for_every_reader(
    provider: SandboxProcess, cast: Cast
) -> None:
    stage = Stage(cast, provider).full()
    stage.failing()
    seen = set()
    for name in ("ben", "omar", "mia"):
        client = signed_in(cast.people[name])
        for operation in stage.by_name.values():
            assert client.get(f"/operations/{operation.pk}").status_code == 200
            assert client.get(f"/approvals?tab=all&open={operation.pk}").status_code == 200
        for url in ("/", "/unknown", "/unknown?tab=auto", "/sending"):
            assert client.get(url).status_code == 200
    seen = set(Operation.objects.values_list("state", flat=True))
    assert seen >= {
        states.AWAITING_APPROVAL,
        states.AUTHORIZED,
        states.SUBMITTING,
        states.PENDING,
        states.UNKNOWN,
        states.SUCCEEDED,
        states.FAILED,
        states.DENIED,
        states.REJECTED,
        states.WITHDRAWN,
    }


@pytest.mark.django_db
def test_a_change_turns_buttons_off_only_where_there_were_some(cast: Cast) -> None:
    build.order()
    for person, minor, off in ((cast.cleo, 100, True), (cast.fay, 200, False)):
        operation = build.proposed(cast.echo, amount_minor=minor)
        address = f"/operations/{operation.pk}"
        client = signed_in(person)
        page = text(client.get(address))
        poll = page.split(f'hx-get="{address}')[1].split('"')[0].replace("&amp;", "&")
        approvals.approve(operation.pk, cast.ben, build.shown(operation, tick=True))
        moved = text(client.get(address + poll, headers=HTMX))
        assert ("The buttons are off" in moved) is off
        assert "This operation changed at" in moved


@pytest.mark.django_db(transaction=True)
def test_a_sentence_names_its_times_in_the_readers_zone(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    event = operation.events.get(event="confirmed")
    Person.objects.filter(pk=cast.cleo.pk).update(time_zone="Asia/Kathmandu")
    local = event.at.astimezone(ZoneInfo("Asia/Kathmandu"))
    cleo = signed_in(cast.cleo)
    for page in (f"/operations/{operation.pk}", "/orders/4821"):
        shown = Page(page, 200, text(cleo.get(page))).text
        assert f"checked {local:%H:%M:%S} {local.tzname()}" in shown, page
        assert f"checked {event.at.astimezone(UTC):%H:%M:%S} UTC" not in shown, page


@pytest.mark.django_db(transaction=True)
def test_a_case_and_its_operation_show_the_one_due_time_that_cases_are_sorted_by(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    Case.objects.create(
        operation=operation,
        payment=operation.payment,
        reasons=["unresolved"],
        because="Only a person can find out.",
        due_at=timezone.now() + timedelta(hours=7, minutes=30),
    )
    omar = signed_in(cast.omar)
    for page in ("/unknown", f"/operations/{operation.pk}"):
        assert "due in 7 h" in text(omar.get(page)), page


@pytest.mark.django_db(transaction=True)
def test_evidence_of_another_day_shows_that_day_on_both_sides(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    reconciler.look_up(operation.pk)
    sent_at = operation.attempts.get().first_byte_at
    assert sent_at is not None
    later = timezone.now() + timedelta(days=3)
    monkeypatch.setattr(timezone, "now", lambda: later)
    page = text(signed_in(cast.omar).get(f"/operations/{operation.pk}"))
    row = page.split('<th scope="row">created</th>')[1].split("</tr>")[0]
    day = f"{sent_at.day} {sent_at:%b}"
    assert f"sent {day} " in row
    assert ", or later" in row
    assert f'theirs">{day} ' in row


@pytest.mark.django_db
def test_the_money_of_an_earlier_version_is_what_was_written_down_then(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    build.external_refund("4821", 2000)
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    build.external_refund("4821", 1000, ref="rf_later")
    mia = signed_in(cast.mia)

    def then(version: int) -> str:
        url = f"/operations/{operation.pk}?at={version}"
        return " ".join(Page(url, 200, text(mia.get(url))).part("balance-then").split())

    assert "Available 129.00 USD" in then(1)
    assert "when it was proposed" in then(1)
    assert "Available 109.00 USD" in then(3)
    assert "for ben’s approval" in then(3)
    assert "99.00" not in then(3)
