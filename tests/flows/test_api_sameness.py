"""Every rule of what counts as the same refund, played at the agents' door."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from refunds import approvals, policies
from refunds.domain import sameness
from refunds.domain.fingerprint import arguments_digest
from refunds.models import Operation, Proposal
from tests import build
from tests.cast import Cast
from tests.flows.door import Answer, Door, wish

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


def end(cast: Cast) -> Operation:
    """A lead says no to the one operation there is."""
    operation = Operation.objects.get()
    approvals.reject(operation.pk, cast.ben, reason="not our order at all", version=2)
    operation.refresh_from_db()
    return operation


def met(rule: sameness.Sameness, answer: Answer, first: Answer) -> None:
    """The answer is what the rule's line in the table says."""
    assert answer.status == rule.status
    known = answer.body["operation_id"] == first.body["operation_id"]
    assert known is (rule.status != 201)
    if rule.outcome.startswith("`"):
        assert answer.body["outcome"] == rule.outcome.split("`")[1]
    if rule.status == 409:
        assert answer.code == rule.code


def test_the_same_call(door: Door) -> None:
    call = wish()
    first = door.send("POST", "/refunds", call)
    met(sameness.SAME_CALL, door.send("POST", "/refunds", call), first)
    for change in (
        {"amount_minor": 7800},
        {"reason_code": "goodwill"},
        {"order_ref": "4822"},
        {"payment_ref": "pi_other"},
        {"currency": "EUR"},
    ):
        other = door.send("POST", "/refunds", call | change)
        assert (other.status, other.code) == (409, sameness.SAME_CALL.code), change
        assert other.body["operation_id"] == first.body["operation_id"]
    assert Operation.objects.count() == 1


def test_the_same_wish(door: Door, cast: Cast) -> None:
    first = door.propose(request_ref="return-17")
    met(sameness.SAME_WISH, Door(cast.foxtrot).propose(request_ref="return-17"), first)
    for change in ({"amount_minor": 7800}, {"currency": "EUR"}, {"payment_ref": "pi_other"}):
        other = door.propose(request_ref="return-17", **change)
        assert (other.status, other.code) == (409, sameness.SAME_WISH.code), change
    end(cast)
    met(sameness.SAME_WISH, door.propose(request_ref="return-17"), first)


@pytest.mark.parametrize("more", [{}, {"request_ref": "return-18"}, {"reason_code": "goodwill"}])
def test_an_equal_one_that_is_open(door: Door, cast: Cast, more: dict[str, Any]) -> None:
    first = door.propose()
    met(sameness.OPEN_EQUIVALENT, Door(cast.foxtrot).propose(**more), first)
    separate = door.propose(separate_from=first.body["operation_id"], **more)
    met(sameness.OPEN_EQUIVALENT, separate, first)


def test_an_equal_one_that_has_ended(door: Door, cast: Cast) -> None:
    first = door.propose()
    end(cast)
    met(sameness.ENDED_EQUIVALENT, Door(cast.foxtrot).propose(request_ref="return-18"), first)
    assert Operation.objects.count() == 1


def test_a_separate_one(door: Door, cast: Cast) -> None:
    first = door.propose()
    end(cast)
    second = door.propose(separate_from=first.body["operation_id"])
    met(sameness.SEPARATE, second, first)
    assert second.body["possible_repeat"] is True


def test_a_call_that_was_already_done_wishes_nothing_new_when_the_window_is_over(
    door: Door, cast: Cast
) -> None:
    first = door.propose()
    end(cast)
    late = wish()
    answers = [door.send("POST", "/refunds", late) for _ in range(2)]
    over = timedelta(seconds=policies.current().repeat_window_seconds + 60)
    Operation.objects.update(settled_at=timezone.now() - over)
    answers.append(door.send("POST", "/refunds", late))
    for answer in answers:
        met(sameness.ENDED_EQUIVALENT, answer, first)
    changed = door.send("POST", "/refunds", late | {"amount_minor": 100})
    assert (changed.status, changed.code) == (409, sameness.SAME_CALL.code)
    assert (Operation.objects.count(), Proposal.objects.count()) == (1, 2)
    # A new call, after the window, is a new wish.
    assert door.propose().status == 201


def test_the_window_that_the_table_names_is_the_policys() -> None:
    assert policies.current().repeat_window_seconds == 72 * 3600
    assert "72 hours" in sameness.ENDED_EQUIVALENT.scope


def test_every_canonical_argument_changes_the_digest() -> None:
    values: dict[str, Any] = dict.fromkeys(sameness.CANONICAL_ARGUMENTS, "x") | {"amount_minor": 1}
    digests = {arguments_digest(**values)}
    digests |= {
        arguments_digest(**values | {name: 2 if name == "amount_minor" else "y"})
        for name in sameness.CANONICAL_ARGUMENTS
    }
    assert len(digests) == len(sameness.CANONICAL_ARGUMENTS) + 1


def test_the_table_has_a_line_of_five_cells_for_every_rule() -> None:
    lines = sameness.markdown_table().splitlines()
    assert len(lines) == 2 + len(sameness.RULES)
    assert all(line.count("|") == 6 for line in lines)
    for rule, line in zip(sameness.RULES, lines[2:], strict=True):
        assert line.startswith(f"| {rule.name} |")
        assert all(f"`{name}`" in line for name in rule.key + rule.compared)
        assert str(rule.status) in line
        assert rule.code in line
