"""The deliveries page as people see it: told and untold, wide and narrow."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from reconciliation import outbox
from reconciliation.models import Delivery
from reconciliation.outbox_sending import claim, record
from reconciliation.outbox_wire import Told
from tests.browser.looking import NARROW, WIDE, look
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.outbox.receiver import SECRET


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_list_and_the_refund_in_every_colour(
    visitors: Visitors, stage: Stage, settings: Any, width: int
) -> None:
    page = visitors.sign_in("omar", width=width)
    page.goto("/deliveries")
    look(page, "Nobody is told.")
    settings.CALLBACKS = dict.fromkeys(("staff", "merchant"), "https://shop.example/")
    settings.CALLBACK_SECRETS = (SECRET,)
    stage.full()
    outbox.expand()
    for delivered in (True, False):
        claimed = claim()
        assert claimed is not None
        record(claimed, Told(delivered, "answered 204" if delivered else "answered 500"), "teller")
    Delivery.objects.filter(state="waiting", try_count=1).update(
        state="given_up", due_at=timezone.now()
    )
    page.goto("/deliveries")
    look(page, "given up")
    page.locator("summary", has_text="Replay").first.click()
    page.locator("summary", has_text="id and tries").first.click()
    look(page, "If you replay it")
    page.get_by_role("button", name="Send it again").locator("visible=true").first.click()
    expect(page.get_by_role("heading", name="it is sent again within seconds")).to_be_focused()
    look(page, "under the same id")
    page.goto(f"/operations/{stage.by_name['unknown'].pk}")
    look(page, "Who was told")
