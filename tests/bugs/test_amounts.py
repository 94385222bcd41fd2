"""Public reports of amounts and currencies that changed their form: B049 to B065."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from reconciliation import reconciler
from refunds import dispatch, intake
from refunds.api.parsing import read_json
from refunds.domain import money, states
from refunds.domain.errors import Refusal
from refunds.domain.fingerprint import canonical
from refunds.models import Attempt, Evidence, Operation, Person
from tests import build
from tests.bugs.conftest import Accounts
from tests.bugs.steps import authorized, balance_of, open_reasons, state_of
from tests.bugs.terse_provider import listening
from tests.cast import Cast, assemble
from tests.flows import console
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNTS = ("plain-main", "stripe-main")


def refund_all(
    provider: SandboxProcess, cast: Cast, account: str, amount: str, currency: str
) -> dict[str, Any]:
    """Refund a whole payment of `amount` in `currency`; the refund in the provider's book."""
    amount_minor = money.parse_amount(amount, currency)
    operation = authorized(
        provider,
        cast,
        account,
        amount_minor=amount_minor,
        captured_minor=amount_minor,
        currency=currency,
        approvers=(cast.ben, cast.fay) if currency == "VND" else (cast.ben,),
    )
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert balance_of() == (0, amount_minor, 0)
    [refund] = provider.refunds(account)
    return refund


def shown_to(person: Person, operation: Operation) -> str:
    """The text of the opened proposal, without its mark-up."""
    return re.sub(r"<[^>]+>", "", console.opened(console.signed_in(person), operation))


