"""A provider that executes one request twice: found, told, and its account sends nothing more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from reconciliation import reconciler
from reconciliation.models import Alarm, Case
from reconciliation.monitors import run
from refunds import dispatch
from refunds.ledger import sending
from refunds.models import Operation, ProviderAccount
from tests import build
from tests.bugs.steps import authorized, open_reasons, state_of
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.outside.steps import history, later, past, tick
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

LOST, KEPT_QUIET = "unanswered", "confirmed"


def paid_twice(provider: SandboxProcess, cast: Cast, answer: str = LOST) -> Operation:
    """The provider executes one request twice; its answer is lost, or shows one of the two."""
    operation = authorized(provider, cast, amount_minor=4000)
    provider.fault("execute_twice")
    if answer == LOST:
        provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == answer
    return operation


def ready(provider: SandboxProcess, cast: Cast, order: str, account: str) -> Operation:
    """Another approved refund, of a payment of its own."""
    provider.payment(f"pi_{order}", account=account)
    build.order(order, account=account)
    by = {"4822": cast.rosa, "4823": cast.omar}[order]  # what one asks for is summed up
    return build.authorized(by, cast.ben, order_ref=order, amount_minor=4100)


def pause_of(account: str = "plain-main") -> tuple[str, str]:
    row = ProviderAccount.objects.get(name=account)
    return row.pause_kind, row.pause_reason


def firing() -> dict[str, str]:
    return dict(
        Alarm.objects.filter(name="duplicates", ended_at=None).values_list("subject", "says")
    )


@pytest.mark.parametrize("answer", [LOST, KEPT_QUIET])
def test_a_double_is_found_in_one_round_pages_and_stops_its_account_and_no_other(
    provider: SandboxProcess, cast: Cast, answer: str
) -> None:
    operation = paid_twice(provider, cast, answer)
    same = ready(provider, cast, "4822", "plain-main")
    other = ready(provider, cast, "4823", "stripe-main")
    tick()
    one, two = (each["id"] for each in provider.refunds() if each["amount_minor"] == 4000)
    assert open_reasons(operation) == ["duplicate"]
    [(subject, says)] = firing().items()
    assert subject == "plain-main pi_4821"
    assert says.startswith("Order 4821: ")
    kind, reason = pause_of()
    assert kind == "duplicate"
    assert all(ref in said for ref in (one, two) for said in (says, reason))
    assert dispatch.send(str(same.pk)) == "waiting"
    assert (state_of(same), state_of(other)) == ("authorized", "authorized")
    assert dispatch.send(str(other.pk)) == "confirmed"
    assert [each["amount_minor"] for each in provider.refunds()] == [4000, 4000, 4100]


def test_what_people_have_seen_and_resumed_stops_nothing_again_and_a_third_payment_does(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = paid_twice(provider, cast)
    tick()
    assert pause_of()[0] == "duplicate"
    sending.resume("plain-main", by="ines")
    reconciler.look_up(operation.pk)
    assert pause_of() == ("", "")
    Case.objects.update(closed_at=timezone.now(), closed_because="written off")
    reconciler.look_up(operation.pk)
    assert pause_of() == ("", "")
    history(provider, past("rf_third", amount_minor=4000, marker=str(operation.pk)))
    reconciler.look_up(operation.pk)
    assert pause_of()[0] == "duplicate"
    assert "rf_third" in pause_of()[1]


def test_no_answer_and_no_probe_ends_the_stop_and_a_pause_that_would_end_by_itself_gives_way(
    provider: SandboxProcess, cast: Cast
) -> None:
    paid_twice(provider, cast)
    sending.pause("plain-main", kind="outage", reason="gone", by="dispatcher")
    tick()
    assert pause_of()[0] == "duplicate"
    assert not sending.end_pause("plain-main", kind="outage")
    later(provider, 600)
    tick()
    assert pause_of()[0] == "duplicate"


def test_the_pages_say_why_the_account_stopped_and_what_to_do(
    provider: SandboxProcess, cast: Cast
) -> None:
    paid_twice(provider, cast)
    tick()
    now = timezone.now()
    run.read_all({}, now)
    run.read_all({}, now + timedelta(minutes=5))
    ines = signed_in(cast.ines)
    providers = text(ines.get("/sending"))
    assert "<b>plain-main is paused</b>" in providers
    assert "A refund was paid twice." in providers
    assert "Find out why before you resume" in providers
    alerts = text(ines.get("/alerts"))
    assert "only then resume the account on Providers" in alerts
    assert len(firing()) == 1, "the monitor and the lookup speak of one thing"
