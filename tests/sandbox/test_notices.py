"""Notices: signed, retried, and every way in which they go wrong."""

import hashlib
import hmac
import json
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
import stripe

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient

SECRET = "sandbox-webhook-secret-plain-main"


@dataclass(frozen=True)
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def notice(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def status(self) -> str:
        status: str = self.notice["refund"]["status"]
        return status

    def signature(self) -> tuple[int, bool]:
        """The signed instant, and whether the signature is the account's own."""
        parts = dict(part.split("=") for part in self.headers["Sandbox-Signature"].split(","))
        signed = parts["t"].encode() + b"." + self.body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        return int(parts["t"]), hmac.compare_digest(parts["v1"], expected)


@dataclass
class Receiver:
    url: str
    received: queue.Queue[Received] = field(default_factory=queue.Queue)
    statuses: queue.Queue[int] = field(default_factory=queue.Queue)

    def next(self) -> Received:
        return self.received.get(timeout=5)

    def all_of(self, count: int) -> list[Received]:
        notices = [self.next() for _ in range(count)]
        assert self.received.empty()
        return notices


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Answering(BaseHTTPRequestHandler):
        mine: ClassVar[Receiver]

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = 200 if self.mine.statuses.empty() else self.mine.statuses.get()
            # Before the answer: the sender goes on as soon as it has it, in another thread of ours.
            self.mine.received.put(Received(dict(self.headers), body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    Answering.mine = Receiver(f"http://127.0.0.1:{server.server_port}/hook?account=plain-main")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Answering.mine
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hooked(sandbox: SandboxProcess, receiver: Receiver) -> SandboxProcess:
    sandbox.payment()
    sandbox.configure("plain-main", webhook_url=receiver.url)
    return sandbox


def states(sandbox: SandboxProcess) -> list[str]:
    return [one["state"] for one in sandbox.control("GET", "/notices")["notices"]]


def wait_for_states(sandbox: SandboxProcess, expected: list[str]) -> None:
    give_up_at = time.monotonic() + 5
    while states(sandbox) != expected:
        assert time.monotonic() < give_up_at, states(sandbox)


def test_a_refund_is_told_with_a_signature(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    made = plain.refund(marker="m-1").json()
    told = receiver.next()
    signed_at, genuine = told.signature()
    assert genuine
    assert abs(signed_at - time.time()) < 30
    assert told.notice["type"] == "refund.updated"
    assert told.notice["refund"] == made
    assert set(told.notice) == {"id", "type", "created_at", "refund"}


def test_nothing_is_told_without_an_address_or_without_notices(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.configure("plain-forever", webhook_url=receiver.url)
    hooked.payment(account="plain-forever")
    hooked.payment(account="plain-hooks")
    plain.refund(account="plain-forever")
    plain.refund(account="plain-hooks")
    assert states(hooked) == []


def test_every_change_is_told_when_its_time_comes(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.configure("plain-main", settle_seconds=50)
    made = plain.refund().json()
    assert receiver.next().status == "pending"
    hooked.advance(50)
    assert receiver.next().status == "succeeded"
    hooked.control("POST", f"/refunds/{made['id']}/status", {"to": "failed"})
    assert receiver.next().status == "failed"
    dashboard = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 5}
    hooked.control("POST", "/external_refund", dashboard)
    assert receiver.next().notice["refund"]["aftersend_operation"] is None


def test_a_status_that_never_came_is_not_told(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.configure("plain-main", settle_seconds=50)
    made = plain.refund().json()
    hooked.control("POST", f"/refunds/{made['id']}/status", {"to": "canceled"})
    hooked.advance(60)
    hooked.control("POST", "/notices", {"deliver": "now"})
    assert [one.status for one in receiver.all_of(2)] == ["pending", "canceled"]
    assert [one["status"] for one in hooked.refunds()] == ["canceled"]


def test_a_notice_that_is_not_acknowledged_is_sent_again(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    receiver.statuses.put(500)
    receiver.statuses.put(302)
    plain.refund()
    first = receiver.next()
    hooked.advance(1)
    second = receiver.next()
    hooked.advance(2)
    third = receiver.next()
    assert first.notice == second.notice == third.notice
    wait_for_states(hooked, ["sent"])


def test_a_lost_notice_never_comes(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.fault("notice_lost", on="notice")
    plain.refund(marker="m-1")
    plain.refund(marker="m-2")
    [told] = receiver.all_of(1)
    assert told.notice["refund"]["aftersend_operation"] == "m-2"
    assert states(hooked)[0] == "lost"


def test_a_duplicated_notice_comes_twice_under_one_id(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.fault("notice_duplicated", on="notice", copies=3)
    plain.refund()
    assert len({one.notice["id"] for one in receiver.all_of(3)}) == 1


def test_a_reversed_notice_comes_after_its_successor(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.fault("notice_reversed", on="notice")
    made = plain.refund().json()
    hooked.control("POST", f"/refunds/{made['id']}/status", {"to": "failed"})
    assert [one.status for one in receiver.all_of(2)] == ["failed", "succeeded"]


def test_a_late_notice_comes_when_the_clock_has_moved(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.fault("notice_late", on="notice", seconds=3600)
    plain.refund(marker="m-1")
    plain.refund(marker="m-2")
    assert receiver.next().notice["refund"]["aftersend_operation"] == "m-2"
    hooked.advance(3600)
    assert receiver.next().notice["refund"]["aftersend_operation"] == "m-1"


def test_a_forged_notice_says_what_it_likes_under_a_wrong_signature(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.fault("notice_forged", on="notice", refund={"status": "failed"})
    plain.refund()
    told = receiver.next()
    assert told.status == "failed"
    assert told.signature()[1] is False


@pytest.mark.parametrize(("fault", "sign"), [("notice_old", -1), ("notice_future", 1)])
def test_a_notice_can_be_signed_for_another_time(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver, fault: str, sign: int
) -> None:
    hooked.fault(fault, on="notice", seconds=1000)
    plain.refund()
    signed_at, genuine = receiver.next().signature()
    assert genuine
    assert 970 < sign * (signed_at - time.time()) < 1030


def test_a_false_notice_is_not_sent_again_when_it_is_refused(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    receiver.statuses.put(400)
    hooked.fault("notice_forged", on="notice")
    plain.refund()
    receiver.next()
    hooked.advance(10)
    hooked.control("POST", "/notices", {"deliver": "now"})
    assert states(hooked) == ["sent"]
    assert receiver.received.empty()


def test_a_notice_can_lack_the_amount(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.fault("notice_no_amount", on="notice")
    plain.refund()
    told = receiver.next()
    assert "amount_minor" not in told.notice["refund"]
    assert told.signature()[1] is True


def test_notices_can_be_kept_back_and_sent_in_reverse(
    hooked: SandboxProcess, plain: PlainClient, receiver: Receiver
) -> None:
    hooked.control("POST", "/notices", {"deliver": "never"})
    made = plain.refund().json()
    hooked.control("POST", f"/refunds/{made['id']}/status", {"to": "failed"})
    assert states(hooked) == ["queued", "queued"]
    assert receiver.received.empty()
    counts = hooked.control("POST", "/notices", {"deliver": "now", "order": "reversed"})
    assert counts == {"sent": 2, "failed": 0}
    assert [one.status for one in receiver.all_of(2)] == ["failed", "succeeded"]
    assert states(hooked) == ["sent", "sent"]


def test_stripe_notices_verify_with_stripes_own_sdk(
    sandbox: SandboxProcess, receiver: Receiver
) -> None:
    sandbox.payment(account="stripe-main")
    sandbox.configure("stripe-main", webhook_url=receiver.url)
    client: Any = stripe.StripeClient(
        "sandbox-key-stripe-main", base_addresses={"api": sandbox.stripe_base}
    )
    made = client.v1.refunds.create({"payment_intent": "pi_4821", "amount": 100})
    told = receiver.next()
    event = stripe.Webhook.construct_event(
        told.body,
        told.headers["Stripe-Signature"],
        "sandbox-webhook-secret-stripe-main",
    )
    assert (event.type, event.data.object["id"]) == ("refund.updated", made.id)
