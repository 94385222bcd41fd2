"""Rules 47 and 48: the list is the page's, and the claim reads the log under the order's lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.db import connection, transaction

from refunds import approvals, policies, withdrawal
from refunds.consent import Shown
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import Sibling
from refunds.ledger.claim import CLAIM, attempt_of
from refunds.models import Approval, Operation, Order, OrderMove, Payment, Person
from refunds.proposal import Caller
from refunds.providers.plain_contracts import CONTRACTS
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import everything, held, state_of
from tests.ledger.side_by_side import LAPSED, approved, ended_by, proposals, said
from tests.ledger.stage import creates, make_due, refunds, run, somebody_waits_for_a_lock
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

# Rule 47: the list is the page's list


def refused(operation: Operation, by: Person, shown: Shown) -> Refusal:
    before = everything()
    with pytest.raises(Refusal) as refusal:
        approvals.approve(operation.pk, by, shown)
    assert everything() == before
    return refusal.value


def test_rule_47_a_newcomer_after_the_page_was_drawn_refuses_the_press(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, _ = proposals(provider, cast, 1200, 1850)
    page = build.shown(first)
    newcomer = build.proposed(cast.omar, amount_minor=300)
    refusal = refused(first, cast.ben, page)
    assert (refusal.code, refusal.status) == ("stale_page", 409)
    assert "The other refunds of order 4821 changed" in refusal.detail
    withdrawal.withdraw(newcomer.pk, by=Caller(person=cast.omar))
    approvals.approve(first.pk, cast.ben, page)


def test_rule_47_a_sibling_that_ended_after_the_page_was_drawn_refuses_the_press(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    page = build.shown(first)
    withdrawal.withdraw(sibling.pk, by=Caller(person=cast.omar))
    assert refused(first, cast.ben, page).code == "stale_page"


def test_rule_47_a_page_that_lists_another_amount_refuses_the_press(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    page = build.shown(first)
    [listed] = page.siblings
    assert listed == Sibling(sibling.pk, 1850)
    other = Shown(
        fingerprint=page.fingerprint,
        order_version=page.order_version,
        siblings=(Sibling(sibling.pk, 1851),),
    )
    assert refused(first, cast.ben, other).code == "stale_page"


def test_rule_47_the_approval_keeps_the_list_of_its_page(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, third = proposals(provider, cast)
    approved(cast.ben, first)
    kept = Approval.objects.get(operation=first)
    assert dict(zip(kept.shown_operations, kept.shown_amounts_minor, strict=True)) == {
        second.pk: 1850,
        third.pk: 725,
    }


def test_rule_47_that_a_sibling_was_approved_meanwhile_is_no_news(
    provider: SandboxProcess, cast: Cast
) -> None:
    parcels = proposals(provider, cast)
    pages = [build.shown(each) for each in parcels]
    for parcel, page in zip(parcels, pages, strict=True):
        approvals.approve(parcel.pk, cast.ben, page)
    assert said(*parcels) == ["confirmed"] * 3


def test_rule_47_with_a_quorum_each_approval_explains_the_log_by_its_own_list(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The first lead never saw the newcomer; that the second did is not enough."""
    large, _ = proposals(provider, cast, 30_000, 1850)
    approved(cast.ben, large)
    newcomer = build.proposed(cast.omar, amount_minor=300)
    approved(cast.cleo, large)
    assert state_of(large) == states.AUTHORIZED
    approved(cast.ben, newcomer)
    approved(cast.cleo, newcomer)
    assert said(newcomer, large) == ["confirmed", "lapsed"]
    assert ended_by(large) == LAPSED


def test_rule_47_approvals_on_two_pages_add_up_where_both_explain_what_happened(
    provider: SandboxProcess, cast: Cast
) -> None:
    small, large = proposals(provider, cast, 1850, 30_000)
    approved(cast.ben, large)
    approved(cast.ben, small)
    assert said(small) == ["confirmed"]
    approved(cast.cleo, large)
    assert state_of(large) == states.AUTHORIZED
    assert said(large) == ["confirmed"]


