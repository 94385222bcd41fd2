"""Processes that act on the ledger, forked from one that has loaded the product already.

`python -m tests.ledger.actor` reads one JSON line per actor from its standard input and forks.
An actor waits at a gate before it begins, and again where `stop_at` says (`module:function`,
entered but not run); it goes on when its FIFO gets a byte. What happens is written as JSON lines
to the shared standard output. See `tests/ledger/actors.py` for the other end.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from uuid import UUID

import django


def say(**line: Any) -> None:
    """One line, short enough to reach the pipe in one piece."""
    os.write(1, json.dumps({"pid": os.getpid(), **line}).encode() + b"\n")


def gate(fifo: str, name: str) -> None:
    """Say where we are and wait for a byte."""
    say(at=name)
    with open(fifo, "rb", buffering=0) as gate_file:
        gate_file.read(1)


def code_of(path: str) -> CodeType:
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    code: CodeType = found.__code__
    return code


def stop_when_entered(path: str, fifo: str) -> None:
    """Wait at the gate when the function is entered, before its first line has run; once."""
    code = code_of(path)

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code:
            sys.setprofile(None)
            gate(fifo, path)

    sys.setprofile(watch)


def settle_in(order: dict[str, Any]) -> None:
    """Apply what this actor was ordered with, before any connection is made."""
    from django.conf import settings
    from django.db import connections

    os.environ.update(order["environ"])
    if order["host"]:
        connections["default"].settings_dict["HOST"] = order["host"]
    options = connections["default"].settings_dict["OPTIONS"]
    options["options"] += f" -c statement_timeout=30000 -c lock_timeout={order['lock_timeout_ms']}"
    settings.WITNESS_DIR = Path(order["witness"])
    settings.LIMITS = replace(settings.LIMITS, **order["limits"])
    if "AFTERSEND_CALLBACKS" in order["environ"]:
        settings.CALLBACKS = json.loads(order["environ"]["AFTERSEND_CALLBACKS"])
        settings.CALLBACK_SECRETS = (order["environ"]["AFTERSEND_CALLBACK_SECRETS"],)


def acts(order: dict[str, Any]) -> Callable[[str, int], str]:
    """The verb of an order, as a function of an operation's id and the version on screen."""
    from django.utils import timezone

    from reconciliation import reconciler
    from reconciliation.tasks import tell
    from refunds import approvals, dispatch
    from refunds.consent import Shown
    from refunds.crew import Crew
    from refunds.ledger import Sibling
    from refunds.models import Operation, Person
    from tests.ledger.rows import resubmitted, sent

    def person() -> Person:
        return Person.objects.get(username=order["person"])

    def approve(pk: str, version: int) -> str:
        listed = order["siblings"][pk]
        row = Operation.objects.get(pk=pk)
        shown = Shown(
            fingerprint=bytes(row.fingerprint),
            order_version=version,
            siblings=tuple(Sibling(UUID(id_), minor) for id_, minor in listed),
            separate_refund_confirmed=True,
        )
        approved = approvals.approve(row.pk, person(), shown)
        return "authorized" if approved.complete else "recorded"

    verbs: dict[str, Callable[[str, int], str]] = {
        "send": lambda pk, _: dispatch.send(pk),
        "send_again": lambda pk, _: sent(resubmitted(Operation.objects.get(pk=pk))),
        "revoke": lambda pk, version: approvals.revoke(UUID(pk), person(), version=version).state,
        "approve": approve,
        "look_up": lambda pk, _: reconciler.look_up(UUID(pk)),
        "tell": lambda *_: str(tell()),
        "work_in_eights": lambda *_: str(Crew(size=8, spacing_seconds=0).work()),
        "work_in_threes": lambda *_: str(Crew(size=3, spacing_seconds=0).work()),
        "work": lambda *_: str(Crew(spacing_seconds=0).work()),
        "end_leases": lambda pk, _: str(reconciler.end_leases(timezone.now(), batch_max=100)),
    }
    return verbs[order["verb"]]


def act(order: dict[str, Any]) -> None:
    settle_in(order)
    one = acts(order)
    gate(order["fifo"], "ready")
    if order["stop_at"]:
        stop_when_entered(order["stop_at"], order["fifo"])
    said: list[list[str]] = []
    for pk, version in order["on"]:
        try:
            said.append([pk, one(pk, version)])
        except Exception as error:
            said.append([pk, getattr(error, "code", type(error).__name__)])
    say(said=said)


def main() -> None:
    django.setup()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    importlib.import_module("refunds.dispatch")
    importlib.import_module("refunds.approvals")
    importlib.import_module("reconciliation.reconciler")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            act(json.loads(line))
            os._exit(0)
        os.write(1, json.dumps({"born": pid}).encode() + b"\n")


if __name__ == "__main__":
    main()
