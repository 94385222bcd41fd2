"""Who must say yes, on stored proposals: splits are summed, and who asked is not who decides."""

from __future__ import annotations

import pytest

from refunds import approvals
from refunds.domain.errors import Refusal
from refunds.models import Operation
from tests import build
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

# Three times 40 against a limit of 100, told apart by amounts that differ a little (T4).
SPLIT = (4000, 4001, 4002)


def split(cast: Cast, *, orders: list[str], customers: list[str], by: list[str]) -> list[int]:
    """The tiers of three proposals; each list says what is shared between them."""
    tiers = []
    for amount_minor, ref, customer, name in zip(SPLIT, orders, customers, by, strict=True):
        if not Operation.objects.filter(order__ref=ref).exists():
            build.order(ref, customer_ref=customer, captured_minor=50_000)
        proposer = cast.agents.get(name) or cast.people[name]
        tiers.append(build.proposed(proposer, ref, amount_minor).tier)
    return tiers


ONE, THREE = ["81", "81", "81"], ["81", "82", "83"]
CUSTOMERS = ["cus_a", "cus_b", "cus_c"]
PEOPLE = ["omar", "olga", "Echo"]


def test_three_refunds_that_share_nothing_need_one_lead_each(cast: Cast) -> None:
    assert split(cast, orders=THREE, customers=CUSTOMERS, by=PEOPLE) == [1, 1, 1]


def test_splits_of_one_payment_are_summed(cast: Cast) -> None:
    assert split(cast, orders=ONE, customers=[""] * 3, by=PEOPLE) == [1, 1, 2]


def test_splits_over_the_orders_of_one_customer_are_summed(cast: Cast) -> None:
    assert split(cast, orders=THREE, customers=["cus_a"] * 3, by=PEOPLE) == [1, 1, 2]


@pytest.mark.parametrize("name", ["omar", "Echo"])
def test_splits_by_one_proposer_are_summed(cast: Cast, name: str) -> None:
    assert split(cast, orders=THREE, customers=CUSTOMERS, by=[name] * 3) == [1, 1, 2]


def test_what_ended_without_money_is_not_summed(cast: Cast) -> None:
    build.order("81", captured_minor=50_000)
    for amount_minor in SPLIT[:2]:
        operation = build.proposed(cast.omar, "81", amount_minor)
        approvals.reject(
            operation.pk, cast.ben, reason="the goods came back", version=operation.version
        )
    assert build.proposed(cast.omar, "81", SPLIT[2]).tier == 1


def asked_for_by_ben(cast: Cast, amount_minor: int) -> Operation:
    build.order(captured_minor=900_000)
    return build.proposed(
        cast.echo if amount_minor <= 20_000 else cast.omar,
        amount_minor=amount_minor,
        requested_by_kind="person",
        requested_by_ref="ben",
    )


def test_in_the_first_tier_who_asked_may_approve_and_it_is_written_down(cast: Cast) -> None:
    operation = asked_for_by_ben(cast, 7900)
    approved = approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert approved.complete
    assert approved.approval.asked_by_approver
    assert not operation.approvals.exclude(asked_by_approver=True).exists()


def test_above_it_who_asked_approves_nothing(cast: Cast) -> None:
    operation = asked_for_by_ben(cast, 50_000)
    assert operation.tier == 2
    with pytest.raises(Refusal) as refused:
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert refused.value.code == "own_proposal"
    assert "asked for by you" in refused.value.detail
    assert not operation.approvals.exists()


def test_the_owner_of_the_agent_never_approves_whoever_asked(cast: Cast) -> None:
    operation = asked_for_by_ben(cast, 7900)
    with pytest.raises(Refusal) as refused:
        approvals.approve(operation.pk, cast.ada, build.shown(operation))
    assert refused.value.code == "own_proposal"


def test_a_customer_of_the_same_name_is_nobody_of_the_house(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo, requested_by_kind="customer", requested_by_ref="ben")
    approved = approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert not approved.approval.asked_by_approver
