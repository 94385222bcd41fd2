"""Tries of passwords are counted by who would be let in, however the name is written."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory

from review import attempts
from tests.cast import PASSWORD, Cast
from tests.flows.console import form_on, signed_in, text, try_password

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", [" adam", "adam ", "\tadam", "ａｄａｍ", "\u00a0adam"])
def test_another_way_of_writing_a_name_is_no_further_try(cast: Cast, name: str) -> None:
    assert try_password(Client(), name, PASSWORD).status_code == 302, "it signs adam in"
    for _ in range(5):
        assert try_password(Client(), "adam", "guess").status_code == 422
    assert try_password(Client(), name, PASSWORD).status_code == 429


def test_a_stranger_at_the_sign_in_page_uses_up_nobodys_confirmations(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    for _ in range(6):
        try_password(Client(), f"proof of {cast.adam.pk}", "guess")
        try_password(Client(), f"proof:{cast.adam.pk}", "guess")
    fields = form_on(text(adam.get("/confirm")), "/confirm") | {"password": PASSWORD}
    assert adam.post("/confirm", fields).status_code == 303


def test_a_try_that_succeeds_after_its_window_has_ended_is_no_error() -> None:
    attempt = attempts.begin(RequestFactory().post("/sign-in"), "ada")
    cache.clear()
    attempt.succeeded()
    assert not attempts.begin(RequestFactory().post("/sign-in"), "ada").wait_seconds
