"""The key store of the plain accounts, kind by kind."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of

MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"


@pytest.mark.parametrize("account", ["plain-main", "plain-forever", "plain-weak"])
def test_the_same_key_gives_the_same_refund(
    sandbox: SandboxProcess, plain: PlainClient, account: str
) -> None:
    sandbox.payment(account=account)
    first = plain.refund(key="key-1", marker=MARKER, account=account)
    again = plain.refund(key="key-1", marker=MARKER, account=account)
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    [booked] = sandbox.refunds(account)
    assert (booked["key"], booked["aftersend_operation"]) == ("key-1", MARKER)
    assert booked["executions"] == 1


def test_without_keys_every_request_pays(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment(account="plain-nokeys")
    for _ in range(2):
        plain.refund(key="key-1", marker=MARKER, account="plain-nokeys")
    booked = sandbox.refunds()
    assert [one["aftersend_operation"] for one in booked] == [MARKER, MARKER]
    assert [one["executions"] for one in booked] == [2, 2]


def test_a_key_belongs_to_one_account(sandbox: SandboxProcess, plain: PlainClient) -> None:
    for account in ("plain-main", "plain-forever"):
        sandbox.payment(account=account)
        assert plain.refund(key="key-1", marker=MARKER, account=account).status_code == 201
    assert len(sandbox.refunds()) == 2


def test_other_parameters_under_a_key_are_a_conflict(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    plain.refund(1000, key="key-1", marker=MARKER)
    answer = plain.refund(1001, key="key-1", marker=MARKER)
    assert (answer.status_code, code_of(answer)) == (409, "key_reused")
    assert [one["amount_minor"] for one in sandbox.refunds()] == [1000]


def test_a_window_ends_on_the_control_clock(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    first = plain.refund(key="key-1", marker=MARKER)
    sandbox.advance(590)
    assert plain.refund(key="key-1", marker=MARKER).json() == first.json()
    sandbox.advance(10)
    assert plain.refund(key="key-1", marker=MARKER).json()["id"] != first.json()["id"]
    assert len(sandbox.refunds()) == 2


def test_a_key_kept_for_ever_outlives_any_window(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment(account="plain-forever")
    first = plain.refund(key="key-1", marker=MARKER, account="plain-forever")
    sandbox.advance(365 * 86400)
    again = plain.refund(key="key-1", marker=MARKER, account="plain-forever")
    assert again.json() == first.json()
    assert len(sandbox.refunds()) == 1


def test_a_key_is_in_use_while_its_request_is_being_executed(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("hold", execute="on_release")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(plain.refund, key="key-1", marker=MARKER)
        sandbox.wait_for_hold()
        answer = plain.refund(key="key-1", marker=MARKER)
        assert (answer.status_code, code_of(answer)) == (409, "key_in_use")
        sandbox.fault("hold", execute="on_release")
        answer = plain.refund(key="key-1", marker=MARKER)
        assert (answer.status_code, code_of(answer)) == (409, "key_in_use")
        assert sandbox.refunds() == []
        sandbox.release()
        made = first.result(5)
    assert [one["id"] for one in sandbox.refunds()] == [made.json()["id"]]
    assert plain.refund(key="key-1", marker=MARKER).json() == made.json()


@pytest.mark.parametrize(
    ("account", "second_status"), [("plain-main", 422), ("plain-forever", 422), ("plain-weak", 201)]
)
def test_a_refusal_is_stored_except_under_a_weak_key(
    sandbox: SandboxProcess, plain: PlainClient, account: str, second_status: int
) -> None:
    sandbox.payment(account=account, state="uncaptured")
    refused = plain.refund(key="key-1", marker=MARKER, account=account)
    assert (refused.status_code, code_of(refused)) == (422, "payment_not_refundable")
    sandbox.payment(account=account)
    second = plain.refund(key="key-1", marker=MARKER, account=account)
    assert second.status_code == second_status
    assert len(sandbox.refunds()) == (1 if second_status == 201 else 0)


def test_rejections_can_be_left_unstored(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.configure("plain-main", stores_rejections=False)
    sandbox.payment(state="uncaptured")
    assert plain.refund(key="key-1", marker=MARKER).status_code == 422
    sandbox.payment()
    assert plain.refund(key="key-1", marker=MARKER).status_code == 201


def test_a_500_can_be_stored_where_rejections_are_not(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.configure("plain-main", stores_rejections=False)
    sandbox.payment()
    sandbox.fault("stored_500")
    for _ in range(2):
        assert plain.refund(key="key-1", marker=MARKER).status_code == 500
    assert len(sandbox.refunds()) == 1


def test_an_unreadable_request_is_not_stored(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    wrong = plain.refund(key="key-1", marker=MARKER, currency=840)
    assert (wrong.status_code, code_of(wrong)) == (400, "body_invalid")
    assert plain.refund(key="key-1", marker=MARKER).status_code == 201


@pytest.mark.parametrize(
    ("account", "statuses", "refund_count"),
    [
        ("plain-forever", [500, 201, 201], 1),
        ("plain-stored500", [500, 500, 500], 1),
        ("plain-weak", [500, 201, 201], 2),
    ],
)
def test_a_500_after_execution_heals_stays_or_pays_twice_by_the_kind_of_key(
    sandbox: SandboxProcess,
    plain: PlainClient,
    account: str,
    statuses: list[int],
    refund_count: int,
) -> None:
    sandbox.payment(account=account)
    sandbox.fault("error_after_commit", account=account)
    answers = [plain.refund(key="key-1", marker=MARKER, account=account) for _ in range(3)]
    assert [answer.status_code for answer in answers] == statuses
    assert len(sandbox.refunds()) == refund_count


def test_a_stored_500_is_replayed_for_ever_and_the_refund_was_made(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("stored_500")
    for _ in range(3):
        answer = plain.refund(key="key-1", marker=MARKER)
        assert (answer.status_code, code_of(answer)) == (500, "server_error")
    assert len(sandbox.refunds()) == 1


def test_a_turning_away_can_be_stored_under_the_key(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("auth_401", stored=True)
    for _ in range(2):
        assert plain.refund(key="key-1", marker=MARKER).status_code == 401
    assert sandbox.refunds() == []


def test_a_forgotten_key_pays_twice(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    sandbox.fault("forget_key")
    for _ in range(2):
        assert plain.refund(key="key-1", marker=MARKER).status_code == 201
    assert [one["executions"] for one in sandbox.refunds()] == [2, 2]


def test_two_requests_at_once_under_one_key_make_one_refund(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    with ThreadPoolExecutor(8) as pool:
        racing = [pool.submit(plain.refund, key="key-1", marker=MARKER) for _ in range(16)]
        ids = {one.result().json()["id"] for one in racing}
    assert len(ids) == 1
    assert [one["id"] for one in sandbox.refunds()] == [*ids]
