"""The storm of `make notices` in small: sixty deliveries of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from refunds import doorbell, policies, witness
from tests.cast import Cast
from tests.notices.storm import Storm, lenient_policy
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _a_shop_without_limits(tmp_path: Path, settings: Settings) -> Iterator[None]:
    settings.POLICY_FILE = lenient_policy(tmp_path)
    settings.WITNESS_DIR = tmp_path / "witness"
    policies.current.cache_clear()
    yield
    witness._identity_of_process.clear()
    doorbell.connect(lambda task, named, after: None)


def test_sixty_deliveries_of_every_kind_end_as_the_provider_has_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    found = Storm(provider, cast, 7, 60).run()
    assert found["ok"], found["examples"]
    assert {"again", "forged", "stale", "new"} <= set(found["kinds"])
    assert found["answers"][503] > 0
    assert found["outcomes"]["looked_up"] > 0
    assert found["outcomes"]["proof"] > 0
