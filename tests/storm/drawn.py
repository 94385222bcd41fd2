"""What a seed draws: the refunds of one storm, and the weather of each account. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass

CAPTURED_MINOR = 12900
AMOUNT_MINOR_MAX = 5000
SIBLINGS_SHARE = 0.1

# Where a lost answer is always settled by proof: none of it may be left to a person.
SETTLED_BY_PROOF = (
    "plain-main",
    "plain-forever",
    "plain-weak",
    "plain-nokeys",
    "plain-lagged",
    "plain-async",
)
# Where a person may have to find out: no lookup at all, or no bound on a request's flight.
MAYBE_A_PERSON = ("plain-hooks", "plain-unbounded", "plain-stored500", "plain-blind")
# No key is kept there: a second request for a refund that is in the book is a second refund.
UNGUARDED = ("plain-nokeys",)
ACCOUNTS = (*SETTLED_BY_PROOF, *MAYBE_A_PERSON)
_PERSON_SHARE = 0.06

# Fault at the provider -> probability, for what an account is asked to pay.
_ON_CREATE = {
    "drop_after_commit": 0.08,
    "drop_before_commit": 0.05,
    "land_late": 0.06,
    "error_after_commit": 0.04,
    "truncated": 0.03,
    "bad_json": 0.02,
    "busy_409": 0.02,
    "rate_429": 0.02,
    "reset_before": 0.02,
}
_ON_LIST = {"lookup_503": 0.03}
# Nobody can find out there: each lost answer is work for a person.
_ON_CREATE_BLIND = {"drop_after_commit": 0.1}
# Made, and not yet answered: the longer, the more senders die just then.
_SLOW_SHARE, _SLOW_SECONDS = 0.7, 0.9
_SLOW_SHARE_UNGUARDED, _SLOW_SECONDS_UNGUARDED = 0.9, 3.0


@dataclass(frozen=True)
class Wish:
    """One refund that somebody wants."""

    number: int
    order: str
    account: str
    amount_minor: int

    @property
    def customer(self) -> str:
        return f"cus_{self.order}"


def drawn(seed: int, count: int) -> list[Wish]:
    """So many refunds; some are the second one of the same order."""
    draw = random.Random(seed)
    wishes: list[Wish] = []
    for number in range(count):
        before = wishes[-1] if wishes else None
        is_second = before is not None and before.order == f"storm-{before.number}"
        if before is not None and is_second and draw.random() < SIBLINGS_SHARE:
            amount_minor = draw.randrange(100, AMOUNT_MINOR_MAX)
            if amount_minor != before.amount_minor:
                wishes.append(Wish(number, before.order, before.account, amount_minor))
                continue
        is_for_a_person = draw.random() < _PERSON_SHARE
        group = MAYBE_A_PERSON if is_for_a_person else (*SETTLED_BY_PROOF, *UNGUARDED)
        amount_minor = draw.randrange(100, AMOUNT_MINOR_MAX)
        wishes.append(Wish(number, f"storm-{number}", draw.choice(group), amount_minor))
    return wishes


def weather(seed: int) -> list[dict[str, object]]:
    """The provider's fault plan for the whole storm: how often which answer goes wrong."""
    rules: list[dict[str, object]] = []
    for account in ACCOUNTS:
        is_blind = account in ("plain-blind", "plain-stored500", "plain-hooks")
        creates = _ON_CREATE_BLIND if is_blind else _ON_CREATE
        rules += [_rule(account, "create", name, share) for name, share in creates.items()]
        share, seconds = _SLOW_SHARE, _SLOW_SECONDS
        if account in UNGUARDED:
            share, seconds = _SLOW_SHARE_UNGUARDED, _SLOW_SECONDS_UNGUARDED
        rules.append(_rule(account, "create", "delay", share, seconds=seconds))
        if not is_blind:
            rules += [_rule(account, "list", name, share) for name, share in _ON_LIST.items()]
    random.Random(seed).shuffle(rules)
    return rules


def _rule(
    account: str, on: str, fault: str, probability: float, **options: object
) -> dict[str, object]:
    return {
        "account": account,
        "on": on,
        "fault": fault,
        "times": None,
        "after": 0,
        "probability": probability,
        "match": {},
        "with": options,
    }
