"""Who may call, how often, and what they cannot see."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from refunds import credentials
from refunds.models import Agent, Credential
from tests import build
from tests.cast import Cast
from tests.flows.door import Door, books

NO_CACHE = "redis://127.0.0.1:1"  # nobody listens on port 1

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "credential_missing"),
        ("", "credential_missing"),
        ("Basic YWRhOng=", "credential_invalid"),
        ("Bearer", "credential_invalid"),
        ("Bearer as_12345678_" + "x" * 43, "credential_invalid"),
        ("Bearer \u00fc", "credential_invalid"),
    ],
)
def test_without_a_living_key_nothing_is_answered(
    door: Door, header: str | None, code: str
) -> None:
    before = books()
    for method, path in (("GET", "/refunds"), ("POST", "/refunds"), ("PUT", "/orders/4821")):
        answer = door.call(method, path, "{}", headers={"Authorization": header})
        assert (answer.status, answer.code) == (401, code)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert books() == before


def test_a_key_with_another_secret_is_invalid(door: Door) -> None:
    door.key = door.key[:-1] + ("A" if door.key[-1] != "A" else "B")
    assert door.get("/refunds").code == "credential_invalid"


def test_revoking_works_on_the_next_request(door: Door) -> None:
    assert door.get("/refunds").status == 200
    credentials.revoke(door.credential)
    assert (door.get("/refunds").status, door.get("/refunds").code) == (401, "credential_revoked")


def test_a_key_ends_by_itself(door: Door) -> None:
    Credential.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = door.propose()
    assert (answer.status, answer.code) == (401, "credential_expired")


def test_agents_and_owners_that_were_switched_off_may_not_call(door: Door, cast: Cast) -> None:
    Agent.objects.update(active=False)
    assert door.get("/refunds").code == "credential_revoked"
    Agent.objects.update(active=True)
    cast.ada.is_active = False
    cast.ada.save()
    assert door.get("/refunds").code == "credential_revoked"


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("refund:propose", {"propose"}),
        ("refund:read", {"get", "list", "order"}),
        ("order:write", {"feed", "batch"}),
    ],
)
def test_a_scope_opens_its_own_addresses_only(
    door: Door, cast: Cast, scope: str, allowed: set[str]
) -> None:
    operation = door.propose(amount_minor=100).body["operation_id"]
    limited = Door(cast.echo, scope)
    answers = {
        "propose": limited.propose(amount_minor=200),
        "get": limited.get(f"/refunds/{operation}"),
        "list": limited.get("/refunds"),
        "order": limited.get("/orders/4821/refunds"),
        "feed": limited.send("PUT", "/orders/4822", {"currency": "USD"}),
        "batch": limited.call("POST", "/orders:batch", "\n", content_type="application/x-ndjson"),
    }
    assert {name for name, answer in answers.items() if answer.status < 300} == allowed
    refused = [answer for answer in answers.values() if answer.status >= 300]
    assert {(answer.status, answer.code) for answer in refused} == {(403, "scope_missing")}


def test_a_key_may_call_sixty_times_a_minute(door: Door, cast: Cast) -> None:
    statuses = []
    # A minute may end in between; two of them take at most 120 calls.
    while (answer := door.get("/refunds")).status == 200:
        statuses.append(answer.status)
        assert len(statuses) <= 120
    assert len(statuses) >= 60
    assert (answer.status, answer.code) == (429, "rate_limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    before = books()
    assert door.propose().status == 429
    assert books() == before
    assert Door(cast.foxtrot).get("/refunds").status == 200


def test_what_lies_in_other_accounts_is_not_there(door: Door, cast: Cast) -> None:
    operation = door.propose(request_ref="return-17").body["operation_id"]
    cast.foxtrot.accounts = ["plain-forever"]
    cast.foxtrot.save()
    other = Door(cast.foxtrot)
    missing = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"
    before = books()
    for path in (f"/refunds/{operation}", "/orders/4821/refunds"):
        answer = other.get(path)
        assert (answer.status, answer.code) == (404, "not_found")
    assert other.get(f"/refunds/{operation}").body == other.get(f"/refunds/{missing}").body
    assert other.get("/refunds").body == {"items": [], "next": None}
    for wishes in ({}, {"request_ref": "return-17"}, {"payment_ref": "pi_4821"}):
        hidden = other.propose(**wishes)
        absent = other.propose("none", **wishes)
        assert (
            (hidden.status, hidden.code) == (422, "order_unknown") == (absent.status, absent.code)
        )
    assert books() == before


def test_a_shared_order_shows_each_agent_its_own_payments(door: Door, cast: Cast) -> None:
    build.order("4821", account="plain-forever", payment_ref="pi_other")
    door.propose(payment_ref="pi_4821", request_ref="return-17")
    cast.foxtrot.accounts = ["plain-forever"]
    cast.foxtrot.save()
    other = Door(cast.foxtrot)
    [payment] = other.get("/orders/4821/refunds").body["payments"]
    assert (payment["ref"], payment["operations"]) == ("pi_other", [])
    before = books()
    taken = other.propose(request_ref="return-17")
    assert (taken.status, taken.code) == (409, "request_ref_reused")
    assert (taken.body["operation_id"], taken.body["outcome"]) == (None, None)
    assert books() == before
    assert other.propose().status == 201


def test_a_session_of_a_person_does_not_open_the_agents_door(door: Door, cast: Cast) -> None:
    door.client.force_login(cast.ada)
    answer = door.call("GET", "/refunds", headers={"Authorization": None})
    assert (answer.status, answer.code) == (401, "credential_missing")


def test_a_lost_cache_stops_nobody(door: Door) -> None:
    away = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": NO_CACHE}
    with override_settings(CACHES={"default": away}):
        assert door.propose().status == 201
