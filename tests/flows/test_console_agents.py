"""Agents and keys: shown once, rotated with an overlap, revoked at once, and who did it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from refunds import credentials
from refunds.models import Agent, Credential
from review.models import AgentAct, Intent, RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.flows.door import Door

pytestmark = pytest.mark.django_db
_KEY = re.compile(r"as_([A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}")


def _page(client: Client, agent: Agent) -> str:
    answer = client.get(f"/agents/{agent.pk}")
    assert answer.status_code == 200
    return text(answer)


def _press(client: Client, agent: Agent, act: str, **more: Any) -> Any:
    """Draw the agent's page, and post one of its forms once."""
    url = f"/agents/{agent.pk}/{act}"
    return client.post(url, form_on(_page(client, agent), url) | more)


def _made(answer: Any) -> str:
    """The whole key that an answer shows."""
    found = _KEY.search(text(answer))
    assert found, text(answer)
    return found[0]


def _status(key: str) -> tuple[int, str]:
    """What a real request with this key gets."""
    answer = Client().get("/api/v1/refunds", headers={"Authorization": f"Bearer {key}"})
    return answer.status_code, answer.json().get("code", "")


def test_an_admin_creates_an_agent_and_a_key_that_works_and_is_shown_once(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    fields = form_on(text(adam.get("/agents")), "/agents/create")
    wish = {"name": "Golf", "owner": "cleo", "accounts": ["plain-main", "plain-blind"]}
    made = adam.post("/agents/create", fields | wish)
    golf = Agent.objects.get(name="Golf")
    assert (made.status_code, golf.owner, golf.accounts) == (
        303,
        cast.cleo,
        ["plain-blind", "plain-main"],
    )
    url = f"/agents/{golf.pk}/keys"
    fields = form_on(_page(adam, golf), url)
    wish = {"scopes": ["refund:read", "refund:propose"], "days": "30"}
    answer = adam.post(url, fields | wish)
    key = _made(answer)
    assert _status(key) == (200, "")
    assert answer["Cache-Control"] == "no-store"
    again = adam.post(url, fields | wish)
    prefix = key[3:11]
    assert "This second press changed nothing" in text(again)
    assert prefix in text(again)
    assert not _KEY.search(text(again))
    assert Credential.objects.filter(agent=golf).count() == 1
    assert not _KEY.search(_page(adam, golf))
    assert "nobody said that it is stored" in _page(adam, golf)


def test_the_text_of_a_key_is_stored_nowhere(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    key = _made(_press(adam, cast.echo, "keys", scopes=["refund:read"], days="1"))
    secret = key[len("as_12345678_") :]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{secret}%"]
            )
            assert cursor.fetchone() == (0,), table


def test_a_key_counts_as_stored_only_with_the_tick(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    answer = _press(adam, cast.echo, "keys", scopes=["refund:read"], days="1")
    prefix = _made(answer)[3:11]
    url = f"/agents/{cast.echo.pk}/keys/{prefix}/stored"
    fields = form_on(text(answer), url)
    refused = adam.post(url, fields)
    assert (refused.status_code, "never shown again" in text(refused)) == (422, True)
    assert adam.post(url, fields | {"stored": "on"}).status_code == 303
    assert "nobody said that it is stored" not in _page(adam, cast.echo)


def test_both_keys_work_in_the_overlap_and_only_the_new_one_after_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Door(cast.echo)
    adam = signed_in(cast.adam)
    new = _made(_press(adam, cast.echo, f"keys/{old.credential.prefix}/rotate", overlap="600"))
    assert (_status(old.key), _status(new)) == ((200, ""), (200, ""))
    later = timezone.now() + timedelta(seconds=601)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert (_status(old.key), _status(new)) == ((401, "credential_expired"), (200, ""))
    made = Credential.objects.get(prefix=new[3:11])
    assert made.scopes == old.credential.scopes


def test_a_rotated_key_lives_as_long_as_its_old_one_was_made_for(cast: Cast) -> None:
    key, _ = credentials.mint(cast.echo, scopes=["refund:read"], days=30)
    adam = signed_in(cast.adam)
    page = text(adam.get(f"/agents/{cast.echo.pk}"))
    assert "with the same scopes for 30 days, as long as this one was made for" in page
    new = _made(_press(adam, cast.echo, f"keys/{key.prefix}/rotate", overlap="600"))
    made = Credential.objects.get(prefix=new[3:11])
    assert round((made.expires_at - made.created_at) / timedelta(days=1)) == 30
    trail = text(adam.get(f"/agents/{cast.echo.pk}")).split("Who did what")[1]
    assert made.expires_at.isoformat()[:13] not in trail
    assert f"ends {made.expires_at.day} {made.expires_at:%b}" in trail


def test_limits_and_states_are_named_as_people_and_agents_read_them(cast: Cast) -> None:
    page = text(signed_in(cast.adam).get("/agents"))
    assert "minor units" not in page
    assert re.search(r"\d+\.\d\d EUR or ", page)
    assert "<dt>awaiting_approval</dt>" in page


def test_a_rotation_never_lengthens_a_life_and_overlaps_for_seven_days_at_most(cast: Cast) -> None:
    key, _ = credentials.mint(cast.echo, scopes=["refund:read"], days=1)
    adam = signed_in(cast.adam)
    too_long = _press(adam, cast.echo, f"keys/{key.prefix}/rotate", overlap="604801")
    assert (too_long.status_code, "at most 7 days" in text(too_long)) == (422, True)
    _press(adam, cast.echo, f"keys/{key.prefix}/rotate", overlap="604800")
    before = key.expires_at
    key.refresh_from_db()
    assert key.expires_at == before
    assert Credential.objects.filter(agent=cast.echo).count() == 2


def test_a_key_is_revoked_for_the_next_request_when_the_name_is_typed(cast: Cast) -> None:
    door = Door(cast.echo)
    build.order()
    build.proposed(cast.echo)
    adam = signed_in(cast.adam)
    page = _page(adam, cast.echo)
    assert (
        f"Calls with key {door.credential.prefix} stop working within 25 seconds. 1 of its"
        " proposals are waiting; they stay for people to decide." in page
    )
    act = f"keys/{door.credential.prefix}/revoke"
    wrong = _press(adam, cast.echo, act, agent_name="Foxtrot")
    assert (wrong.status_code, _status(door.key)) == (422, (200, ""))
    assert _press(adam, cast.echo, act, agent_name="Echo").status_code == 303
    assert _status(door.key) == (401, "credential_revoked")


def test_a_paused_agent_is_refused_until_it_goes_on(cast: Cast) -> None:
    door = Door(cast.echo)
    adam = signed_in(cast.adam)
    assert _press(adam, cast.echo, "pause").status_code == 303
    assert _status(door.key) == (401, "credential_revoked")
    assert _press(adam, cast.echo, "resume").status_code == 303
    assert _status(door.key) == (200, "")


def test_an_agent_asks_for_its_accounts_only_from_the_next_call_on(cast: Cast) -> None:
    build.order()
    door = Door(cast.echo)
    adam = signed_in(cast.adam)
    assert door.get("/orders/4821/refunds").status == 200
    assert _press(adam, cast.echo, "accounts", accounts=["plain-blind"]).status_code == 303
    assert door.get("/orders/4821/refunds").status == 404
    nothing = _press(adam, cast.echo, "accounts", accounts=[])
    assert (nothing.status_code, "one account or more" in text(nothing)) == (422, True)


def test_two_admins_at_once_are_one_change_and_one_conflict(cast: Cast) -> None:
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    url = f"/agents/{cast.echo.pk}/accounts"
    first, second = (form_on(_page(each, cast.echo), url) for each in (adam, ava))
    assert adam.post(url, first | {"accounts": ["plain-main"]}).status_code == 303
    late = ava.post(url, second | {"accounts": ["plain-blind"]})
    assert (late.status_code, "changed Echo in the meantime" in text(late)) == (409, True)
    assert Agent.objects.get(pk=cast.echo.pk).accounts == ["plain-main"]


def test_an_owner_reads_their_own_agents_and_nobody_else_reads_any(cast: Cast) -> None:
    ada, cleo = signed_in(cast.ada), signed_in(cast.cleo)
    page = text(ada.get("/agents"))
    assert "Echo" in page
    assert "Foxtrot" not in page
    assert not has_form(page, "/agents/create")
    assert "<form" not in _page(ada, cast.echo).partition("<main")[2].partition("</main>")[0]
    assert ada.get(f"/agents/{cast.foxtrot.pk}").status_code == 404
    assert cleo.get("/agents").status_code == 403
    fields = {"csrfmiddlewaretoken": ada.cookies["csrftoken"].value}
    tried = ada.post(f"/agents/{cast.echo.pk}/pause", fields)
    assert (tried.status_code, Agent.objects.get(pk=cast.echo.pk).active) == (403, True)
    assert RefusedAct.objects.filter(person=cast.ada, act="administer").exists()


def test_what_was_done_stands_on_the_page_and_cannot_be_changed(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    _press(adam, cast.echo, "pause")
    _press(adam, cast.echo, "accounts", accounts=["plain-main"])
    assert list(AgentAct.objects.order_by("pk").values_list("act", "person__username")) == [
        ("agent_paused", "adam"),
        ("accounts_changed", "adam"),
    ]
    assert "Agent paused" in _page(adam, cast.echo)
    assert Intent.objects.count() == 2
    with pytest.raises(IntegrityError), transaction.atomic():
        AgentAct.objects.all().delete()
    with pytest.raises(IntegrityError), transaction.atomic():
        AgentAct.objects.update(act="nothing")


def test_what_came_of_the_proposals_is_counted_per_agent(cast: Cast) -> None:
    for ref in ("A-1", "A-2", "A-3"):
        build.order(ref)
    build.authorized(cast.foxtrot, cast.cleo, order_ref="A-1", amount_minor=900)
    build.proposed(cast.foxtrot, "A-2", 1900)
    build.proposed(cast.echo, "A-3", 1900)
    page = text(signed_in(cast.ben).get("/agents"))
    assert "2 proposed" in page
    assert "1 approved, 0 rejected, 0 stale" in page


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"name": "Echo"}, "There is an agent Echo already"),
        ({"name": "<b>"}, "1 to 64 letters"),
        ({"owner": "nobody"}, "not an active person"),
        ({"accounts": ["elsewhere"]}, "Not accounts of ours: elsewhere"),
    ],
)
def test_a_wrong_wish_is_refused_by_name_and_keeps_what_was_typed(
    cast: Cast, wish: dict[str, Any], says: str
) -> None:
    adam = signed_in(cast.adam)
    fields = form_on(text(adam.get("/agents")), "/agents/create")
    right = {"name": "Golf", "owner": "cleo", "accounts": ["plain-main"]}
    answer = adam.post("/agents/create", fields | right | wish)
    assert answer.status_code in (409, 422)
    assert says in text(answer)
    assert form_on(text(answer), "/agents/create")["owner"] == (right | wish)["owner"]
    assert Agent.objects.count() == 2
