"""The faults that the product must survive, as docs/reliability.md shows them.

`python -m tests.fault_rows` writes the page's table anew from tests/fault_rows.toml.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Final

from tests.provider_process import ROOT

FILE: Final = ROOT / "docs/reliability.md"
_PART = re.compile(r"(<!-- generated: faults -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fault. `tests` are "file::function", `programs` "make target: what of it is meant"."""

    fault: str
    expected: str
    tests: tuple[str, ...]
    programs: tuple[str, ...] = ()
    figure: str = ""
    open: str = ""


def rows() -> list[Row]:
    """All of them, in their order."""
    listed = tomllib.loads((ROOT / "tests/fault_rows.toml").read_text())["rows"]
    return [
        Row(
            **each | {"tests": tuple(each["tests"]), "programs": tuple(each.get("programs", ()))},
        )
        for each in listed
    ]


def markdown_table() -> str:
    """The faults, what must come of each, what proves it, and what is not proved."""
    lines = ["| fault | what must come of it | proved by | last figure |", "|---|---|---|---|"]
    for row in rows():
        proofs = [f"`{each.rpartition('::')[2]}`" for each in row.tests]
        for each in row.programs:
            command, _, what = each.partition(": ")
            proofs.append(f"`{command}` ({what})")
        if row.open:
            proofs.append(f"*Not proved yet:* {row.open}")
        lines.append(
            f"| {row.fault} | {row.expected} | {'<br>'.join(proofs)} | {row.figure or '—'} |"
        )
    return "\n".join(lines)


def written(text: str) -> str:
    """The page with the table as the list has it."""
    return _PART.sub(lambda found: f"{found[1]}{markdown_table()}\n{found[2]}", text)


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))
