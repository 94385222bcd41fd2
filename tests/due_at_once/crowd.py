"""A crowd of refunds that nobody knows the outcome of, all of them due in one instant."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from tests.walkthrough.installation import Installation

# Each one's contract lets every lost answer be settled by proof: no share of them is a person's.
ACCOUNTS = ("plain-main", "plain-forever", "plain-weak", "plain-nokeys")
CAPTURED_MINOR = 12900
_TELLING = 500
_SENDERS = 2


@dataclass(frozen=True)
class Wish:
    """One refund of the crowd. `made`: the provider has it; `ours`: sent by us, else taken over
    from another system with the provider's reference."""

    order: str
    account: str
    amount_minor: int
    made: bool
    ours: bool

    @property
    def payment(self) -> str:
        return f"pi_{self.order}"

    @property
    def elsewhere(self) -> str:
        """The provider's reference of what another system sent."""
        return f"rf_old_{self.order}"


def drawn(seed: int, count: int) -> list[Wish]:
    """Half was sent by us, of which every fifth never arrived; half was taken over."""
    draw = random.Random(seed)
    wishes = []
    for number in range(count):
        ours = number % 2 == 0
        wishes.append(
            Wish(
                order=f"due-{number}",
                account=ACCOUNTS[number // 2 % len(ACCOUNTS)],
                amount_minor=draw.randrange(100, 9000),
                made=not ours or draw.random() > 0.2,
                ours=ours,
            )
        )
    return wishes


def fill(here: Installation, wishes: list[Wish]) -> None:
    """Make all of it, while neither the beat nor the worker that finds out runs."""
    tell_provider(here, wishes)
    feed(here, wishes)
    _take_over(here, [each for each in wishes if not each.ours])
    ours = [each for each in wishes if each.ours]
    for made, fault in ((True, "drop_after_commit"), (False, "drop_before_commit")):
        for account in ACCOUNTS:
            here.provider.fault(fault, account=account, times=None)
        _send(here, [each for each in ours if each.made == made])
        here.provider.clear_faults()


def due_in(database: str, seconds: float) -> int:
    """Set the next look of every unknown refund to one instant from now on; how many there are."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "UPDATE operation SET due_at = now() + %s * interval '1 s' WHERE state = 'unknown'",
            [seconds],
        ).rowcount


def tell_provider(here: Installation, wishes: list[Wish]) -> None:
    """The payments of all of them, and the refunds that another system made, into the book."""
    at = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for start in range(0, len(wishes), _TELLING):
        some = wishes[start : start + _TELLING]
        told: dict[str, list[dict[str, Any]]] = {
            "payments": [
                {
                    "account": each.account,
                    "ref": each.payment,
                    "currency": "USD",
                    "captured_minor": CAPTURED_MINOR,
                    "created_at": at,
                }
                for each in some
            ],
            "refunds": [
                {
                    "id": each.elsewhere,
                    "account": each.account,
                    "payment": each.payment,
                    "amount_minor": each.amount_minor,
                    "by": "dashboard",
                    "statuses": [[at, "succeeded"]],
                }
                for each in some
                if not each.ours
            ],
        }
        here.provider.control("POST", "/history", told)


def feed(here: Installation, wishes: list[Wish]) -> None:
    """Their orders, as the shop's own file has them."""
    at = (datetime.now(UTC) - timedelta(days=9)).isoformat()
    rows = [
        [each.order, 1, "USD", f"cus_{each.order}", each.payment, each.account]
        + ["captured", CAPTURED_MINOR, at]
        for each in wishes
    ]
    head = ["order_ref", "feed_seq", "currency", "customer_ref", "payment_ref"]
    head += ["provider_account", "payment_state", "captured_minor", "captured_at"]
    _at_once(
        here,
        [
            ("manage.py", "import_orders", str(_csv(here.run_dir / f"orders-{n}.csv", head, some)))
            for n, some in enumerate(_shared_out(rows))
        ],
    )


def _take_over(here: Installation, wishes: list[Wish]) -> None:
    at = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    rows = [
        [f"old-{each.order}", each.account, each.payment, each.amount_minor, "USD", at]
        + [each.elsewhere]
        for each in wishes
    ]
    head = ["source_ref", "provider_account", "payment_ref", "amount_minor", "currency"]
    head += ["requested_at", "provider_refund_ref"]
    _at_once(
        here,
        [
            ("manage.py", "import_unknown", str(_csv(here.run_dir / f"old-{n}.csv", head, some)))
            + ("--by", "ines", "--for-real")
            for n, some in enumerate(_shared_out(rows))
        ],
    )


def _send(here: Installation, wishes: list[Wish]) -> None:
    commands = []
    for n, some in enumerate(_shared_out(wishes)):
        file = here.run_dir / f"send-{n}.json"
        told = [{"order": each.order, "amount_minor": each.amount_minor} for each in some]
        file.write_text(json.dumps(told))
        commands.append(("-m", "tests.due_at_once.fill", str(file)))
    _at_once(here, commands)


def _shared_out[T](everything: list[T]) -> list[list[T]]:
    return [some for n in range(_SENDERS) if (some := everything[n::_SENDERS])]


def _csv(file: Path, head: list[str], rows: list[list[Any]]) -> Path:
    with file.open("w", newline="") as written:
        csv.writer(written).writerows([head, *rows])
    return file


def _at_once(here: Installation, commands: Sequence[tuple[str, ...]]) -> None:
    with ThreadPoolExecutor(_SENDERS) as senders:
        for ran in [senders.submit(here.run, *command) for command in commands]:
            ran.result()
