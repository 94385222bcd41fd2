"""Who gets in, for how long, and what somebody without a session or a role is shown."""

from __future__ import annotations

import time

import pytest
from django.test import Client

from review.models import RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import signed_in, text, try_password

pytestmark = pytest.mark.django_db
PAGES = ("/approvals", "/unknown", "/sending")


def _age_session(client: Client, **seconds: int) -> None:
    session = client.session
    for name, age in seconds.items():
        session[name] = int(time.time()) - age
    session.save()


def _sentence(answer: object) -> str:
    page = text(answer)
    start = page.index('role="alert"')
    return page[start : page.index("</p>", start)]


def test_an_unknown_name_and_a_wrong_password_get_the_same_words(cast: Cast) -> None:
    wrong = try_password(Client(), "ada", "not-the-password")
    unknown = try_password(Client(), "nobody-here", "not-the-password")
    assert wrong.status_code == unknown.status_code == 422
    assert _sentence(wrong) == _sentence(unknown)
    assert "do not fit together" in _sentence(wrong)


def test_the_sixth_try_on_one_name_waits_and_says_how_long(cast: Cast) -> None:
    client = Client()
    for _ in range(5):
        assert try_password(client, "ada", "guess").status_code == 422
    answer = try_password(client, "ada", "a-long-test-password")
    assert answer.status_code == 429
    assert "Try again in 15 min" in text(answer)
    assert "_auth_user_id" not in client.session
    assert try_password(Client(), "ben", "a-long-test-password").status_code == 302


def test_a_page_without_a_session_leads_to_signing_in_and_back(cast: Cast) -> None:
    answer = Client().get("/approvals?tab=all")
    assert answer.status_code == 302
    assert answer["Location"] == "/sign-in?next=%2Fapprovals%3Ftab%3Dall"


def test_a_fragment_without_a_session_is_a_401_in_place(cast: Cast) -> None:
    answer = Client().get("/approvals", headers={"HX-Request": "true"})
    assert answer.status_code == 401
    assert answer["HX-Retarget"] == "#slot"
    assert "Nothing was lost and nothing was submitted" in text(answer)
    assert "<html" not in text(answer)


def test_signing_out_is_a_post_only(cast: Cast) -> None:
    ada = signed_in(cast.ada)
    assert ada.get("/sign-out").status_code == 405
    assert ada.get("/approvals").status_code == 200


def test_half_an_hour_of_silence_ends_a_session(cast: Cast) -> None:
    ada = signed_in(cast.ada)
    assert ada.get("/").status_code == 200
    _age_session(ada, seen_at=1_801)
    answer = ada.get("/", follow=True)
    assert answer.redirect_chain[0][0].startswith("/sign-in")
    assert "Nothing was submitted" in text(answer)


def test_half_a_day_ends_a_session_however_busy_it_was(cast: Cast) -> None:
    ada = signed_in(cast.ada)
    ada.get("/")
    _age_session(ada, signed_in_at=43_201)
    assert ada.get("/").status_code == 302


def test_a_poll_does_not_keep_a_session_alive_and_a_person_does(cast: Cast) -> None:
    ada = signed_in(cast.ada)
    ada.get("/")
    _age_session(ada, seen_at=1_000)
    ada.get("/approvals?since=", headers={"HX-Request": "true"})
    assert ada.session["seen_at"] < time.time() - 900
    ada.get("/approvals")
    assert ada.session["seen_at"] > time.time() - 60


def test_the_stranger_sees_only_that_there_is_nothing_to_see(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    dora = signed_in(cast.dora)
    home = dora.get("/")
    assert home.status_code == 200
    assert "you have no role here" in text(home)
    assert "Approvals" not in text(home)
    for page in PAGES:
        assert dora.get(page).status_code == 403
    assert dora.get(f"/operations/{operation.pk}").status_code == 404


def test_a_rep_has_a_home_and_no_queue(cast: Cast) -> None:
    rosa = signed_in(cast.rosa)
    assert "What to say about an order" in text(rosa.get("/"))
    for page in PAGES:
        answer = rosa.get(page)
        assert answer.status_code == 403
        assert "You cannot open this page. It is for the role support lead" in text(answer)
        assert '<nav class="rail"' in text(answer), "the way back is gone"
    assert set(RefusedAct.objects.values_list("person__username", "object_ref", "code")) == {
        ("rosa", page, "role_missing") for page in PAGES
    }


@pytest.mark.parametrize("name", ["ada", "omar", "ines", "fay", "mia", "adam"])
def test_everybody_who_decides_or_oversees_reads_every_page(cast: Cast, name: str) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    client = signed_in(cast.people[name])
    for page in ("/", *PAGES, f"/operations/{operation.pk}", f"/approvals?open={operation.pk}"):
        assert client.get(page).status_code == 200, page


def test_an_operation_that_never_existed_is_a_404_in_our_words(cast: Cast) -> None:
    answer = signed_in(cast.ada).get("/operations/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a")
    assert answer.status_code == 404
    assert "not yours to see" in text(answer)


def test_every_page_carries_the_headers_of_a_payments_console(cast: Cast) -> None:
    answer = signed_in(cast.ada).get("/approvals")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer["Cache-Control"] == "no-store"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "payment=()" in answer["Permissions-Policy"]
    assert "HX-Request" in answer["Vary"]


def test_an_answer_that_was_on_its_way_while_somebody_signed_in_brings_no_old_token_back(
    cast: Cast,
) -> None:
    client = Client()
    first = client.get("/sign-in").cookies["csrftoken"].value
    assert try_password(client, "ada", "a-long-test-password").status_code == 302
    signed_in = client.cookies["csrftoken"].value
    assert signed_in != first
    late = Client(headers={"HX-Request": "true"})
    late.cookies["csrftoken"] = first
    answer = late.get("/approvals")
    assert answer.status_code == 401
    assert "csrfmiddlewaretoken" in text(answer)
    assert "csrftoken" not in answer.cookies


def test_a_form_without_its_token_is_refused_in_our_words(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    answer = signed_in(cast.ben).post(f"/approvals/{operation.pk}/approve", {})
    assert answer.status_code == 403
    assert "Nothing was recorded" in text(answer)
