"""Bad agents against a whole installation: `python -m tests.bad_agent`.

CALLS (10000), SEED (1), JSON=1 for a last line for machines, BREAK=same-call or double to take a
guard out and be noticed. Ends with 0 when the provider's book holds exactly the refunds that were
wanted, 1 otherwise, 2 for unusable input.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from typing import Any

import httpx

from tests import ended
from tests.audit_book import FAULTS, audit
from tests.bad_agent.calls import Armoury, Call, any_call, first, hasty, same_call
from tests.bad_agent.hammer import CONNECTIONS, Hammer, Heard
from tests.bad_agent.lead import Leads
from tests.bad_agent.wishes import ACCOUNTS, Wish, draw_wishes
from tests.drive_console import captured
from tests.walkthrough.installation import Installation
from tests.walkthrough.programs import wait_until
from tests.walkthrough.trail import Trail

CALLS_MIN = 1_000
RACED_COUNT = 100
# Ten times what one key may call in a minute, as fast as it goes.
HASTY_VOLLEYS = 38
SETTLE_SECONDS_MAX = 180
FEED_SECONDS_MAX = 60
ON_ITS_WAY = """
SELECT id FROM operation
WHERE state IN ('authorized', 'submitting', 'pending', 'unknown') LIMIT 1"""
DECIDED = """
SELECT DISTINCT operation_id FROM event
WHERE event IN ('approved', 'policy_cleared', 'withdrawn', 'rejected')"""
BREAKS = {"": "config.asgi", "same-call": "tests.bad_agent.broken", "double": "config.asgi"}
# This shop lets agents ask for as much as they like: what is tried is not its limits.
POLICY_CHANGES = {
    "tier1_max_minor = 10000\n": "tier1_max_minor = 900000000\n",
    "tier2_max_minor = 100000\n": "tier2_max_minor = 950000000\n",
    "refund_max_minor = 1000000\n": "refund_max_minor = 950000000\n",
    "no_lookup_limit_minor = 5000 ": "no_lookup_limit_minor = 900000000 ",
    "no_lookup_limit_minor = 5000\n": "no_lookup_limit_minor = 900000000\n",
    "per_refund_minor = 20000\n": "per_refund_minor = 900000000\n",
    "per_day_minor = 200000\n": "per_day_minor = 900000000\n",
    "per_order_count_24h = 5\n": "per_order_count_24h = 5000\n",
    "approvals_per_person_hour_max = 60\n": "approvals_per_person_hour_max = 600\n",
}


class Run:
    """One run: what was wanted, what was heard, and what the book holds in the end."""

    def __init__(self, here: Installation, seed: int, leads: Leads) -> None:
        self.here, self.leads = here, leads
        self.draw = random.Random(seed)
        self.single, self.separate = draw_wishes(seed)
        self.heard = Heard()
        keys = json.loads(here.run("-m", "tests.bad_agent.keys"))
        self.armoury = Armoury(keys, self.draw)
        self.trail = Trail(here.database)

    @property
    def wishes(self) -> list[Wish]:
        return [*self.single, *self.separate]

    def feed(self) -> None:
        """Every order with its payment, at the provider and at our door."""
        for wish in self.single:
            self.here.provider.payment(
                wish.payment_ref, wish.captured_minor, account=wish.account, currency=wish.currency
            )
        answer = httpx.post(
            f"{self.here.address}/api/v1/orders:batch",
            content="\n".join(json.dumps(_order(wish)) for wish in self.single),
            headers={
                "Authorization": f"Bearer {self.here.keys['Shop']}",
                "Content-Type": "application/x-ndjson",
            },
            timeout=FEED_SECONDS_MAX,
            trust_env=False,
        )
        taken = [json.loads(line) for line in answer.text.splitlines()]
        assert [each["status"] for each in taken] == [201] * len(self.single), answer.text[:600]

    def named(self, wish: Wish, operation_id: str) -> None:
        """An answer named the operation of a wish: from now on it can be asked about."""
        if not wish.separate:
            self.armoury.operations[wish.number] = operation_id
        elif operation_id in self.armoury.operations.values():
            return
        self.leads.give(wish, operation_id)

    async def hammer(self, calls_count: int) -> None:
        others = (HASTY_VOLLEYS + len(self.separate)) * CONNECTIONS
        async with Hammer(self.here.address, self.heard, self.named) as hammer:
            for _ in range(HASTY_VOLLEYS):
                await hammer.volley([hasty(self.armoury) for _ in range(CONNECTIONS)])
            await self._singles(hammer, calls_count - others)
            await asyncio.to_thread(self._settle, self.single)
            for wish in self.separate:
                await hammer.volley(self._separate_volley(wish))

    async def _singles(self, hammer: Hammer, calls_count: int) -> None:
        """Firsts among everything else: half of them sixteen at a time, half among bad calls."""
        fresh, begun, left = list(self.single), [], calls_count
        every = max(calls_count // CONNECTIONS // len(fresh), 1)
        turn = 0
        while left > 0:
            calls: list[Call] = []
            if fresh and turn % every == 0:
                wish = fresh.pop()
                begun.append(wish)
                calls.append(first(self.armoury, wish))
                if len(begun) <= RACED_COUNT:
                    calls += [same_call(self.armoury, wish) for _ in range(CONNECTIONS - 1)]
            pool = begun[-30:] if self.draw.random() < 0.7 else begun
            while len(calls) < min(CONNECTIONS, left):
                calls.append(any_call(self.armoury, self.draw.choice(pool)))
            await hammer.volley(calls[:left])
            left -= len(calls[:left])
            turn += 1
        assert not fresh, "too few calls for all the wishes"

    def _separate_volley(self, wish: Wish) -> list[Call]:
        """An equal second one, asked for by all connections at once."""
        first_wish = next(each for each in self.single if each.order_ref == wish.order_ref)
        first_id = self.armoury.operations[first_wish.number]
        return [first(self.armoury, wish, first_id) for _ in range(CONNECTIONS)]

    def _settle(self, wishes: list[Wish]) -> None:
        """Until everything that leads approved has ended, and nobody is waited for."""
        self.leads.wait(SETTLE_SECONDS_MAX)
        wait_until(
            lambda: not self.trail.rows(ON_ITS_WAY) or None,
            seconds=SETTLE_SECONDS_MAX,
            what="everything approved has ended",
        )

    def finish(self) -> dict[str, Any]:
        """Let the last ones end, and compare the book with what was wanted."""
        self._settle(self.wishes)
        wanted = Counter(wish.in_the_book for wish in self.wishes)
        held = Counter(
            (payment["ref"], refund["amount_minor"], payment["currency"])
            for account in ACCOUNTS
            for payment in self.here.provider.book(account)["payments"]
            for refund in payment["refunds"]
        )
        audited = audit(str(self.here.provider.book_file), self.here.database)
        twice = [wish for wish, ids in self.heard.named.items() if len(ids) > 1 + wish.separate]
        found = {
            "wanted": len(self.wishes),
            "in_the_book": sum(held.values()),
            "duplicates": audited["duplicates"] + sum((held - wanted).values()),
            "never_paid": sum((wanted - held).values()),
            "unauthorised_effects": self._unauthorised(),
            "wishes_with_two_operations": len(twice),
            "audit": {name: audited[name] for name in FAULTS},
            "stuck": self.leads.stuck,
        }
        self.trail.close()
        return found

    def _unauthorised(self) -> int:
        """Operations that were approved or withdrawn without a lead of ours having pressed."""
        touched = {str(row["operation_id"]) for row in self.trail.rows(DECIDED)}
        return len(touched - set(self.leads.approved))


def _order(wish: Wish) -> dict[str, Any]:
    payment = captured(wish.account, ref=wish.payment_ref, captured_minor=wish.captured_minor)
    return {
        "order_ref": wish.order_ref,
        "currency": wish.currency,
        "customer_ref": f"cus_{wish.number}",
        "payments": [payment],
    }


def main() -> int:
    wanted = {"CALLS": os.environ.get("CALLS", "10000"), "SEED": os.environ.get("SEED", "1")}
    broken = os.environ.get("BREAK", "")
    if not all(each.isdigit() for each in wanted.values()) or broken not in BREAKS:
        print(
            f"CALLS and SEED are whole numbers, BREAK is one of: {', '.join(filter(None, BREAKS))}."
        )
        return 2
    calls_count, seed = int(wanted["CALLS"]), int(wanted["SEED"])
    if calls_count < CALLS_MIN * 5:
        print(f"CALLS must be {CALLS_MIN * 5} or more: the wishes alone need as many.")
        return 2
    began = time.monotonic()
    print(f"Starting an installation of its own, SEED={seed}.", flush=True)
    with (
        Installation(policy_changes=POLICY_CHANGES, web_module=BREAKS[broken]) as here,
        Leads(here.address, here.password) as leads,
    ):
        run = Run(here, seed, leads)
        run.feed()
        # Every twelfth answer of the provider gets lost, so that repeats also meet unknown ones.
        here.provider.fault("drop_after_commit", times=None, probability=0.08, seed=seed)
        if broken == "double":
            here.provider.fault("execute_twice", account="plain-nokeys", times=1)
        print(f"{len(run.wishes)} refunds are wanted; {calls_count} calls begin.", flush=True)
        asyncio.run(run.hammer(calls_count))
        found = run.finish()
    return _tell(run.heard, found, calls_count, seed, broken, time.monotonic() - began)


def _tell(
    heard: Heard, found: dict[str, Any], calls_count: int, seed: int, broken: str, seconds: float
) -> int:
    sent = sum(heard.calls.values())
    for kind, count in sorted(heard.calls.items()):
        print(f"  {count:6} {kind}")
    print(f"  {sent:6} calls in all, {heard.true_races} true races (pairs in flight together)")
    print("Refusals: " + ", ".join(f"{name} {n}" for name, n in sorted(heard.refusals.items())))
    for example in [*heard.wrong, *heard.speechless, *found["stuck"][:5]]:
        print(f"  NOT RIGHT: {example}")
    for name, count in heard.wrong_count.items():
        print(f"  NOT RIGHT: {count} x {name}")
    print(json.dumps({name: value for name, value in found.items() if name != "stuck"}))
    counts = (*found["audit"].values(), found["duplicates"], found["never_paid"])
    more = (found["unauthorised_effects"], found["wishes_with_two_operations"], len(found["stuck"]))
    paced = heard.refusals["rate_limited"] > 0
    ok = heard.clean and paced and not any((*counts, *more)) and sent == calls_count
    print(f"{'ok' if ok else 'NOT OK'}, {seconds:.0f} s in all.")
    if os.environ.get("JSON"):
        line = {
            "calls": sent,
            "duplicates": found["duplicates"],
            "unauthorised_effects": found["unauthorised_effects"],
            "server_errors": heard.server_errors,
            "refusals": dict(heard.refusals),
            "kinds": dict(heard.calls),
            "true_races": heard.true_races,
            "wanted": found["wanted"],
            "in_the_book": found["in_the_book"],
            "seed": seed,
            "broken": broken,
            "seconds": round(seconds, 1),
            "ok": ok,
        }
        print(json.dumps(line))
    if broken:
        return 1 if not ok else 3
    return 0 if ok else 1


if __name__ == "__main__":
    ended.run(main)
