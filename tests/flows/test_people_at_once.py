"""Two admins who press at the same moment: each change is made once, and nobody is turned away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from refunds.models import Person
from review import people
from review.models import RoleChange
from tests.bugs.races import until_waiting
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
REASON = "Moves to another team in May."


def test_a_proposal_and_a_confirmation_never_wait_for_each_other(cast: Cast) -> None:
    with transaction.atomic():
        waiting = people.propose(
            cast.rosa.pk, roles=["lead"], active=True, reason=REASON, by=cast.ava
        )

    def confirm() -> None:
        try:
            with transaction.atomic():
                people.decide(waiting.pk, confirmed=True, by=cast.adam)
        finally:
            connections.close_all()

    # The confirmation holds the rows of everybody before dora, ava among them, and waits for hers;
    # the proposal's own commit then asks for the row of ava, who made it.
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            people.propose(cast.dora.pk, roles=["rep"], active=True, reason=REASON, by=cast.ava)
            confirmed = pool.submit(confirm)
            until_waiting(1)
        confirmed.result(timeout=10)
    assert RoleChange.objects.filter(person=cast.dora).count() == 1
    assert set(Person.objects.get(pk=cast.rosa.pk).groups.values_list("name", flat=True)) == {
        "lead"
    }
