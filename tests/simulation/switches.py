"""The table of switches.toml: rule by rule what takes it out, and what stands behind it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from tests.red import ROOT, Edit, edits

FILE = ROOT / "tests/simulation/switches.toml"
# The schedules without a database go through all of these, and through nothing else.
_DECIDES = frozenset(
    {
        "reconciliation/decide.py",
        "reconciliation/matching.py",
        "reconciliation/proof.py",
        "reconciliation/told.py",
        "refunds/domain/contract.py",
    }
)


@dataclass(frozen=True)
class Switch:
    """`off` are out together. `behind`: what else must be out before harm is done. `held_by`: why
    no book can show it. `seeds` are tried before others."""

    rule: int
    name: str
    off: tuple[Edit, ...]
    behind: tuple[Edit, ...] = ()
    held_by: str = ""
    seeds: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """What must fail where no book can show it."""
        return tuple(test for each in self.off for test in each.tests)


def on_paper(out: tuple[Edit, ...]) -> bool:
    """Whether the schedules without a database go through all that is out."""
    return all(each.file in _DECIDES for each in out)


def table() -> list[Switch]:
    """Every switch; raises KeyError for one that names an edit that is nowhere."""
    read = tomllib.loads(FILE.read_text())
    known = {each.breaks: each for each in edits()}
    known |= {row["breaks"]: Edit(rule=0, tests=(), **row) for row in read["edit"]}
    return [
        Switch(
            rule=row["rule"],
            name=row["name"],
            off=tuple(known[name] for name in row["off"]),
            behind=tuple(known[name] for name in row.get("behind", ())),
            held_by=row.get("held_by", ""),
            seeds=tuple(row.get("seeds", ())),
        )
        for row in read["switch"]
    ]
