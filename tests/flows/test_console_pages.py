"""Every page of the console draws, for every role, from what is really in the database."""

from __future__ import annotations

import pytest

from tests import build
from tests.cast import Cast
from tests.flows.console import opened, signed_in

pytestmark = pytest.mark.django_db


def test_a_lead_sees_the_queue_and_an_opened_proposal(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    for url in (
        "/",
        "/approvals",
        "/approvals?tab=stale",
        "/approvals?tab=all",
        "/unknown",
        "/sending",
        f"/operations/{operation.pk}",
    ):
        answer = ben.get(url)
        assert answer.status_code == 200, (url, answer.content[:2000])
    page = opened(ben, operation)
    assert "Approve refund of" in page
