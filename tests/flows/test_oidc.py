"""Signing in at a provider of one's own: discovery, code, signed token, groups that become roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from config import env
from config.env import Oidc
from refunds.models import Person
from review.models import RoleChange
from tests.cast import Cast
from tests.flows.console import form_on, signed_in, text, try_password
from tests.flows.identity_provider import CLIENT, SECRET, IdentityProvider, running

pytestmark = pytest.mark.django_db
NORA = {"sub": "u-17", "preferred_username": "nora", "email": "nora@shop.example"}


@pytest.fixture(scope="module")
def _server() -> Iterator[IdentityProvider]:
    with running() as provider:
        yield provider


@pytest.fixture
def idp(_server: IdentityProvider, settings: Any) -> IdentityProvider:
    """The provider, honest and known to the settings."""
    _server.cheat, _server.person = "", NORA | {"groups": ["refund-leads"]}
    settings.OIDC = Oidc(
        id="shop",
        name="Shop login",
        server_url=_server.url,
        client_id=CLIENT,
        secret=SECRET,
        roles={"refund-leads": "lead", "refund-admins": "admin"},
    )
    settings.SOCIALACCOUNT_PROVIDERS = env.social_providers(settings.OIDC)
    return _server


def _come_in(client: Client) -> Any:
    """From our button through the provider and back."""
    page = text(client.get("/sign-in?next=/approvals"))
    assert "Sign in with Shop login" in page
    leaving = client.post(
        "/oidc/shop/login/?next=/approvals",
        {"csrfmiddlewaretoken": form_on(page, "/sign-in")["csrfmiddlewaretoken"]},
    )
    assert leaving.status_code == 302, text(leaving)
    back = httpx.get(leaving["Location"], follow_redirects=False)
    parts = urlsplit(back.headers["Location"])
    return client.get(f"{parts.path}?{parts.query}")


def _roles(name: str) -> set[str]:
    return set(Person.objects.get(username=name).groups.values_list("name", flat=True))


def test_a_group_becomes_a_role_and_the_person_has_no_password(idp: IdentityProvider) -> None:
    client = Client(enforce_csrf_checks=True)
    answer = _come_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/approvals"), text(answer)
    nora = Person.objects.get(username="nora")
    assert _roles("nora") == {"lead"}
    assert not nora.has_usable_password()
    assert not nora.is_superuser
    assert client.get("/sending").status_code == 200
    change = RoleChange.objects.get(person=nora)
    assert (change.kind, change.before["roles"], change.after["roles"]) == (
        "provided",
        [],
        ["lead"],
    )


def test_roles_follow_the_groups_at_each_sign_in(idp: IdentityProvider) -> None:
    _come_in(Client(enforce_csrf_checks=True))
    idp.person = NORA | {"groups": ["refund-admins", "canteen"]}
    _come_in(Client(enforce_csrf_checks=True))
    assert _roles("nora") == {"admin"}
    assert Person.objects.filter(username__startswith="nora").count() == 1


def test_an_unknown_group_gives_no_role_and_says_whom_to_ask(idp: IdentityProvider) -> None:
    idp.person = NORA | {"groups": ["canteen"]}
    client = Client(enforce_csrf_checks=True)
    answer = _come_in(client)
    assert answer.status_code == 403
    assert "no role was given to you" in text(answer)
    assert "Ask whoever looks after your groups" in text(answer)
    assert not Person.objects.exists()
    assert client.get("/").status_code == 302


def test_who_loses_every_group_loses_every_role_and_is_not_let_in(idp: IdentityProvider) -> None:
    first = Client(enforce_csrf_checks=True)
    _come_in(first)
    idp.person = NORA | {"groups": []}
    assert _come_in(Client(enforce_csrf_checks=True)).status_code == 403
    assert _roles("nora") == set()
    assert first.get("/sending").status_code == 302, "the session with the old role has ended"


@pytest.mark.parametrize(
    "cheat", ["forged", "unsigned", "for another", "of another", "expired", "unknown key"]
)
def test_a_token_that_cannot_be_trusted_lets_nobody_in(idp: IdentityProvider, cheat: str) -> None:
    idp.cheat = cheat
    client = Client(enforce_csrf_checks=True)
    answer = _come_in(client)
    assert answer.status_code == 401
    assert "The sign-in provider" in text(answer)
    assert not Person.objects.exists()
    assert client.get("/").status_code == 302


def test_a_name_that_is_taken_here_is_never_taken_over(cast: Cast, idp: IdentityProvider) -> None:
    idp.person = NORA | {"preferred_username": "ada", "groups": ["refund-leads"]}
    _come_in(Client(enforce_csrf_checks=True))
    assert SocialAccount.objects.get().user.get_username() == "ada-2"
    assert cast.ada.has_usable_password()


@pytest.mark.parametrize("process", ["connect", "redirect"])
def test_no_identity_is_added_to_whoever_is_signed_in_here(
    cast: Cast, idp: IdentityProvider, process: str
) -> None:
    rosa = signed_in(cast.rosa)
    token = form_on(text(rosa.get("/profile")), "/profile/change")["csrfmiddlewaretoken"]
    leaving = rosa.post(f"/oidc/shop/login/?process={process}", {"csrfmiddlewaretoken": token})
    back = httpx.get(leaving["Location"], follow_redirects=False)
    parts = urlsplit(back.headers["Location"])
    assert rosa.get(f"{parts.path}?{parts.query}").status_code == 302
    assert SocialAccount.objects.get().user.get_username() == "nora"
    assert "nora" in text(rosa.get("/profile")), "this browser is Nora's now, and not Rosa's"
    assert _roles("rosa") == {"rep"}


def test_a_code_without_our_state_is_refused(idp: IdentityProvider) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.get("/oidc/shop/login/callback/?code=x&state=y").status_code == 401
    assert not Person.objects.exists()


def test_a_return_in_another_browser_is_refused(idp: IdentityProvider) -> None:
    client = Client(enforce_csrf_checks=True)
    page = text(client.get("/sign-in"))
    token = form_on(page, "/sign-in")["csrfmiddlewaretoken"]
    leaving = client.post("/oidc/shop/login/", {"csrfmiddlewaretoken": token})
    back = httpx.get(leaving["Location"], follow_redirects=False)
    stranger = Client(enforce_csrf_checks=True)
    parts = urlsplit(back.headers["Location"])
    assert stranger.get(f"{parts.path}?{parts.query}").status_code == 401
    assert not Person.objects.exists()


def test_roles_from_the_provider_are_not_changed_on_the_people_page(
    cast: Cast, idp: IdentityProvider
) -> None:
    _come_in(Client(enforce_csrf_checks=True))
    nora = Person.objects.get(username="nora")
    adam = signed_in(cast.adam)
    address = f"/people/{nora.pk}/change"
    fields = form_on(text(adam.get("/people")), address)
    answer = adam.post(address, fields | {"roles": "finance", "active": "on"})
    assert answer.status_code == 422
    assert _roles("nora") == {"lead"}


def test_a_provider_that_nobody_named_is_not_there(cast: Cast) -> None:
    assert Client().get("/oidc/shop/login/callback/").status_code == 404
    assert "Sign in with" not in text(try_password(Client(), "x", "y"))
