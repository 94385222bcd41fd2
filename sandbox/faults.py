"""The fault plan: rules that let faults loose on chosen requests, from one seed."""

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sandbox.book import Book
from sandbox.catalogue import CATALOGUE, option_problem
from sandbox.operations import Fired, Twists

_MATCHES = ("marker", "key", "payment", "refund")
_FIELDS = ("account", "on", "fault", "times", "after", "probability", "match", "with")
_RULES_MAX = 1000


class RuleError(ValueError):
    """A rule that names nothing the sandbox can do."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Strike `times` requests (None: all of them), not the first `after` ones that match."""

    account: str
    on: str
    fault: str
    times: int | None = 1
    after: int = 0
    probability: float = 1.0
    match: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The request or notice that rules are held against; `known`: seen in the book before."""

    account: str
    on: str
    marker: str | None = None
    key: str | None = None
    payment: str | None = None
    refund: str | None = None
    known: bool = False


def read_rule(given: Mapping[str, Any]) -> Rule:
    """A rule as posted; RuleError says what to change."""
    unknown = sorted(set(given) - set(_FIELDS))
    if unknown:
        raise RuleError(f"unknown field {unknown[0]!r}; use {', '.join(_FIELDS)}")
    fault, on, account = given.get("fault"), given.get("on"), given.get("account")
    kind = CATALOGUE.get(fault) if isinstance(fault, str) else None
    if kind is None or not isinstance(fault, str):
        raise RuleError(f"unknown fault {fault!r}; use one of {', '.join(sorted(CATALOGUE))}")
    if not isinstance(on, str) or on not in kind.on:
        raise RuleError(f"{fault} strikes on {', '.join(sorted(kind.on))}, not on {on!r}")
    if not isinstance(account, str):
        raise RuleError("account is required")
    options = given.get("with", {})
    if not isinstance(options, dict):
        raise RuleError("with must be an object")
    problem = option_problem(fault, options)
    if problem is not None:
        raise RuleError(problem)
    return Rule(
        account=account,
        on=on,
        fault=fault,
        match=_match(given.get("match", {}), on),
        options=options,
        **_counts(given),
    )


def _match(match: object, on: str) -> Mapping[str, str]:
    if not isinstance(match, dict) or any(name not in _MATCHES for name in match):
        raise RuleError(f"match must be an object of {', '.join(_MATCHES)}")
    if on == "list" and set(match) - {"payment"}:
        raise RuleError("a list can be matched by payment only")
    return match


def _counts(given: Mapping[str, Any]) -> dict[str, Any]:
    times, after = given.get("times", 1), given.get("after", 0)
    probability = given.get("probability", 1.0)
    if times is not None and (type(times) is not int or times < 1):
        raise RuleError("times must be null (always) or at least 1")
    if type(after) is not int or after < 0:
        raise RuleError("after must be at least 0")
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        raise RuleError("probability must be a number from 0 to 1")
    if not 0 <= probability <= 1:
        raise RuleError("probability must be a number from 0 to 1")
    return {"times": times, "after": after, "probability": probability}


class Plan:
    """The rules in the book, oldest first. A rule sees every request that it matches."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def add(self, rules: Iterable[Rule], seed: int) -> list[int]:
        """Add rules after those already there; the new rules' ids."""
        with self._book.transaction():
            ids = []
            for position, rule in enumerate(rules):
                number = self._book.mint()
                self._book.db.execute(
                    "INSERT INTO rules (id, seed, position, rule) VALUES (?, ?, ?, ?)",
                    (number, seed, position, json.dumps(asdict(rule))),
                )
                ids.append(number)
            if self._count() > _RULES_MAX:
                self._forget_spent()
            if self._count() > _RULES_MAX:
                raise RuleError(f"more than {_RULES_MAX} rules; DELETE /_control/faults first")
        return ids

    def _count(self) -> int:
        return int(self._book.db.execute("SELECT count(*) FROM rules").fetchone()[0])

    def _forget_spent(self) -> None:
        """Drop the rules that have struck as often as they may."""
        self._book.db.execute("DELETE FROM rules WHERE fired >= json_extract(rule, '$.times')")

    def clear(self) -> None:
        with self._book.transaction():
            self._book.db.execute("DELETE FROM rules")
            self._book.db.execute("DELETE FROM facts WHERE name LIKE 'lost:%'")

    def rules(self) -> list[dict[str, Any]]:
        """The rules with how often each has seen a request and fired."""
        shown = []
        for row in self._book.db.execute("SELECT * FROM rules ORDER BY id"):
            rule = json.loads(row["rule"])
            rule["with"] = rule.pop("options")
            counts = {name: row[name] for name in ("id", "seed", "seen", "fired")}
            shown.append(rule | counts)
        return shown

    def draw(self, subject: Subject) -> Twists:
        """The faults that strike this request; counts them as fired."""
        fired: list[Fired] = []
        taken = False
        rows = self._book.db.execute("SELECT * FROM rules ORDER BY id").fetchall()
        if not rows:
            return Twists()
        with self._book.transaction():
            for row in rows:
                rule = Rule(**json.loads(row["rule"]))
                if not _matches(rule, subject):
                    continue
                if rule.times is not None and row["fired"] >= rule.times:
                    continue
                exclusive = CATALOGUE[rule.fault].exclusive
                strikes = _strikes(rule, row["seed"], row["position"], row["seen"])
                strikes = strikes and not (exclusive and taken)
                self._book.db.execute(
                    "UPDATE rules SET seen = seen + 1, fired = fired + ? WHERE id = ?",
                    (int(strikes), row["id"]),
                )
                if strikes:
                    fired.append(Fired(rule.fault, rule.options))
                    taken = taken or exclusive
        return Twists(tuple(fired))


def _matches(rule: Rule, subject: Subject) -> bool:
    if (rule.account, rule.on) != (subject.account, subject.on):
        return False
    if rule.fault == "already_refunded" and not subject.known:
        return False
    return all(getattr(subject, name) == value for name, value in rule.match.items())


def _strikes(rule: Rule, seed: int, position: int, seen: int) -> bool:
    """Decided by seed, place in the plan and count alone: the same plan strikes the same way."""
    if seen < rule.after:
        return False
    return random.Random(f"{seed}:{position}:{seen}").random() < rule.probability
