"""The door for notices: what is stored, what is refused and counted, and what is never lost."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from config.capped import Capped
from reconciliation import inbox
from reconciliation.models import Notice
from refunds.providers import registry
from tests.notices.telling import (
    plain_body,
    plain_refund,
    secret_of,
    signature,
    stripe_body,
    tell,
)

pytestmark = pytest.mark.django_db
BODY = plain_body("evt_0001", plain_refund())


def refused() -> dict[tuple[str, str], int]:
    return inbox.refused_since(timezone.now() - timedelta(minutes=5))


def test_a_signed_notice_is_stored_as_it_came_and_then_acknowledged(
    rung: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        assert tell(BODY).status == 200
    notice = Notice.objects.get()
    assert bytes(notice.body) == BODY
    assert (notice.verdict, notice.applied_at, notice.facts["ref"]) == ("genuine", None, "rf_0010")
    assert notice.arrived_at <= notice.stored_at + timedelta(seconds=5)
    assert rung == [("reconciliation.tasks.apply_notice", str(notice.pk))]


def test_the_same_notice_again_is_acknowledged_and_kept_once() -> None:
    for _ in range(3):
        assert tell(BODY).status == 200
    assert Notice.objects.get().deliveries == 3


def test_other_content_under_a_known_id_is_a_row_of_its_own_and_odd() -> None:
    other = plain_body("evt_0001", plain_refund(status="failed"))
    for body in (BODY, other, other, BODY):
        assert tell(body).status == 200
    first, odd = Notice.objects.order_by("pk")
    assert (first.verdict, first.deliveries, odd.verdict, odd.deliveries) == (
        "genuine",
        2,
        "odd",
        2,
    )
    assert tell(plain_body("evt_0001", plain_refund()), account="plain-hooks").status == 200
    assert Notice.objects.get(provider_account="plain-hooks").verdict == "genuine"


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("", "forged"),
        (signature(BODY, "not-the-secret-of-this"), "forged"),
        (signature(BODY, secret_of("plain-hooks")), "forged"),
    ],
    ids=["no signature", "another secret", "another account's secret"],
)
def test_what_nobody_vouches_for_is_counted_and_not_kept(header: str, reason: str) -> None:
    said = tell(BODY, header=header)
    assert (said.status, said.body["code"]) == (400, reason)
    assert tell(BODY, header=header).status == 400
    assert not Notice.objects.exists()
    assert refused() == {("plain-main", reason): 2}


@pytest.mark.parametrize("seconds", [-310, 310, 3600])
def test_a_notice_of_another_time_is_refused_and_counted(seconds: int) -> None:
    said = tell(BODY, signed_at=time.time() + seconds)
    assert (said.status, said.body["code"]) == (400, "stale")
    assert not Notice.objects.exists()
    assert refused() == {("plain-main", "stale"): 1}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe{}",
        json.dumps({"id": "evt_1"}).encode("utf-16"),
        plain_body("evt_1", plain_refund()).replace(b'"id": "evt_1"', b'"id": "a", "id": "b"'),
        plain_body("evt_1", plain_refund(), more=float("nan")),
        b'{"id": "evt_1", "type": "x", "a": ' + b"[" * 30 + b"]" * 30 + b"}",
        b'{"id": "evt_1", "type": "x", "a": ' + b"[" * 90_000 + b"]" * 90_000 + b"}",
        plain_body("evt\x00_1", plain_refund()),
        plain_body("", plain_refund()),
        plain_body("e" * 129, plain_refund()),
        json.dumps({"type": "refund.updated", "refund": plain_refund()}).encode(),
        json.dumps({"id": 7, "type": "refund.updated", "refund": plain_refund()}).encode(),
    ],
)
def test_a_signed_body_that_is_no_notice_is_refused(body: bytes) -> None:
    said = tell(body)
    assert (said.status, said.body["code"]) == (400, "unreadable")
    assert not Notice.objects.exists()
    assert refused() == {("plain-main", "unreadable"): 1}


@pytest.mark.parametrize(
    "refund",
    [
        {},
        {"id": "rf_1"},
        plain_refund(amount_minor="79.00"),
        plain_refund(amount_minor=10**40, currency="\U0001f4b6"),
        plain_refund(created_at="soon", aftersend_operation="not-an-id"),
    ],
)
def test_a_notice_whose_refund_is_odd_is_stored_all_the_same(refund: dict[str, Any]) -> None:
    assert tell(plain_body("evt_1", refund)).status == 200
    assert Notice.objects.get().verdict == "genuine"


def test_a_large_notice_is_refused_at_its_size() -> None:
    fits = plain_body("evt_1", plain_refund(), more="")
    fits = plain_body("evt_1", plain_refund(), more="x" * (262_144 - len(fits)))
    assert len(fits) == 262_144
    assert tell(fits).status == 200
    said = tell(plain_body("evt_2", plain_refund(), more="x" * 262_144))
    assert (said.status, said.body["code"]) == (413, "too_large")
    assert Notice.objects.count() == 1


def test_a_body_without_a_length_is_refused_at_the_first_byte_too_many() -> None:
    asked, sent = [], []

    async def receive() -> Any:
        asked.append(1)
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    async def never(*_: Any) -> None:
        raise AssertionError("the body was handed on")

    asyncio.run(Capped(never, 1000)({"type": "http"}, receive, send))
    assert (sent[0]["status"], len(asked)) == (413, 11)


def test_a_body_in_pieces_is_handed_on_whole() -> None:
    pieces = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c"},
        {"type": "http.disconnect"},
    ]
    seen: list[Any] = []

    async def receive() -> Any:
        return pieces.pop(0)

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([await receive(), await receive()])

    asyncio.run(Capped(inner, 3)({"type": "http"}, receive, receive))
    assert (seen[0]["body"], seen[1]["type"]) == (b"abc", "http.disconnect")


@pytest.mark.parametrize(
    ("account", "status", "code"),
    [
        ("nobody", 404, "account_unknown"),
        ("plain-blind", 404, "no_notices"),
    ],
)
def test_an_account_that_sends_none_is_said_so(account: str, status: int, code: str) -> None:
    said = tell(BODY, account=account)
    assert (said.status, said.body["code"]) == (status, code)
    assert said.body["what_to_do"]
    assert not Notice.objects.exists()


def test_an_account_without_a_secret_believes_nothing_and_asks_for_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {name: replace(each, webhook_secrets=()) for name, each in registry.accounts().items()}
    monkeypatch.setattr(registry, "accounts", lambda: known)
    said = tell(BODY)
    assert (said.status, said.body["code"]) == (503, "secret_missing")
    assert "AFTERSEND_PROVIDER_PLAIN_MAIN_WEBHOOK_SECRETS" in said.body["what_to_do"]
    assert not Notice.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_without_a_database_the_answer_is_503_and_the_next_try_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection.close()
    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "PORT", "1")
        away.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        said = tell(BODY)
    connection.close()
    assert (said.status, said.body["code"]) == (503, "not_stored")
    assert not Notice.objects.exists()
    assert tell(BODY).status == 200
    assert Notice.objects.get().deliveries == 1


def test_the_door_takes_posts_only_and_needs_neither_session_nor_token() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.get("/webhooks/plain-main").status_code == 405
    assert tell(BODY).status == 200


def test_a_notice_of_the_other_mode_or_of_another_account_is_foreign() -> None:
    shown = {"object": "refund", "id": "re_1", "status": "succeeded", "payment_intent": "pi_1"}
    tell(stripe_body("evt_1", shown, livemode=False), account="stripe-main")
    tell(stripe_body("evt_2", shown, account="acct_other"), account="stripe-main")
    tell(stripe_body("evt_3", shown), account="stripe-main")
    verdicts = Notice.objects.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["foreign", "foreign", "genuine"]


def test_a_stored_notice_cannot_be_rewritten_or_deleted() -> None:
    tell(BODY)
    rows = Notice.objects.all()
    changes: list[dict[str, Any]] = [
        *({"body": b"other"}, {"facts": {}}),
        *({"verdict": "odd"}, {"event_id": "evt_9"}),
    ]
    for change in changes:
        with pytest.raises(IntegrityError, match="as it came"), transaction.atomic():
            rows.update(**change)
    with pytest.raises(IntegrityError, match="history stays"), transaction.atomic():
        rows.delete()
    rows.update(applied_at=timezone.now(), outcome="looked_up", due_at=None)
    with pytest.raises(IntegrityError, match="applied once"), transaction.atomic():
        rows.update(outcome="proof")


def test_no_log_line_holds_a_secret_a_signature_or_a_body(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        header = signature(BODY, secret_of("plain-main"))
        tell(BODY, header=header)
        tell(BODY, header=header[:-1] + "0")
        tell(b"{" + BODY)
        tell(BODY, signed_at=time.time() - 4000)
    written = caplog.text + "".join(capsys.readouterr())
    assert "notice_stored" in written
    assert "notice_refused" in written
    shown = repr(registry.account("plain-main"))
    for secret in (
        *(secret_of("plain-main"), "sandbox-key-plain-main"),
        *(header.partition("v1=")[2], "rf_0010", "pi_4821"),
    ):
        assert secret not in written, secret
        assert secret not in shown, secret
