"""Who is told is a setting: each wrong value has a sentence and a hint, and the docs' check works."""

from __future__ import annotations

import re
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from config import env
from reconciliation import checks
from reconciliation.outbox_signing import headers, read_secret
from tests.outbox.receiver import SECRET

DOCS = Path(__file__).resolve().parents[2] / "docs/operating.md"


@pytest.fixture
def told(settings: Any) -> Any:
    """Settings with which everything may be sent."""
    settings.CALLBACKS = {"merchant": "https://shop.example/hooks"}
    settings.CALLBACK_HOSTS = ("shop.example",)
    settings.CALLBACK_SECRETS = (SECRET,)
    return settings


def ids() -> list[str]:
    found = [*checks.receivers_are_usable(), *checks.mail_is_encrypted()]
    assert all(each.hint for each in found)
    return [str(each.id).removeprefix("aftersend.") for each in found]


def test_receivers_that_can_be_told_are_no_trouble(told: Any) -> None:
    assert ids() == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"CALLBACKS": {"shop": "https://shop.example/"}}, ["E030"]),
        ({"CALLBACKS": {"merchant": "http://shop.example/"}}, ["E031"]),
        ({"CALLBACKS": {"merchant": "shop.example"}}, ["E031"]),
        ({"CALLBACKS": {"agent:Echo": "https://echo.example/"}}, ["E032"]),
        ({"CALLBACKS": {"merchant": "https://127.0.0.1/"}, "PRODUCTION": True}, ["E032"]),
        ({"CALLBACK_SECRETS": ()}, ["E033"]),
        ({"CALLBACK_SECRETS": (SECRET, "whsec_c2hvcnQ=")}, ["E034"]),
        ({"PRODUCTION": True, "WRITES_MAIL": True, "MAILERS": {"default": {}}}, ["E035"]),
    ],
)
def test_each_wrong_value_has_an_id_and_a_hint(
    told: Any, changes: dict[str, Any], found: list[str]
) -> None:
    for name, value in changes.items():
        setattr(told, name, value)
    told.ALLOW_LOOPBACK_PROVIDERS = not told.PRODUCTION
    assert ids() == found


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"AFTERSEND_CALLBACKS": "https://shop.example"}, "it must be JSON"),
        ({"AFTERSEND_CALLBACKS": '{"merchant": 7}'}, "AFTERSEND_CALLBACKS"),
        ({"AFTERSEND_EMAIL_URL": "mail.example"}, "must be smtps://, smtp+tls:// or smtp://"),
        ({"AFTERSEND_EMAIL_URL": "smtps://mail.example"}, "AFTERSEND_EMAIL_FROM must be set"),
    ],
)
def test_what_cannot_be_read_ends_the_start_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], sentence: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        env.load()
    assert sentence in str(ended.value)


def test_a_mail_server_is_read_from_its_address() -> None:
    options: Any = env.mailer("smtp+tls://refunds:p%40ss@mail.example")["OPTIONS"]
    assert (options["host"], options["port"], options["use_tls"]) == ("mail.example", 587, True)
    assert (options["username"], options["password"]) == ("refunds", "p@ss")


def test_the_check_of_the_docs_takes_what_we_sign_and_nothing_else(told: Any) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - what the page tells others to run
    check = names["is_from_aftersend"]
    (secret,) = printed("merchant")
    other = printed_new()
    told.CALLBACK_SECRETS = (other, SECRET)
    both = printed("merchant")
    assert both[1] == secret
    now = int(time.time())
    signed = headers("an-id", now, b'{"a":1}', both)
    assert check(signed, b'{"a":1}', secret)
    assert check(signed, b'{"a":1}', both[0])
    assert not check(signed, b'{"a":2}', secret)
    assert not check(signed, b'{"a":1}', other)
    assert not check(signed | {"webhook-id": "another"}, b'{"a":1}', secret)
    assert not check(headers("an-id", now - 301, b"{}", both), b"{}", secret)


def printed(receiver: str) -> list[str]:
    out = StringIO()
    call_command("callback_secret", receiver, stdout=out)
    return out.getvalue().split()


def printed_new() -> str:
    out = StringIO()
    call_command("callback_secret", "--new", stdout=out)
    made = out.getvalue().strip()
    assert len(read_secret(made)) == 32
    return made


def test_a_secret_is_printed_only_for_who_is_told(told: Any) -> None:
    with pytest.raises(CommandError, match="ticket is no receiver.*Known: merchant"):
        printed("ticket")
    with pytest.raises(CommandError, match="Name one receiver, or say --new"):
        call_command("callback_secret")
    told.CALLBACK_SECRETS = ()
    with pytest.raises(CommandError, match="no secret to sign with"):
        printed("merchant")
