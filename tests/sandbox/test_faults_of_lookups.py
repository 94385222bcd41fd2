"""Faults that make a lookup mislead."""

import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of


@pytest.fixture
def made(sandbox: SandboxProcess, plain: PlainClient) -> list[str]:
    sandbox.payment()
    return [plain.refund(100 + number).json()["id"] for number in range(4)]


def listed(plain: PlainClient, **query: str) -> list[str]:
    answer = plain.request("GET", "/refunds", params={"payment": "pi_4821"} | query)
    return [one["id"] for one in answer.json()["items"]]


def test_a_lagging_list_shows_the_past(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str]
) -> None:
    sandbox.advance(60)
    newest = plain.refund().json()["id"]
    sandbox.fault("list_lag", on="list", seconds=30)
    assert listed(plain) == made
    assert listed(plain) == [*made, newest]


def test_a_missing_page_is_announced_and_cannot_be_had(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str]
) -> None:
    sandbox.fault("list_missing_page", on="list")
    page = plain.get("/refunds", payment="pi_4821").json()
    assert [one["id"] for one in page["items"]] == made[:2]
    for _ in range(2):
        lost = plain.get("/refunds", payment="pi_4821", after=page["next"])
        assert (lost.status_code, code_of(lost)) == (404, "cursor_not_found")
    assert listed(plain) == made
    assert listed(plain, after=page["next"]) == made[2:]


def test_a_missing_page_of_an_empty_list_does_not_look_complete(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("list_missing_page", on="list")
    page = plain.get("/refunds", payment="pi_4821").json()
    assert page["items"] == []
    assert plain.get("/refunds", after=page["next"]).status_code == 404


def test_a_looping_cursor_leads_back_to_the_same_page(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str]
) -> None:
    sandbox.fault("list_cursor_loop", on="list", times=None)
    page = plain.get("/refunds", payment="pi_4821", limit=2).json()
    again = plain.get("/refunds", payment="pi_4821", limit=2, after=page["next"]).json()
    assert again == page
    assert page["next"] is not None


def test_a_list_can_ignore_its_filter(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str]
) -> None:
    sandbox.payment("pi_other")
    other = plain.refund(payment="pi_other").json()["id"]
    sandbox.fault("list_ignores_filter", on="list")
    assert listed(plain) == [*made, other]
    assert listed(plain) == made


def test_the_wrong_mode_shows_nothing_and_names_itself(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str]
) -> None:
    right = plain.get("/refunds", payment="pi_4821")
    assert (right.headers["sandbox-account"], right.headers["sandbox-mode"]) == (
        "plain-main",
        "live",
    )
    sandbox.fault("wrong_mode", on="list")
    sandbox.fault("wrong_mode", on="retrieve")
    wrong = plain.get("/refunds", payment="pi_4821")
    assert wrong.json() == {"items": [], "next": None}
    assert wrong.headers["sandbox-mode"] == "test"
    wrong = plain.get(f"/refunds/{made[0]}")
    assert (wrong.status_code, wrong.headers["sandbox-mode"]) == (404, "test")


def test_a_refund_that_exists_can_be_missing(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str]
) -> None:
    sandbox.fault("retrieve_404", on="retrieve", match={"refund": made[0]})
    answer = plain.get(f"/refunds/{made[0]}")
    assert (answer.status_code, code_of(answer)) == (404, "refund_not_found")
    assert plain.get(f"/refunds/{made[0]}").status_code == 200


@pytest.mark.parametrize("on", ["list", "retrieve"])
def test_a_lookup_can_be_out_of_order(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str], on: str
) -> None:
    sandbox.fault("lookup_503", on=on)
    path = "/refunds" if on == "list" else f"/refunds/{made[0]}"
    answer = plain.get(path)
    assert (answer.status_code, code_of(answer)) == (503, "unavailable")
    assert plain.get(path).status_code == 200


@pytest.mark.parametrize("on", ["list", "retrieve"])
def test_a_lookup_can_show_a_wrong_amount(
    sandbox: SandboxProcess, plain: PlainClient, made: list[str], on: str
) -> None:
    sandbox.fault("wrong_amount", on=on, amount_minor=5)
    path = "/refunds" if on == "list" else f"/refunds/{made[0]}"
    shown = plain.get(path).json()
    assert {one["amount_minor"] for one in shown.get("items", [shown])} == {5}
