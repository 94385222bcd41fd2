"""What an account had refunded before we began counts, and is nobody's work."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from reconciliation import account_sweep
from reconciliation.models import Case
from refunds import dispatch
from refunds.models import Operation, Payment, ProviderAccount
from tests import build
from tests.cast import Cast
from tests.ledger.rows import everything
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
SINCE = "2020-01-01T00:00:00Z"


def adopt(account: str = "plain-main", since: str = SINCE, by: str = "ines") -> str:
    out = StringIO()
    call_command("adopt", account, "--since", since, "--by", by, stdout=out)
    return out.getvalue().strip()


def elsewhere(provider: SandboxProcess, payment: str, amount_minor: int) -> None:
    made = {"account": "plain-main", "payment": payment, "amount_minor": amount_minor}
    provider.control("POST", "/external_refund", made)


def test_earlier_refunds_count_once_and_become_no_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    for ref in ("1000", "1001", "1002"):
        provider.payment(f"pi_{ref}")
    build.order("1000")
    build.order("1001")
    ours = build.authorized(cast.omar, cast.ben, order_ref="1001", amount_minor=2000)
    assert dispatch.send(str(ours.pk)) == "confirmed"
    elsewhere(provider, "pi_1000", 3000)
    elsewhere(provider, "pi_1000", 1000)
    elsewhere(provider, "pi_1002", 500)
    assert adopt() == ("2 counted, 0 known already, 1 our own; 1 of payments that are not fed here")
    assert Payment.objects.get(ref="pi_1000").refunded_minor == 4000
    assert Payment.objects.get(ref="pi_1001").refunded_minor == 2000
    before = everything()
    assert adopt().startswith("0 counted, 2 known already, 1 our own;")
    assert everything() == before
    ProviderAccount.objects.get_or_create(name="plain-main")
    account_sweep.ring_for_due(Operation.objects.get().created_at)
    account_sweep.sweep_account("plain-main")
    assert not Case.objects.exists()


def test_a_list_that_ends_early_is_said(provider: SandboxProcess, cast: Cast) -> None:
    provider.payment("pi_1000")
    build.order("1000")
    elsewhere(provider, "pi_1000", 3000)
    provider.fault("lookup_503", on="list")
    with pytest.raises(CommandError, match="was not read to its end") as ended:
        adopt()
    assert ended.value.returncode == 2


@pytest.mark.parametrize(
    ("account", "since", "by", "said"),
    [
        ("plain-nowhere", SINCE, "ines", "plain-nowhere is not an account"),
        ("plain-blind", SINCE, "ines", "plain-blind lists no refunds"),
        ("plain-main", "yesterday", "ines", "--since: "),
        ("plain-main", SINCE, "ben", "needs one of the roles admin, ops_lead"),
    ],
)
def test_what_cannot_be_adopted_is_said(
    cast: Cast, account: str, since: str, by: str, said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        adopt(account, since, by)