@pytest.mark.parametrize("account", ACCOUNTS)
def test_b049_a_thousand_yen_are_a_thousand_yen(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    assert refund_all(provider, cast, account, "1000", "JPY")["amount_minor"] == 1000
    assert money.display(1000, "JPY") == "1\u202f000 JPY"
    with pytest.raises(Refusal) as refused:
        money.parse_amount("1000.00", "JPY")
    assert refused.value.code == "amount_fraction"


def test_b049_the_page_shows_yen_without_decimals(cast: Cast) -> None:
    build.order(currency="JPY", captured_minor=1000)
    operation = build.proposed(cast.echo, amount_minor=1000, currency="JPY")
    assert "Refund 1\u202f000 JPY on order 4821" in shown_to(cast.ben, operation)


@pytest.mark.parametrize("account", ACCOUNTS)
def test_b051_what_was_charged_without_decimals_is_refunded_without_decimals(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    refund = refund_all(provider, cast, account, "15000", "VND")
    [payment] = provider.book(account)["payments"]
    assert refund["amount_minor"] == payment["captured_minor"] == 15000


def test_b053_three_decimals_stay_three(provider: SandboxProcess, cast: Cast) -> None:
    assert refund_all(provider, cast, "plain-main", "1.234", "KWD")["amount_minor"] == 1234
    assert money.display(1234, "KWD") == "1.234 KWD"


def test_b053_a_provider_that_cannot_express_it_gets_nothing_rounded(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order(account="stripe-main", currency="KWD", captured_minor=1234)
    with pytest.raises(Refusal) as refused:
        build.proposed(cast.echo, amount_minor=1234, currency="KWD")
    assert (refused.value.code, refused.value.field) == ("amount_fraction", "amount")
    assert not Operation.objects.exists()
    assert provider.calls() == []


def test_b055_nineteen_ninety_nine_stays_nineteen_ninety_nine(
    provider: SandboxProcess, cast: Cast
) -> None:
    assert refund_all(provider, cast, "plain-main", "19.99", "EUR")["amount_minor"] == 1999


def test_b055_no_float_gets_in_and_none_into_a_digest() -> None:
    for body in (b'{"amount": 19.99}', b'{"amount_minor": 1999.0}', b'{"amount_minor": 1.999e3}'):
        with pytest.raises(Refusal) as refused:
            read_json(body)
        assert refused.value.code in ("amount_format", "amount_fraction")
    with pytest.raises(AssertionError, match="no float"):
        canonical({"amount_minor": 1999.0})


def test_b057_how_amounts_are_displayed_changes_nothing_that_is_sent(
    provider: SandboxProcess, cast: Cast, settings: Settings
) -> None:
    settings.USE_I18N = True
    settings.LANGUAGE_CODE = "de"
    settings.USE_THOUSAND_SEPARATOR = True
    settings.DECIMAL_SEPARATOR = ","
    settings.NUMBER_GROUPING = 0
    assert refund_all(provider, cast, "plain-main", "10.49", "EUR")["amount_minor"] == 1049
    assert money.display(1049, "EUR") == "10.49 EUR"


def test_b057_a_page_of_another_locale_shows_the_whole_amount_and_sends_it(
    provider: SandboxProcess, cast: Cast, settings: Settings
) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    settings.DECIMAL_SEPARATOR = ","
    provider.payment()
    build.order()
    operation = build.proposed(cast.echo, amount_minor=1049)
    ben = console.signed_in(cast.ben)
    assert "Refund 10.49 USD on order 4821" in shown_to(cast.ben, operation)
    form = console.drawn(ben, operation, "approve")
    assert ben.post(console.url(operation, "approve"), form).status_code == 303
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert [refund["amount_minor"] for refund in provider.refunds()] == [1049]


def test_b059_a_refund_in_another_currency_keeps_its_id_and_goes_to_a_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    for on in ("create", "list"):
        provider.fault("wrong_currency", on=on, currency="EUR", times=None)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    [refund] = provider.refunds("plain-main")
    assert Evidence.objects.get(kind="answer").facts["ref"] == refund["id"]
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    assert open_reasons(operation) == ["mismatch"]
    assert operation.halted
    [candidate] = Evidence.objects.get(kind="lookup").facts["candidates"]
    assert (candidate["ref"], candidate["fields"]["currency"]) == (refund["id"], "differs")
    assert balance_of() == (7900, 0, 5000)


@pytest.mark.parametrize(("amount_minor", "code"), [(0, "amount_zero"), (-500, "amount_negative")])
def test_b061_zero_and_less_are_refused_and_never_mean_everything(
    cast: Cast, amount_minor: int, code: str
) -> None:
    build.order()
    for caller in (intake.Caller(agent=cast.echo), intake.Caller(person=cast.ada)):
        with pytest.raises(Refusal) as refused:
            intake.propose(build.request(amount_minor=amount_minor), caller)
        assert (refused.value.code, refused.value.field) == (code, "amount")
    assert not Operation.objects.exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("0", "amount_zero"),
        ("0.00", "amount_zero"),
        ("-5", "amount_negative"),
        ("", "amount_format"),
        (" ", "amount_format"),
        ("null", "amount_format"),
        ("all", "amount_format"),
    ],
)
def test_b061_a_text_that_is_no_amount_is_refused_at_its_field(text: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        money.parse_amount(text, "EUR")
    assert (refused.value.code, refused.value.field) == (code, "amount")


def test_b061_what_goes_out_always_names_its_amount_and_the_database_wants_one(
    cast: Cast,
) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    assert json.loads(bytes(operation.body))["amount_minor"] == 7900
    operation.pk, operation.amount_minor = uuid4(), 0
    with pytest.raises(IntegrityError, match="operation_amount_positive"), transaction.atomic():
        operation.save(force_insert=True)


def test_b063_a_message_without_an_amount_is_no_full_refund(db: None, accounts: Accounts) -> None:
    with listening() as base_url:
        shop = {"adapter": "plain", "base_url": base_url, "contract": "plain-main"}
        accounts({"shop-eu": shop}, key="key")
        cast = assemble()
        build.order(account="shop-eu")
        operation = build.authorized(cast.echo, cast.ben)
        assert dispatch.send(str(operation.pk)) == "unanswered"
        assert Attempt.objects.get().outcome == "unanswered"
        assert state_of(operation) == states.UNKNOWN
        assert operation.due_at is not None
        reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    assert open_reasons(operation) == ["mismatch"]
    [candidate] = Evidence.objects.get(kind="lookup").facts["candidates"]
    assert candidate["fields"]["amount"] == "missing"
    assert balance_of() == (7900, 0, 5000)


def test_an_answer_that_lacks_our_marker_is_no_proof_later_either(
    db: None, accounts: Accounts
) -> None:
    """It may be about anybody's equal refund: a provider that gives markers back owes us ours."""
    with listening(lacks="aftersend_operation") as base_url:
        shop = {"adapter": "plain", "base_url": base_url, "contract": "plain-main"}
        accounts({"shop-eu": shop}, key="key")
        cast = assemble()
        build.order(account="shop-eu")
        operation = build.authorized(cast.echo, cast.ben)
        assert dispatch.send(str(operation.pk)) == "unanswered"
        assert reconciler.look_up(operation.pk) == "OpenCase"
    assert state_of(operation) == states.UNKNOWN
    assert open_reasons(operation) == ["mismatch"]
    assert balance_of() == (7900, 0, 5000)


def test_b065_a_comma_is_refused_with_help_and_cents_are_taken(
    provider: SandboxProcess, cast: Cast
) -> None:
    for text in ("10,50", "1.050,00", "1,050", "10.50 EUR", "10 50", "+10.50", "\u0661\u0660"):
        with pytest.raises(Refusal) as refused:
            money.parse_amount(text, "EUR")
        assert refused.value.code == "amount_format"
        assert 'such as "79.00"' in refused.value.what_to_do
    with pytest.raises(Refusal) as refused:
        money.parse_amount("1.050", "EUR")
    assert refused.value.code == "amount_fraction"
    assert refund_all(provider, cast, "plain-main", "10.50", "EUR")["amount_minor"] == 1050
