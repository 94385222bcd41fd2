"""Messages over a real wire: signed, once, again when it failed, and never to where they may not go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from reconciliation import outbox, outbox_sending, outbox_watch
from reconciliation.cases import open_case, open_payment_case
from reconciliation.models import Case, Consequence, Delivery, DeliveryTry, Line
from refunds import approvals, dispatch
from refunds.domain.errors import Refusal
from refunds.ledger import lock
from refunds.ledger.sending import pause
from refunds.models import Operation
from tests import build
from tests.cast import Cast
from tests.outbox.receiver import SECRET, make_due, receiving, tell
from tests.provider_process import SandboxProcess
from tests.providers.listener import answer, http

pytestmark = pytest.mark.django_db(transaction=True)


def confirmed(provider: SandboxProcess, cast: Cast) -> Operation:
    """A refund that Echo asked for, for ticket T-551, and that succeeded."""
    provider.payment("pi_4821")
    build.order()
    operation = build.authorized(cast.echo, cast.ben, ticket_ref="T-551")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    return operation


def test_when_it_is_confirmed_ticket_agent_and_merchant_hear_it_once_each_signed(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "ticket", "merchant", "agent:Echo") as receiver:
        operation = confirmed(provider, cast)
        tell()
        tell()
        ended = [each for each in receiver.heard if each.body["data"]["about"] == "confirmed"]
        assert sorted(each.body["type"] for each in ended) == [
            "customer_message.due",
            "refund.update",
            "ticket.update",
        ]
        assert len({each.id for each in receiver.heard}) == len(receiver.heard)
        assert all(each.is_signed_for("ticket") for each in receiver.of("ticket"))
        assert not any(each.is_signed_for("merchant") for each in receiver.of("ticket"))
    (ticket,) = [each.body for each in ended if each.body["type"] == "ticket.update"]
    assert ticket["data"]["ticket_ref"] == "T-551"
    assert ticket["data"]["link"].endswith(f"/operations/{operation.pk}")
    assert ticket["text"].startswith("The refund of 79.00 USD on order 4821 is confirmed")
    (customer,) = [each.body for each in ended if each.body["type"] == "customer_message.due"]
    assert customer["text"].startswith("Your refund of 79.00 USD was confirmed on ")
    assert customer["data"]["say"]["text"] == customer["text"]
    assert Delivery.objects.exclude(state="delivered").count() == 0


def test_no_message_carries_what_the_customer_or_anybody_wrote(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "ticket", "merchant", "agent:Echo", "staff", "on_call") as receiver:
        operation = confirmed(provider, cast)
        with transaction.atomic():
            open_case(lock(operation.pk), "duplicate", "Mrs Brown says she got it twice.")
        tell()
        everything = b"".join(each.raw for each in receiver.heard)
    assert b"pi_4821" in everything
    for secret in (b"cus_4821", b"cus_204", b"headphones", b"Mrs Brown"):
        assert secret not in everything


def test_a_message_about_a_case_leads_to_the_case_also_where_no_refund_of_ours_explains_it(
    cast: Cast, settings: Any
) -> None:
    build.order()
    operation = build.proposed(cast.omar)
    with receiving(settings, "staff") as receiver:
        with transaction.atomic():
            payment = lock(operation.pk).payment
            stranger = open_payment_case(payment, "external", "Made elsewhere.")
            ours = open_case(lock(operation.pk), "unresolved", "Nobody can tell.")
        tell()
        everything = b"".join(each.raw for each in receiver.heard).decode()
    assert stranger is not None
    for case in (stranger, ours):
        assert f'/cases/{case.pk}"' in everything
    assert '/unknown"' not in everything


def test_while_nobody_is_named_nothing_is_sent_and_nothing_waits(
    provider: SandboxProcess, cast: Cast
) -> None:
    confirmed(provider, cast)
    assert tell() == 0
    assert Delivery.objects.count() == 0
    assert Consequence.objects.filter(expanded_at=None).count() == 0


def test_a_receiver_that_fails_is_asked_again_with_the_same_id_and_the_same_bytes(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    bad = answer(http(b"", status="503 Service Unavailable", headers=("Retry-After: 90",)))
    with receiving(settings, "merchant", play=bad) as receiver:
        confirmed(provider, cast)
        assert tell() == 1
        assert tell() == 0, "the back-off holds"
        first = Delivery.objects.get()
        assert (first.state, first.last_because) == ("waiting", "answered 503")
        assert 85 < (first.due_at - timezone.now()).total_seconds() <= 90, "as it asked"
        make_due()
        assert tell() == 1
        one, two = receiver.heard
    assert (one.id, one.raw) == (two.id, two.raw)
    with receiving(settings, "merchant") as receiver:
        make_due()
        tell()
        (three,) = receiver.heard
    assert (one.id, one.raw) == (three.id, three.raw)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.try_count) == ("delivered", 3)
    tries = list(DeliveryTry.objects.order_by("pk").values_list("no", "because"))
    assert tries == [(1, "answered 503"), (2, "answered 503"), (3, "answered 204")]


def test_after_three_days_it_is_given_up_and_a_person_may_replay_it_under_the_same_id(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "merchant", play=answer(http(b"", status="500 Oh"))) as receiver:
        confirmed(provider, cast)
        tell()
        Delivery.objects.update(give_up_at=timezone.now())
        make_due()
        tell()
        (first, _) = receiver.heard
    given_up = Delivery.objects.get()
    assert given_up.state == "given_up"
    with receiving(settings, "merchant") as receiver:
        make_due()
        assert tell() == 0
        with pytest.raises(Refusal, match="tried again while you looked"):
            outbox.replay(given_up.pk, by="omar", version=0, now=timezone.now())
        outbox.replay(given_up.pk, by="omar", version=given_up.fence, now=timezone.now())
        tell()
        (again,) = receiver.heard
    assert (again.id, again.raw) == (first.id, first.raw)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.replayed_by) == ("delivered", "omar")


def test_who_comes_back_after_its_lease_records_no_end(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "merchant"):
        confirmed(provider, cast)
        outbox.expand()
        late = outbox_sending.claim()
        assert late is not None
        make_due()
        again = outbox_sending.claim()
        assert again is not None
        assert (again.id, again.no) == (late.id, 2)
        assert outbox_sending.record(late, outbox_sending.send(late), "late") is None
        assert Delivery.objects.get().state == "sending"
        assert outbox_sending.record(again, outbox_sending.send(again), "again") == "delivered"
    assert DeliveryTry.objects.count() == 2, "what was tried is kept all the same"


@pytest.mark.parametrize(
    ("status", "headers"), [("302 Found", ("Location: http://127.0.0.1:1/",)), ("410 Gone", ())]
)
def test_only_a_2xx_is_a_delivery_and_no_redirect_is_followed(
    provider: SandboxProcess, cast: Cast, settings: Any, status: str, headers: tuple[str, ...]
) -> None:
    with receiving(
        settings, "merchant", play=answer(http(b"", status=status, headers=headers))
    ) as receiver:
        confirmed(provider, cast)
        tell()
        assert len(receiver.heard) == 1
    assert Delivery.objects.get().last_because == f"answered {status[:3]}"


def test_a_huge_answer_is_not_read_to_its_end_and_delivers(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "merchant", play=answer(http(b"x" * 1_000_000))):
        confirmed(provider, cast)
        tell()
    assert Delivery.objects.get().state == "delivered"


@pytest.mark.parametrize(
    ("url", "because"),
    [
        ("http://shop.example/hooks", "not sent: The address of merchant in"),
        ("https://elsewhere.example/hooks", "not sent: AFTERSEND_CALLBACK_HOSTS does not allow"),
        ("https://shop.example@evil.example/", "not sent: AFTERSEND_CALLBACK_HOSTS does not allow"),
        ("https://127.0.0.1:1/hooks", "not sent: AFTERSEND_CALLBACK_HOSTS does not allow"),
    ],
)
def test_nothing_goes_to_a_host_that_is_not_allowed(
    provider: SandboxProcess, cast: Cast, settings: Any, url: str, because: str
) -> None:
    settings.CALLBACKS, settings.CALLBACK_SECRETS = {"merchant": url}, (SECRET,)
    settings.CALLBACK_HOSTS = ("shop.example",)
    confirmed(provider, cast)
    settings.ALLOW_LOOPBACK_PROVIDERS = False
    tell()
    assert Delivery.objects.get().last_because.startswith(because)


def test_an_allowed_name_that_leads_inside_is_not_talked_to(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "merchant") as receiver:
        confirmed(provider, cast)
        port = receiver.listener.port
        settings.CALLBACKS = {"merchant": f"https://localhost:{port}/"}
        settings.CALLBACK_HOSTS = ("localhost",)
        settings.ALLOW_LOOPBACK_PROVIDERS = False
        tell()
        assert not any(request.startswith(b"POST") for request in receiver.listener.requests)
    assert "is not a public address" in Delivery.objects.get().last_because


def test_staff_get_one_message_in_five_minutes_and_pages_do_not_wait(
    cast: Cast, settings: Any
) -> None:
    with receiving(settings, "staff", "on_call") as receiver:
        for number in range(3):
            build.order(f"50{number}")
            build.proposed(cast.omar, f"50{number}", 5000 + number)
        tell()
        (first,) = receiver.of("staff")
        assert first.body["text"].count("waits for approval.") == 3
        build.order("600")
        build.proposed(cast.omar, "600", 6000)
        build.order("601")
        build.proposed(cast.omar, "601", 6001)
        pause("plain-main", kind="outage", reason="It does not answer.", by="dispatcher")
        tell()
        assert len(receiver.of("staff")) == 1
        assert [each.body["data"]["lines"][0]["about"] for each in receiver.of("on_call")] == [
            "account_paused"
        ]
        waits = Delivery.objects.get(state="waiting")
        assert 290 < (waits.due_at - timezone.now()).total_seconds() <= 300
        make_due()
        tell()
        assert len(receiver.of("staff")[1].body["data"]["lines"]) == 2


def test_people_with_an_address_get_plain_mail_and_whoever_asked_hears_the_decision(
    cast: Cast, settings: Any
) -> None:
    settings.WRITES_MAIL = True  # into the box of the tests
    for name in ("ben", "ada", "omar"):
        person = cast.people[name]
        person.email = f"{name}@shop.example"
        person.save()
    build.order()
    operation = build.proposed(cast.omar)
    tell()
    assert sorted(message.to[0] for message in mail.outbox) == [
        "ada@shop.example",
        "ben@shop.example",
    ]
    approvals.reject(operation.pk, cast.ben, reason="Not this one.", version=operation.version)
    mail.outbox.clear()
    tell()
    (decision,) = mail.outbox
    assert decision.to == ["omar@shop.example"]
    assert decision.subject == "The refund of 79.00 USD on order 4821 was rejected."
    assert f"/operations/{operation.pk}" in decision.body
    assert "Not this one" not in decision.body
    delivery = Delivery.objects.get(receiver="person:omar")
    assert decision.extra_headers["Message-ID"].startswith(f"<{delivery.pk}@")


def test_what_runs_out_is_told_once_to_those_who_can_still_act(cast: Cast, settings: Any) -> None:
    with receiving(settings, "staff") as receiver:
        build.order()
        operation = build.proposed(cast.omar)
        soon = operation.expires_at - timedelta(hours=1)
        assert outbox_watch.watch(timezone.now()) == 0
        assert outbox_watch.watch(soon) == 1
        assert outbox_watch.watch(soon + timedelta(minutes=1)) == 0
        tell()
        (heard,) = receiver.heard
        assert "ends undecided at" in heard.body["text"]
    with transaction.atomic():
        open_case(lock(operation.pk), "unresolved", "Nobody can tell.")
    Case.objects.update(owner=cast.omar, owned_until=soon)
    assert outbox_watch.watch(soon - timedelta(minutes=4)) >= 1
    assert Consequence.objects.filter(words__about="claim_lapsing").count() == 1


def test_what_cannot_be_turned_into_a_message_stays_and_hinders_nothing(
    provider: SandboxProcess, cast: Cast, settings: Any
) -> None:
    with receiving(settings, "staff", "merchant") as receiver:
        with transaction.atomic():
            Consequence.objects.create(name="case:1:odd", kind="case", words={"case": 0})
        confirmed(provider, cast)
        with pytest.raises(outbox.ExpansionFailed, match="1 not turned into messages"):
            outbox.expand()
        outbox_sending.deliver_due("teller:test")
        assert len(receiver.of("merchant")) == 1
    assert Consequence.objects.get(expanded_at=None).name == "case:1:odd"
    assert Line.objects.filter(kind="customer_message").count() == 1
