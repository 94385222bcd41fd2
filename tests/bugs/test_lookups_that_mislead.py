"""Public reports of lookups that mislead: B096 to B102, and of modes that were mixed: B080."""

from __future__ import annotations

import pytest
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.models import Evidence, Operation
from tests import build
from tests.bugs.conftest import Accounts
from tests.bugs.history import let_pass
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    creates,
    open_reasons,
    state_of,
)
from tests.cast import Cast, assemble
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def verdicts(operation: Operation) -> list[str]:
    """What each lookup said, oldest first."""
    lookups = Evidence.objects.filter(operation=operation, kind="lookup").order_by("pk")
    return [each.facts["verdict"] for each in lookups]


def test_b080_a_lookup_in_another_mode_than_the_send_never_says_not_found(
    provider: SandboxProcess, db: None, accounts: Accounts
) -> None:
    row = {"adapter": "plain", "base_url": provider.plain_base(), "contract": "plain-main"}
    accounts({"shop-eu": row | {"mode": "live"}}, key="sandbox-key-plain-main")
    cast = assemble()
    provider.payment()
    build.order(account="shop-eu")
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    accounts({"shop-eu": row | {"mode": "test"}}, key="sandbox-key-plain-main")
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    finding = Evidence.objects.get(kind="lookup").facts
    assert finding["verdict"] == "cannot_tell"
    assert "mode, address or API version is not the one we sent to" in finding["because"]


def test_b096_an_empty_answer_that_lags_behind_sends_nothing_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("list_lag", on="list", seconds=60, times=None)
    for _ in range(2):
        reconciler.look_up(operation.pk)
        assert state_of(operation) == states.UNKNOWN
    assert verdicts(operation) == ["absent", "absent"]
    assert dispatch.ready(10) == []
    provider.advance(61)
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    assert len(creates(provider)) == 1


def test_b098_a_refund_on_a_later_page_is_found_and_the_pages_are_counted(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    outside = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 1}
    for _ in range(120):
        provider.control("POST", "/external_refund", outside)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    finding = Evidence.objects.get(kind="lookup").facts
    assert (finding["complete"], finding["pages"]) == (True, 2)
    assert len(finding["candidates"]) == 121


@pytest.mark.parametrize("fault", ["list_cursor_loop", "list_ignores_filter"])
def test_b098_a_list_that_is_not_read_to_its_end_cannot_tell(
    provider: SandboxProcess, cast: Cast, fault: str
) -> None:
    operation = authorized(provider, cast)
    for ref in ("pi_4821", "pi_9999"):
        if ref != "pi_4821":
            provider.payment(ref)
        outside = {"account": "plain-main", "payment": ref, "amount_minor": 1}
        provider.control("POST", "/external_refund", outside)
    provider.fault("drop_before_commit")
    provider.fault(fault, on="list", times=None)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    reconciler.look_up(operation.pk)
    assert verdicts(operation) == ["cannot_tell"]
    assert Evidence.objects.get(kind="lookup").facts["complete"] is False


def test_b100_of_two_equal_refunds_ours_is_known_by_our_reference(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=500)
    outside = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 500}
    made_outside = provider.control("POST", "/external_refund", outside)["id"]
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    [ours] = [each["id"] for each in provider.refunds() if each["id"] != made_outside]
    assert operation.provider_refunds.get().ref == ours


def test_b100_an_equal_refund_without_our_reference_is_shown_and_not_taken(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=500)
    outside = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 500}
    made_outside = [provider.control("POST", "/external_refund", outside)["id"] for _ in range(2)]
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    let_pass(60)
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.AUTHORIZED  # ours is proved absent, whatever else is there
    candidates = Evidence.objects.get(kind="lookup").facts["candidates"]
    assert [each["ref"] for each in candidates] == made_outside
    assert not operation.provider_refunds.exists()
    assert balance_of() == (500, 0, 12400)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert operation.provider_refunds.get().ref not in made_outside


def test_b100_where_no_marker_comes_back_an_equal_refund_is_neither_ours_nor_proof_of_absence(
    provider: SandboxProcess, db: None, accounts: Accounts
) -> None:
    account = "plain-nokeys"
    provider.configure(account, returns_markers=False)
    shop = {"adapter": "plain", "contract": "plain-unmarked"}
    shop["base_url"] = f"{provider.base_url}/plain/{account}"
    accounts({account: shop}, key=f"sandbox-key-{account}")
    cast = assemble()
    operation = authorized(provider, cast, account, amount_minor=500)
    provider.fault("drop_after_commit", account=account)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    outside = {"account": account, "payment": "pi_4821", "amount_minor": 500}
    provider.control("POST", "/external_refund", outside)
    both = [each["id"] for each in provider.refunds(account)]
    let_pass(3600)  # long after anything that is missing would prove something
    reconciler.look_up(operation.pk)
    assert (state_of(operation), balance_of()) == (states.UNKNOWN, (500, 0, 12400))
    assert open_reasons(operation) == ["unresolved"]
    found = Evidence.objects.get(kind="lookup").facts
    assert found["verdict"] == "cannot_tell"
    assert "ours may be one of" in found["because"]
    assert [each["ref"] for each in found["candidates"]] == both
    assert not operation.provider_refunds.exists()
    assert len(provider.refunds(account)) == 2


def test_b102_not_found_for_two_rungs_stays_unknown_and_is_found_on_the_third(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("list_lag", on="list", seconds=3600, times=2)
    for said in ("absent", "absent", "match"):
        let_pass(3)
        assert str(operation.pk) in reconciler.due(timezone.now(), batch_max=10)
        reconciler.look_up(operation.pk)
        assert verdicts(operation)[-1] == said
        assert state_of(operation) == (states.SUCCEEDED if said == "match" else states.UNKNOWN)
    assert len(creates(provider)) == 1
