"""What pages say after a press, and while sending is stopped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from refunds import dispatch
from refunds.ledger import sending
from tests import build
from tests.cast import Cast
from tests.flows.console import opened, press, signed_in, text
from tests.flows.test_console_bulk import Desk
from tests.ledger.stage import run
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=10))


@DELAYED
def test_the_page_of_approving_together_follows_its_refunds_to_their_end(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation, desk = build.proposed(cast.echo), Desk(cast.cleo)
    cleo = desk.client
    page = text(cleo.get(desk.press(desk.review(operation))["Location"]))
    assert "Sending waits 10 s after the press" in page
    assert f'href="/operations/{operation.pk}"' in page
    poll = re.search(r'hx-get="([^"]+since=[^"]*)"', page)
    assert poll is not None
    assert cleo.get(poll.group(1)).status_code == 204
    run("UPDATE operation SET not_before = NULL WHERE state = 'authorized'")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    moved = text(cleo.get(poll.group(1)))
    assert "succeeded" in moved
    assert "data-poll" not in moved


@DELAYED
def test_while_all_sending_is_stopped_no_page_counts_seconds_down(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    sending.stop_everything(by="olga", reason="looking into a double refund")
    cleo = signed_in(cast.cleo)
    assert "All sending is stopped: it waits" in opened(cleo, operation)
    assert press(cleo, operation, "approve").status_code == 303
    for page in (opened(cleo, operation), text(cleo.get(f"/operations/{operation.pk}"))):
        assert "All sending is stopped: it waits" in page
        assert "Sending starts in" not in page
        assert "at any moment" not in page


@DELAYED
def test_what_a_person_took_back_is_not_called_stale(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    cleo = signed_in(cast.cleo)
    press(cleo, operation, "approve")
    press(cleo, operation, "take-back")
    page = opened(cleo, operation)
    assert "Stale:" not in page
    assert "The approval was taken back before it was sent. Nothing was sent." in page