def test_rule_47_approvals_do_not_add_up_where_one_does_not_explain_what_happened(
    provider: SandboxProcess, cast: Cast
) -> None:
    [large] = proposals(provider, cast, 30_000)
    approved(cast.ben, large)
    unshown = build.proposed(cast.omar, amount_minor=300)
    approved(cast.ben, unshown)
    approved(cast.cleo, unshown)
    assert said(unshown) == ["confirmed"]
    approved(cast.cleo, large)
    large.refresh_from_db()
    assert (large.state, large.round) == (states.AWAITING_APPROVAL, 2)
    approved(cast.ben, large)
    assert said(large) == ["confirmed"]


def test_rule_47_policy_alone_has_seen_no_list_and_forgives_nothing(
    provider: SandboxProcess, cast: Cast, settings: Any, tmp_path: Path
) -> None:
    policy = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(policy.replace("tier0_max_minor = 0", "tier0_max_minor = 1000"))
    policies.current.cache_clear()
    cleared, sibling = proposals(provider, cast, 200, 5000)
    assert (cleared.state, cleared.quorum) == (states.AUTHORIZED, 0)
    approved(cast.ben, sibling)
    assert said(sibling, cleared) == ["confirmed", "lapsed"]


# Rule 48: log and balance under the lock, in the claim


def claim_inside(operation: Operation) -> None:
    """The claim statement within the open transaction, which holds its locks until the end."""
    attempt = attempt_of("another worker", {}, CONTRACTS["plain-main"], configured.LIMITS)
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, attempt | {"id": operation.pk})
        assert cursor.fetchone() is not None


def test_rule_48_a_claim_that_waited_behind_its_sibling_reads_the_log_again(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, sibling)
    sender = troupe.actor("send", [first])
    with transaction.atomic():
        claim_inside(sibling)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(first.pk): "confirmed"}
    assert held(sibling) == (1850, "held")
    assert len(refunds(provider, first)) == 1


def test_rule_48_what_nobody_explains_does_not_slip_in_while_a_claim_waits(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """The waiting statement's snapshot shows neither move; the locked version shows both."""
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, sibling)
    sender = troupe.actor("send", [first])
    with transaction.atomic():
        claim_inside(sibling)
        build.external_refund("4821", 1850)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(first.pk): "lapsed"}
    assert creates(provider) == []
    assert ended_by(first) == LAPSED


def test_rule_48_an_unshown_refund_does_not_slip_in_while_a_claim_waits(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    first, _ = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first)
    unshown = build.authorized(cast.omar, cast.ben, amount_minor=300)
    sender = troupe.actor("send", [first])
    with transaction.atomic():
        claim_inside(unshown)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(first.pk): "lapsed"}
    assert creates(provider) == []


def test_rule_48_of_two_that_list_each_other_the_second_is_stale_when_the_money_is_gone(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, second)
    run("UPDATE payment SET captured_minor = 3000")
    assert said(first, second) == ["confirmed", "lapsed"]
    assert ended_by(second) == (states.AWAITING_APPROVAL, "balance")
    assert Payment.objects.get().refunded_minor == 1200


def test_rule_48_siblings_that_nobody_has_money_for_are_not_approved(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment(captured_minor=3000)
    build.order(captured_minor=3000)
    first, second = [build.proposed(cast.omar, amount_minor=minor) for minor in (1200, 1850)]
    approved(cast.ben, first)
    refusal = refused(second, cast.ben, build.shown(second))
    assert refusal.code == "balance"
    assert refusal.facts == {"remaining_minor": 1800}


def test_rule_48_the_second_send_forgives_its_own_hold_and_its_siblings(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, third = proposals(provider, cast)
    approved(cast.ben, first, second, third)
    assert said(second) == ["confirmed"]
    provider.fault("rate_429")
    assert said(first) == ["not_executed"]
    first.refresh_from_db()
    assert first.send_version == Order.objects.get().version == 3
    assert said(third) == ["confirmed"]
    make_due(first)
    assert said(first) == ["confirmed"]
    assert len(refunds(provider, first)) == 1
    assert OrderMove.objects.filter(operation=first, cause="reserved").count() == 1


def test_rule_48_the_second_send_forgives_nothing_else(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, second)
    provider.fault("rate_429")
    assert said(first) == ["not_executed"]
    unshown = build.authorized(cast.omar, cast.ben, amount_minor=300)
    assert said(unshown) == ["confirmed"]
    make_due(first)
    assert said(first) == ["lapsed"]
    assert held(first) == (0, "released")
    assert said(second) == ["lapsed"]
