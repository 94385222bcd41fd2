"""Rows of a CSV file, read as a stream: never held, and wrong headers said before any row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.providers import registry
from refunds.text import parse_instant

_MINOR = re.compile(r"-?[0-9]{1,12}", re.ASCII)


class Unreadable(Exception):
    """The file as a whole cannot be read; the message says where and what to do."""


class Wrong(Exception):
    """One cell cannot be taken; `column` and the sentence that says what to write."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(f"{column}: {why}")
        self.column = column


@dataclass(frozen=True, slots=True)
class Row:
    """One row by column; `cells` lacks what the row is short of; `wanted` cells the header has."""

    line: int
    cells: dict[str, str]
    width: int
    wanted: int = 0

    def require_whole(self) -> None:
        """Raises Wrong for a row with more or fewer cells than the header."""
        if self.width != self.wanted:
            raise Wrong("row", f"{self.width} cells; the header has {self.wanted}")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a file has: all of `always`, exactly one of `one_of` where given, and any of
    `may`. `others`: it is somebody else's file, whose further columns are passed over."""

    always: tuple[str, ...]
    one_of: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    others: bool = False

    def check(self, header: list[str]) -> None:
        """Raises Unreadable for a header that is not these columns."""
        one = f" and one of {' or '.join(self.one_of)}" if self.one_of else ""
        wanted = f"write the columns {','.join(self.always)}{one}"
        for name in header:
            if not self.others and name not in (*self.always, *self.one_of, *self.may):
                raise Unreadable(f"line 1: unknown column {name!r}; {wanted}")
            if header.count(name) > 1:
                raise Unreadable(f"line 1: the column {name!r} stands twice")
        missing = [name for name in self.always if name not in header]
        if missing:
            raise Unreadable(f"line 1: missing {', '.join(missing)}; {wanted}")
        if self.one_of and len(set(self.one_of) & set(header)) != 1:
            raise Unreadable(f"line 1: {wanted}")


def header_of(path: Path) -> list[str]:
    """The names of the first line. Raises Unreadable."""
    return next(_lines(path), (0, list[str]()))[1]


def rows(path: Path, columns: Columns) -> Iterator[Row]:
    """The rows of the file, one after the other. Raises Unreadable."""
    lines = _lines(path)
    _, header = next(lines, (0, list[str]()))
    columns.check(header)
    for line, cells in lines:
        yield Row(line, dict(zip(header, cells, strict=False)), len(cells), len(header))


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if cells or not line:  # an empty first line is an empty header
                    yield line + 1, cells
                line = reader.line_num
    except UnicodeDecodeError:
        raise Unreadable(
            f"line {line + 1} or later: the file is not UTF-8; save it as UTF-8"
        ) from None
    except csv.Error as error:
        raise Unreadable(f"line {line + 1}: {error}; check the quotes") from None
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None


def account_cell(row: Row, column: str = "provider_account") -> str:
    """A provider account of this installation; raises Wrong."""
    name = row.cells[column]
    if name not in registry.accounts():
        known = ", ".join(sorted(registry.accounts()))
        raise Wrong(column, f'"{name[:40]}" is not one of: {known}')
    return name


def text_cell(row: Row, column: str, *, needed: bool = True, length_max: int = 128) -> str:
    """A reference; raises Wrong where it is needed and empty, or too long."""
    text = row.cells[column].strip()
    if needed and not text:
        raise Wrong(column, "empty; every row needs it")
    if len(text) > length_max:
        raise Wrong(column, f"longer than {length_max} characters")
    return text


def currency_cell(row: Row) -> str:
    """A currency; raises Wrong."""
    text = row.cells["currency"]
    try:
        money.exponent(text)
    except Refusal as refusal:
        raise Wrong("currency", f"{refusal.detail} {refusal.what_to_do}") from None
    return text


def minor_cell(row: Row, column: str, *, positive: bool = True) -> int:
    """An amount in minor units; raises Wrong."""
    text = row.cells[column]
    if not _MINOR.fullmatch(text) or (positive and int(text) <= 0):
        raise Wrong(
            column,
            f'"{text[:40]}" is not a whole number of minor units; write digits only, such as 1290',
        )
    return int(text)


def instant_cell(row: Row, column: str, *, needed: bool = True) -> datetime | None:
    """An instant with its zone; None where it is empty and not needed. Raises Wrong."""
    text = row.cells[column]
    if not text and not needed:
        return None
    try:
        return parse_instant(text)
    except Refusal as refusal:
        raise Wrong(column, f"{refusal.detail} {refusal.what_to_do}") from None
