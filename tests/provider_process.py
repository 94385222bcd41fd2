"""The sandbox provider as a real process, for any suite that needs a provider to talk to."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

ROOT = Path(__file__).resolve().parent.parent
CONTROL_TOKEN = "control-token-of-the-tests"
_STOP_SECONDS = 5
_POLL_SECONDS = 0.01


class SandboxProcess:
    """`python -m sandbox` with a book of its own.

    Use it as a context manager, or call `start` and `stop`. `kill` is SIGKILL; `restart` brings
    it back on the same port with the same book.
    """

    def __init__(
        self,
        book: Path | None = None,
        *,
        idle_close_seconds: float = 1.0,
        environment: dict[str, str] | None = None,
    ) -> None:
        """With an `environment` of its own it also gets a process group of its own."""
        self._folder = tempfile.TemporaryDirectory(prefix="sandbox-") if book is None else None
        self.book_file = book or Path(self._folder.name, "book.sqlite3")  # type: ignore[union-attr]
        self.idle_close_seconds = idle_close_seconds
        self.environment = environment
        self.base_url = ""
        self._process: subprocess.Popen[str] | None = None
        self._control: httpx.Client | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        port = urlsplit(self.base_url).port
        assert port is not None, "start the sandbox first"
        return port

    @property
    def pid(self) -> int:
        assert self._process is not None, "start the sandbox first"
        return self._process.pid

    def plain_base(self, account: str = "plain-main") -> str:
        return f"{self.base_url}/plain/{account}"

    @property
    def stripe_base(self) -> str:
        return f"{self.base_url}/stripe/stripe-main"

    def start(self, port: int = 0) -> None:
        """Start on a port (0: a free one) and wait until it listens."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "sandbox", "--book", str(self.book_file)),
                *("--port", str(port), "--control-token", CONTROL_TOKEN),
                *("--idle-close-seconds", str(self.idle_close_seconds)),
            ],
            cwd=ROOT,
            env=self.environment,
            process_group=None if self.environment is None else 0,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        first_line = self._process.stdout.readline().strip()
        said, _, address = first_line.rpartition(" ")
        if said != "sandbox listening on":
            raise RuntimeError(f"the sandbox did not start; it said {first_line!r}")
        self.base_url = address
        self._control = httpx.Client(
            base_url=f"{address}/_control",
            headers={"X-Control-Token": CONTROL_TOKEN},
            timeout=10,
            trust_env=False,
        )

    def stop(self) -> None:
        """End it politely; its book goes too when this object made it."""
        self._end(signal.SIGTERM)
        if self._folder is not None:
            self._folder.cleanup()

    def kill(self) -> None:
        """SIGKILL: it gets no chance to tidy up."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the same port with the same book; ends it first if it still runs."""
        port = self.port
        self._end(signal.SIGTERM)
        self.start(port)

    def pause(self) -> None:
        """SIGSTOP: it sleeps, while the kernel goes on accepting what callers send."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    # Control

    def control(self, method: str, path: str, json: object = None) -> Any:
        """A command of the control API (`path` below `/_control`); its JSON answer.

        Raises AssertionError with the sandbox's own words when it refuses.
        """
        assert self._control is not None, "start the sandbox first"
        answer = self._control.request(method, path, json=json)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def reset(self) -> None:
        """Forget payments, refunds, keys, calls, faults, overrides and the moved clock."""
        self.control("POST", "/reset")

    def configure(self, account: str, **overrides: object) -> Any:
        """Change an account's profile; returns the whole profile."""
        return self.control("PUT", f"/accounts/{account}", overrides)

    def payment(
        self,
        ref: str = "pi_4821",
        captured_minor: int = 12900,
        *,
        account: str = "plain-main",
        currency: str = "USD",
        **more: object,
    ) -> str:
        """Put a captured payment into the book; returns its ref."""
        fields = {"account": account, "ref": ref, "currency": currency}
        self.control("POST", "/payments", {**fields, "captured_minor": captured_minor, **more})
        return ref

    def fault(
        self,
        fault: str,
        *,
        account: str = "plain-main",
        on: str = "create",
        times: int | None = 1,
        after: int = 0,
        probability: float = 1.0,
        match: dict[str, str] | None = None,
        seed: int = 0,
        **options: object,
    ) -> None:
        """Add one rule to the fault plan; `options` are the rule's `with`."""
        rule = {
            "account": account,
            "on": on,
            "fault": fault,
            "times": times,
            "after": after,
            "probability": probability,
            "match": match or {},
            "with": options,
        }
        self.control("POST", "/faults", {"seed": seed, "rules": [rule]})

    def clear_faults(self) -> None:
        self.control("DELETE", "/faults")

    def advance(self, seconds: float) -> None:
        """Move the control clock on; what falls due on the way has happened on return."""
        self.control("POST", "/clock", {"advance_seconds": seconds})

    def release(self, hold: int | str = "all") -> int:
        """Release one hold or all of them; how many were released."""
        released: int = self.control("POST", "/release", {"hold": hold})["released"]
        return released

    def waiting_holds(self) -> list[dict[str, Any]]:
        holds: list[dict[str, Any]] = self.control("GET", "/holds")["holds"]
        return [hold for hold in holds if hold["state"] == "waiting"]

    def wait_for_hold(self, deadline_seconds: float = 5) -> dict[str, Any]:
        """The oldest request that waits, as soon as there is one."""
        give_up_at = time.monotonic() + deadline_seconds
        while not (holds := self.waiting_holds()):
            assert time.monotonic() < give_up_at, "no request came to wait"
            time.sleep(_POLL_SECONDS)
        return holds[0]

    def book(self, account: str | None = None) -> dict[str, Any]:
        """The provider's book, the witness: `{"now", "payments": [{..., "refunds": [...]}]}`."""
        query = f"?account={account}" if account else ""
        shown: dict[str, Any] = self.control("GET", f"/book{query}")
        return shown

    def refunds(self, account: str | None = None) -> list[dict[str, Any]]:
        """All refunds of the book, of every payment."""
        payments = self.book(account)["payments"]
        return [refund for payment in payments for refund in payment["refunds"]]

    def calls(self, account: str | None = None) -> list[dict[str, Any]]:
        """Every request received, in order, also those that were dropped."""
        query = f"?account={account}" if account else ""
        calls: list[dict[str, Any]] = self.control("GET", f"/calls{query}")["calls"]
        return calls
