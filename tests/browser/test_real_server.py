"""The real ASGI server as a process of its own, killed in the middle of a press."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from refunds.domain import states
from refunds.models import Approval, Operation
from review.models import Intent
from tests.api_schema.web_process import WebProcess
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.bugs.races import order_held, until_waiting
from tests.cast import Cast
from tests.provider_process import SandboxProcess

LOST = "We could not tell whether your action was recorded."


class Server:
    """One address, where a process is killed and another comes up."""

    def __init__(self) -> None:
        self.process = WebProcess(connection.settings_dict)
        self.process.wait()

    def kill(self) -> None:
        self.process.kill()

    def come_back(self) -> None:
        port = self.process.port
        self.process.stop()
        self.process = WebProcess(connection.settings_dict, port=port)
        self.process.wait()


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    made = Server()
    yield made
    assert "Traceback" not in made.process.output()
    made.process.stop()


@pytest.fixture
def visitors(cast: Cast, browser: object, server: Server) -> Iterator[Visitors]:
    """People at browsers of their own on that server."""
    made = Visitors(browser, server.process.url)
    yield made
    made.close()
    assert made.complaints == []


@pytest.fixture
def stage(cast: Cast, provider: SandboxProcess) -> Stage:
    return Stage(cast, provider)


@contextmanager
def _committed_and_not_answered(press: Callable[[], None]) -> Iterator[None]:
    """Press, and go on as soon as that is committed, while its answer cannot be made.

    The lock on the table is asked for while the press stands in its transaction: it is granted at
    the end of that, and before the page reads the operation back.
    """
    known = connection.get_connection_params()
    names = {"dbname", "user", "password", "host", "port"} & known.keys()
    where = {name: known[name] for name in names}
    with psycopg.connect(**where) as holder, ThreadPoolExecutor(1) as pool:
        with order_held("A-1"):
            press()
            until_waiting(1)
            granted = pool.submit(holder.execute, "LOCK TABLE operation IN ACCESS EXCLUSIVE MODE")
            until_waiting(2)
        granted.result(timeout=10)
        yield


def _open(page: Page, operation: Operation) -> None:
    page.goto(f"/approvals?open={operation.pk}")
    expect(page.locator("#approval-form")).to_be_visible()


def _press(page: Page) -> None:
    page.get_by_role("button", name="Approve refund of").click()


def _promises_nothing(visitors: Visitors, page: Page) -> None:
    """What the page says of a press whose answer never came."""
    expect(page.locator("#slot")).to_contain_text(LOST)
    expect(page.locator("#slot")).to_contain_text("Do not repeat it yet")
    expect(page.get_by_role("button", name="Approve refund of")).to_be_disabled()
    expect(page.locator("#result")).to_have_count(0)
    assert visitors.complaints != []
    visitors.complaints.clear()  # the browser names the request that was cut


def test_a_server_killed_in_the_middle_of_a_press_is_asked_afterwards_what_was_recorded(
    visitors: Visitors, stage: Stage, server: Server
) -> None:
    operation = stage.proposed("one", "A-1", 1000, by="foxtrot")
    page = visitors.sign_in("cleo")
    # Before the commit: it waits for the order's row when it dies.
    _open(page, operation)
    page.get_by_role("button", name="Pause live updates").click()  # only presses ask from here on
    with order_held("A-1"):
        _press(page)
        until_waiting(1)
        server.kill()
    _promises_nothing(visitors, page)
    server.come_back()
    page.get_by_role("link", name="Check what was recorded").click()
    expect(page.locator("main")).to_contain_text("Nothing is recorded under this press.")
    assert not Intent.objects.exists()
    assert not Approval.objects.exists()
    # After the commit, before the answer.
    _open(page, operation)
    with _committed_and_not_answered(lambda: _press(page)):
        server.kill()
    _promises_nothing(visitors, page)
    server.come_back()
    page.get_by_role("link", name="Check what was recorded").click()
    expect(page.locator("main")).to_contain_text("It was recorded")
    page.get_by_role("link", name="See where it stands").click()
    expect(page.get_by_role("button", name="Approve refund of")).to_have_count(0)
    assert Operation.objects.get(pk=operation.pk).state == states.AUTHORIZED
    assert Approval.objects.count() == 1
    # And a press that nothing interrupts, on this same server.
    another = stage.proposed("two", "A-2", 1100, by="foxtrot")
    _open(page, another)
    _press(page)
    expect(page.locator("#result")).to_contain_text("Approved at")
