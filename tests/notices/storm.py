"""A storm of notices on refunds whose answers were lost, and what is left when it is over.

One thread, one seed: a run is repeated exactly. Bells are lost, doubled and heard in any order,
the database is away now and then, and days pass in the middle.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection
from django.utils import timezone

from reconciliation import notices, sweep, tasks
from reconciliation.models import Case, Notice
from refunds import dispatch, doorbell
from refunds.domain import states
from refunds.models import Operation
from tests import build
from tests.bad_agent import __main__ as bad_agent
from tests.bugs.history import let_pass
from tests.cast import Cast
from tests.notices.telegrams import REFUSED, Delivery, Event, Sender
from tests.notices.telling import tell
from tests.provider_process import ROOT, SandboxProcess

ACCOUNTS = ("plain-main", "plain-hooks", "plain-async", "stripe-main")
PROOFS = frozenset({"plain-hooks"})
SEND_FAULTS = ("", "drop_after_commit", "drop_after_commit", "error_after_commit")
ROUNDS = 14
# No whole minutes: counts by the minute must not meet each other while all are moved back.
ROUND_SECONDS = 119.5
# One lead says yes to all of it within a minute: the limits of a shop are not what is tried here.
POLICY_CHANGES = bad_agent.POLICY_CHANGES | {
    "approvals_per_person_hour_max = 60\n": "approvals_per_person_hour_max = 6000\n",
}


@dataclass
class Storm:
    """One run: `deliveries` at the door, about a fifth as many refunds."""

    provider: SandboxProcess
    cast: Cast
    seed: int
    deliveries: int
    kinds: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)
    acknowledged: list[tuple[Delivery, int]] = field(default_factory=list)
    owed: list[Delivery] = field(default_factory=list)
    bells: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """The whole storm; what was found in the end."""
        self.draw = random.Random(self.seed)
        doorbell.connect(lambda task, named, after: self.bells.append((task, named)))
        self.sender = Sender(self.draw, proofs=PROOFS)
        self._send_refunds()
        for half in range(2):
            for _ in range(self.deliveries // 2):
                self._deliver(self.sender.next())
                self._hear_some()
            if half == 0:
                self._days_pass()
        self._settle()
        return self._judged()

    # What happens at the provider

    def _send_refunds(self) -> None:
        for number in range(max(self.deliveries // 5, 8)):
            account = ACCOUNTS[number % len(ACCOUNTS)]
            ref = f"S-{number}"
            self.provider.payment(f"pi_{ref}", 12900, account=account)
            build.order(ref, account=account)
            amount = self.draw.randrange(100, 9000)
            operation = build.authorized(
                self.cast.echo, self.cast.ben, order_ref=ref, amount_minor=amount
            )
            fault = self.draw.choice(SEND_FAULTS)
            if fault:
                self.provider.fault(fault, account=account)
            dispatch.send(str(operation.pk))
        self._events("made")
        self.provider.advance(6)
        self._events("settled")
        self._turn_some(0.15)

    def _turn_some(self, share: float) -> None:
        """Some refunds fail after all; where nobody can be asked that is a matter for people."""
        for account in ACCOUNTS:
            for refund in self.provider.refunds(account):
                if refund["status"] == "succeeded" and self.draw.random() < share:
                    self.provider.control(
                        "POST", f"/refunds/{refund['id']}/status", {"to": "failed"}
                    )
        self._events("turned")

    def _events(self, moment: str) -> None:
        """A notice for each refund whose status is new since the last time."""
        told = {
            (each.refund["id"], each.refund["status"])
            for each in (*self.sender.fresh, *self.sender.sent)
        }
        for account in ACCOUNTS:
            for payment in self.provider.book(account)["payments"]:
                for refund in payment["refunds"]:
                    if (refund["id"], refund["status"]) not in told:
                        name = f"evt_{moment}_{refund['id']}_{refund['status']}"
                        self.sender.fresh.append(
                            Event(account, name, payment["ref"], payment["currency"], refund)
                        )

    def _days_pass(self) -> None:
        """Three days, with everything that was not delivered yet still on its way."""
        seconds = 3 * 86_400
        let_pass(seconds)
        self.provider.advance(seconds)
        self._turn_some(0.05)

    # At the door, and behind it

    def _deliver(self, delivery: Delivery) -> None:
        self.kinds[delivery.kind] += 1
        if self.draw.random() < 0.05:
            with without_database():
                said = tell(delivery.body, account=delivery.account, header=delivery.header)
        else:
            said = tell(delivery.body, account=delivery.account, header=delivery.header)
        self.answers[said.status] += 1
        wanted = {400} if delivery.kind in REFUSED else {200, 503}
        if said.status not in wanted and said.status != 503:
            self.wrong.append(f"{delivery.kind} was answered with {said.status}: {said.body}")
        if said.status == 200:
            self.acknowledged.append((delivery, self._last_call()))
        elif delivery.kind not in REFUSED:
            self.owed.append(delivery)  # a provider sends again what nobody took

    def _last_call(self) -> int:
        calls = self.provider.control("GET", f"/calls?after={max(self._seen, 0)}")["calls"]
        self._seen = max([self._seen, *(each["seq"] for each in calls)])
        return self._seen

    _seen = 0

    def _hear_some(self) -> None:
        while self.bells and self.draw.random() < 0.6:
            task, named = self.bells.pop(self.draw.randrange(len(self.bells)))
            fate = self.draw.random()
            if fate < 0.1:
                continue
            for _ in range(2 if fate > 0.9 else 1):
                self._run(task, named)

    def _run(self, task: str, named: str) -> None:
        name = task.rpartition(".")[2]
        # The account's own lists would find the same by themselves; here notices must do.
        if name != "sweep_account" and task != "refunds.tasks.send":
            getattr(tasks, name)(named)

    def _settle(self) -> None:
        """The provider sends again what it owes; then time passes until nothing is due."""
        for _ in range(6):
            owed, self.owed = self.owed, []
            for delivery in owed:
                again = self.sender._signed(delivery.kind, _event_of(delivery), delivery.body)
                self._deliver(again)
            while (fresh := self.sender.next_new()) is not None:
                self._deliver(fresh)
            if not self.owed:
                break
        for _ in range(ROUNDS):
            self._round()
            let_pass(ROUND_SECONDS)

    def _round(self) -> None:
        notices.ring_for_due(timezone.now(), batch_max=10_000)
        sweep.ring_for_due(timezone.now())
        while self.bells:
            self._run(*self.bells.pop(0))

    # What is left

    def _judged(self) -> dict[str, Any]:
        for operation in Operation.objects.select_related("payment"):
            because = self._wrong_end(operation)
            if because:
                self.wrong.append(f"{operation.provider_account} {operation.pk}: {because}")
        lost = self._lost()
        unfetched = self._unfetched()
        ended = Counter(Operation.objects.values_list("state", flat=True))
        outcomes = Counter(Notice.objects.values_list("outcome", flat=True))
        return {
            "deliveries": sum(self.kinds.values()),
            "kinds": dict(sorted(self.kinds.items())),
            "answers": dict(sorted(self.answers.items())),
            "stored": Notice.objects.count(),
            "outcomes": dict(sorted(outcomes.items())),
            "refunds": sum(ended.values()),
            "ends": dict(sorted(ended.items())),
            "cases": Case.objects.filter(closed_at=None).count(),
            "wrong": len(self.wrong),
            "lost": len(lost),
            "without_a_later_fetch": len(unfetched),
            "examples": [*self.wrong[:4], *lost[:4], *unfetched[:4]],
            "ok": not (self.wrong or lost or unfetched),
        }

    def _wrong_end(self, operation: Operation) -> str:
        """Where our end is not the provider's; a case for people is no wrong end of what failed."""
        theirs = [
            each["status"]
            for each in self.provider.refunds(operation.provider_account)
            if each["aftersend_operation"] == operation.marker
        ]
        asked = Case.objects.filter(operation=operation, closed_at=None).exists()
        state = operation.state
        if not theirs:
            return "" if state != states.SUCCEEDED else "succeeded, and the book holds nothing"
        if theirs == ["succeeded"]:
            return "" if state == states.SUCCEEDED else f"{state}, and the book says succeeded"
        if theirs == ["failed"]:
            ours_too = state in (states.FAILED, states.RETURNED) or asked
            return "" if ours_too else f"{state} without a case, and the book says failed"
        return f"{state}, and the book says {theirs}"

    def _lost(self) -> list[str]:
        """Acknowledged, and not stored; or stored, and neither applied nor shown to people."""
        stored = {
            (each.provider_account, each.event_id): each
            for each in Notice.objects.exclude(verdict="odd")
        }
        lost = []
        for delivery, _ in self.acknowledged:
            notice = stored.get((delivery.account, delivery.event_id))
            if notice is None:
                lost.append(f"{delivery.kind} {delivery.event_id} was acknowledged, not stored")
            elif notice.applied_at is None and notice.case_id is None:
                lost.append(f"{delivery.kind} {delivery.event_id} is neither applied nor a case")
        return lost

    def _unfetched(self) -> list[str]:
        """Acknowledged for the first time, and the provider's log shows no later question."""
        asked: dict[str, int] = {}
        for call in self.provider.calls():
            if call["on"] in ("list", "retrieve"):
                for word in call["path"].replace("&", "=").split("="):
                    asked[word] = max(asked.get(word, 0), call["seq"])
        first: dict[tuple[str, str], tuple[Delivery, int]] = {}
        for delivery, seen in self.acknowledged:
            first.setdefault((delivery.account, delivery.event_id), (delivery, seen))
        return [
            f"{delivery.kind} {delivery.event_id}: no fetch of {delivery.payment_ref} after it"
            for delivery, seen in first.values()
            if delivery.account not in PROOFS
            and delivery.kind not in ("other_mode", "unknown_payment")
            and asked.get(delivery.payment_ref, 0) <= seen
        ]


def _event_of(delivery: Delivery) -> Event:
    return Event(delivery.account, delivery.event_id, delivery.payment_ref, "USD", {})


@contextmanager
def without_database() -> Iterator[None]:
    """Nobody answers where the database was."""
    kept = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    connection.close()
    connection.settings_dict |= {"HOST": "127.0.0.1", "PORT": "1"}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict |= kept


def lenient_policy(folder: Path) -> Path:
    """The shop's policy without limits on how much one lead approves in an hour."""
    text = (ROOT / "policy.toml").read_text()
    for usual, here in POLICY_CHANGES.items():
        assert usual in text, f"policy.toml no longer says {usual!r}"
        text = text.replace(usual, here)
    changed = folder / "policy.toml"
    changed.write_text(text)
    return changed
