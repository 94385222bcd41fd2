"""The control API: accounts, the fault plan, the record of calls, reset."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.provider_process import ROOT, SandboxProcess
from tests.sandbox.conftest import PlainClient

ACCOUNTS = {
    "plain-main": ("window", "now", 2, 1, 1),
    "plain-forever": ("forever", "now", 2, 1, 1),
    "plain-weak": ("weak", "now", 2, 1, 1),
    "plain-nokeys": ("none", "now", 2, 1, 1),
    "plain-blind": ("none", "none", 2, None, 1),
    "plain-hooks": ("none", "none", 2, None, 1),
    "plain-lagged": ("window", "lagged", 2, 3, 1),
    "plain-unbounded": ("window", "now", None, 1, None),
    "plain-async": ("forever", "now", 2, 1, 1),
    "plain-stored500": ("forever", "none", 2, None, 1),
    "stripe-main": ("window", "now", None, None, None),
}


def refused(sandbox: SandboxProcess, method: str, path: str, content: object) -> str:
    """The words with which a command is refused."""
    with pytest.raises(AssertionError) as caught:
        sandbox.control(method, path, content)
    return str(caught.value)


def test_every_account_has_its_contract(sandbox: SandboxProcess) -> None:
    profiles = sandbox.control("GET", "/accounts")
    assert {
        name: (
            profile["keys"],
            profile["lookup"],
            profile["flight_seconds_max"],
            profile["lookup_lag_seconds"],
            profile["idle_close_seconds"],
        )
        for name, profile in profiles.items()
    } == ACCOUNTS
    assert {name for name, one in profiles.items() if one["notices"]} == {
        "plain-main",
        "plain-hooks",
        "stripe-main",
    }


def test_nobody_commands_without_the_token(sandbox: SandboxProcess) -> None:
    for headers in ({}, {"X-Control-Token": "guess"}):
        answer = httpx.get(f"{sandbox.base_url}/_control/book", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_wrong")
    assert httpx.get(f"{sandbox.base_url}/_health").json() == {"ok": True}


def test_a_new_account_starts_like_another(sandbox: SandboxProcess, plain: PlainClient) -> None:
    profile = sandbox.configure("plain-new", like="plain-nokeys", settle_seconds=9)
    assert (profile["keys"], profile["settle_seconds"]) == ("none", 9)
    sandbox.payment(account="plain-new")
    assert plain.refund(account="plain-new").json()["status"] == "pending"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"keys": "some"}, "keys must be one of"),
        ({"keys": "forever"}, "key_window_seconds goes with keys 'window'"),
        ({"flight_seconds_max": -1}, "flight_seconds_max must be null or a number"),
        ({"notices": 1}, "notices must be true or false"),
        ({"webhook_url": "https://example.com/hook"}, "http on a loopback host"),
        ({"webhook_url": "http://10.0.0.1/hook"}, "http on a loopback host"),
    ],
)
def test_an_override_that_makes_no_sense_is_refused(
    sandbox: SandboxProcess, overrides: dict[str, Any], words: str
) -> None:
    assert words in refused(sandbox, "PUT", "/accounts/plain-main", overrides)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"fault": "explode"}, "unknown fault 'explode'"),
        ({"fault": "hold", "on": "notice"}, "hold strikes on"),
        ({"fault": "execute_twice", "on": "list"}, "execute_twice strikes on create"),
        ({"fault": "delay", "with": {"minutes": 1}}, "takes no option 'minutes'"),
        ({"fault": "delay", "with": {"seconds": "1"}}, "'seconds' of delay must be int"),
        ({"fault": "delay", "with": {"seconds": -1}}, "must not be negative"),
        ({"fault": "hold", "with": {"execute": "soon"}}, "must be one of"),
        ({"fault": "hold", "times": 0}, "times must be null (always) or at least 1"),
        ({"fault": "hold", "probability": 2}, "probability must be a number from 0 to 1"),
        ({"fault": "hold", "account": "plain-none"}, "no account 'plain-none'"),
        ({"fault": "hold", "on": "list", "match": {"marker": "m"}}, "matched by payment only"),
    ],
)
def test_a_rule_that_cannot_strike_is_refused(
    sandbox: SandboxProcess, rule: dict[str, Any], words: str
) -> None:
    rule = {"account": "plain-main", "on": "create"} | rule
    assert words in refused(sandbox, "POST", "/faults", {"seed": 1, "rules": [rule]})
    assert sandbox.control("GET", "/faults")["rules"] == []


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/payments", {"account": "plain-main", "ref": "pi_1", "currency": "USD"}),
        ("/payments", {"account": "none", "ref": "p", "currency": "USD", "captured_minor": 1}),
        ("/clock", {"advance_seconds": -1}),
        ("/release", {"hold": 4711}),
        ("/refunds/rf_none/status", {"to": "failed"}),
        ("/external_refund", {"account": "plain-main", "payment": "none", "amount_minor": 1}),
        ("/dispute", {"account": "plain-main", "payment": "none"}),
        ("/notices", {"deliver": "sometimes"}),
    ],
)
def test_a_command_that_names_nothing_is_refused(
    sandbox: SandboxProcess, path: str, content: object
) -> None:
    assert '"error":' in refused(sandbox, "POST", path, content)


def test_a_rule_strikes_after_some_and_a_number_of_times(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("busy_409", after=1, times=2)
    assert [plain.refund(100).status_code for _ in range(5)] == [201, 409, 409, 201, 201]
    [rule] = sandbox.control("GET", "/faults")["rules"]
    assert rule["fired"] == 2


def test_a_rule_strikes_the_request_that_it_matches(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.payment("pi_other")
    sandbox.fault("busy_409", match={"marker": "m-1"})
    sandbox.fault("auth_403", match={"payment": "pi_other"})
    sandbox.fault("rate_429", match={"key": "key-1"})
    assert plain.refund().status_code == 201
    assert plain.refund(marker="m-1").status_code == 409
    assert plain.refund(payment="pi_other").status_code == 403
    assert plain.refund(key="key-1").status_code == 429


def test_only_one_fault_decides_about_the_answer_and_the_next_keeps_its_turn(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("busy_409")
    sandbox.fault("auth_403")
    assert [plain.refund().status_code for _ in range(3)] == [409, 403, 201]


def test_chance_comes_from_the_seed_alone(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    patterns = []
    for seed in (7, 7, 8):
        sandbox.clear_faults()
        sandbox.fault("busy_409", times=None, probability=0.5, seed=seed)
        patterns.append([plain.refund(1).status_code for _ in range(24)])
    assert patterns[0] == patterns[1] != patterns[2]
    assert {201, 409} == set(patterns[0])


def test_cleared_faults_do_not_strike(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    sandbox.fault("busy_409", times=None)
    sandbox.clear_faults()
    assert plain.refund().status_code == 201


def test_every_request_is_recorded_in_the_order_received(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.fault("drop_before_commit", after=1)
    plain.refund(key="key-1", marker="m-1")
    with pytest.raises(httpx.RemoteProtocolError):
        plain.refund(key="key-2", marker="m-2")
    plain.get("/refunds", payment="pi_4821")
    plain.refund(marker="m-3", api_key="wrong")
    calls = sandbox.calls()
    assert [
        (call["method"], call["on"], call["key"], call["marker"], call["answered"])
        for call in calls
    ] == [
        ("POST", "create", "key-1", "m-1", 201),
        ("POST", "create", "key-2", "m-2", "dropped"),
        ("GET", "list", None, None, 200),
        ("POST", "create", None, "m-3", 401),
    ]
    assert calls[2]["path"] == "/plain/plain-main/refunds?payment=pi_4821"
    assert [call["seq"] for call in calls] == sorted(call["seq"] for call in calls)
    assert all(call["received_at"] <= call["answered_at"] for call in calls)


def test_the_digest_of_a_call_is_that_of_the_bytes_sent(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    body = json.dumps({"payment": "pi_4821"}, indent=3).encode()
    plain.request("POST", "/refunds", content=body)
    [call] = sandbox.calls()
    assert call["body_sha256"] == hashlib.sha256(body).hexdigest()


def test_the_book_can_be_read_for_one_account(sandbox: SandboxProcess, plain: PlainClient) -> None:
    for account in ("plain-main", "plain-forever"):
        sandbox.payment(account=account)
        plain.refund(account=account)
    assert [one["account"] for one in sandbox.book("plain-forever")["payments"]] == [
        "plain-forever"
    ]
    assert len(sandbox.book()["payments"]) == 2
    assert [call["account"] for call in sandbox.calls("plain-forever")] == ["plain-forever"]


def test_a_payment_put_again_keeps_its_refunds(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment(captured_minor=1000)
    plain.refund(1000)
    sandbox.payment(captured_minor=3000)
    [payment] = sandbox.book()["payments"]
    assert (payment["captured_minor"], len(payment["refunds"])) == (3000, 1)
    assert plain.refund(2000).status_code == 201


def test_a_reset_forgets_all_but_never_gives_an_id_twice(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.configure("plain-main", api_key="rotated")
    sandbox.fault("busy_409", after=1)
    sandbox.advance(1_000_000)
    first = plain.refund(key="key-1", marker="m-1", api_key="rotated").json()
    ahead = sandbox.book()["now"]
    sandbox.reset()
    assert sandbox.book()["payments"] == []
    assert sandbox.book()["now"] < ahead
    assert sandbox.calls() == []
    assert sandbox.control("GET", "/faults")["rules"] == []
    sandbox.payment()
    again = plain.refund(key="key-1", marker="m-1")
    assert again.status_code == 201
    assert number_of(again.json()["id"]) > number_of(first["id"])


def number_of(refund_id: str) -> int:
    return int(refund_id.removeprefix("rf_"))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com"])  # noqa: S104
def test_the_sandbox_serves_loopback_only(tmp_path: Path, host: str) -> None:
    started = subprocess.run(
        [
            *(sys.executable, "-m", "sandbox", "--book", str(tmp_path / "book")),
            *("--port", "0", "--control-token", "t", "--host", host),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert started.returncode == 2
    assert "--host" in started.stderr
    assert started.stdout == ""
