"""The version of a provider's API: asked for with every request, and held against every answer."""

from __future__ import annotations

import pytest
from django.db import connection

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.models import Attempt, Evidence
from refunds.providers.stripe import API_VERSION
from tests.bugs.steps import answer_lost, authorized, state_of
from tests.cast import Cast
from tests.monitors.stage import guards_aside
from tests.outside.steps import tick
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_sent_and_asked_names_the_version_and_the_attempt_keeps_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, "stripe-main")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    reconciler.look_up(operation.pk)
    tick()
    calls = provider.calls("stripe-main")
    assert {each["on"] for each in calls} >= {"create", "list"}
    assert {each["api_version"] for each in calls} == {API_VERSION}
    assert Attempt.objects.get().account_identity["api_version"] == API_VERSION
    assert {each["api_version"] for each in provider.calls("plain-main")} <= {None}


@pytest.mark.parametrize(
    ("recorded", "state"), [("2019-01-01", states.UNKNOWN), ("", states.SUCCEEDED)]
)
def test_a_lookup_by_another_version_than_the_send_cannot_tell(
    provider: SandboxProcess, cast: Cast, recorded: str, state: str
) -> None:
    operation = answer_lost(provider, cast, "stripe-main")
    with guards_aside(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE attempt SET account_identity = jsonb_set(account_identity, '{api_version}',"
            " to_jsonb(%s::text))",
            [recorded],
        )
    reconciler.look_up(operation.pk)
    assert state_of(operation) == state
    said = Evidence.objects.get(kind="lookup").facts
    assert ("API version" in said["because"]) is (state == states.UNKNOWN)
