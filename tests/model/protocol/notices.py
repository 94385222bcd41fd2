"""Notices of one refund: whatever comes when, in the end the ledger says what the provider says.

The provider's refund walks through its statuses; each tells of itself until it was acknowledged, in
any order. Two readers work at the same time, and die wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

WALKS = (("pending", "succeeded", "failed"), ("pending", "failed"), ("pending", "succeeded"))
_RANK = {"": 0, "pending": 1, "failed": 2, "succeeded": 3}


class Reader(NamedTuple):
    """`number` orders lookups by their beginning; `saw` is empty until it has read."""

    notice: int
    number: int = 0
    saw: str = ""


class State(NamedTuple):
    walk: tuple[str, ...]
    at: int = 1
    ledger: str = ""
    known: bool = True
    told: frozenset[int] = frozenset({0})  # still to be acknowledged
    kept: frozenset[int] = frozenset()  # stored, and not applied yet
    seen: frozenset[int] = frozenset()  # taken for dealt with
    readers: tuple[Reader, ...] = ()
    begun: int = 0
    applied: int = 0
    again: bool = True


@dataclass(frozen=True)
class Notices:
    """See explore.Model. `off` names what is left out."""

    off: frozenset[str] = frozenset()

    def starts(self) -> Iterator[State]:
        for walk in WALKS:
            yield State(walk)
            yield State(walk, known=False)

    def rests(self, s: State) -> bool:
        return s.at == len(s.walk) and s.known and not (s.told or s.kept or s.readers)

    def fault(self, s: State) -> str:
        if self.rests(s) and s.ledger != s.walk[-1]:
            return f"the provider ended {s.walk[-1]}, the ledger says {s.ledger or 'nothing'}"
        return ""

    def moves(self, s: State) -> Iterator[tuple[str, State]]:
        for word, after in self._moves(s):
            yield word, _renumbered(after)

    def _moves(self, s: State) -> Iterator[tuple[str, State]]:
        if s.at < len(s.walk):
            yield f"the refund turns {s.walk[s.at]}", s._replace(at=s.at + 1, told=s.told | {s.at})
        if not s.known:
            yield "our own answer is recorded", s._replace(known=True)
        for notice in range(s.at):
            yield from self._comes(s, notice)
        for reader in s.readers:
            yield from self._reads(s, reader)
        if len(s.readers) < 2:
            for notice in sorted(s.kept - {each.notice for each in s.readers}):
                yield from self._begins(s, notice)

    def _comes(self, s: State, notice: int) -> Iterator[tuple[str, State]]:
        if notice in s.told:
            heard = s._replace(told=s.told - {notice})
            if "stored" in self.off:
                # Acknowledged first: what its reader has not done when it dies, nobody does.
                if len(s.readers) < 2:
                    reader = Reader(notice, s.begun + 1)
                    yield f"n{notice} comes", heard._replace(readers=(*s.readers, reader))
            elif notice in s.seen:
                yield f"n{notice} comes, as a repetition", heard
            elif not s.known and "parked" in self.off:
                yield f"n{notice} comes, and nobody knows it", heard
            else:
                yield f"n{notice} comes", heard._replace(kept=s.kept | {notice})
        elif s.again:
            yield f"n{notice} is told again", s._replace(told=s.told | {notice}, again=False)

    def _begins(self, s: State, notice: int) -> Iterator[tuple[str, State]]:
        """A worker takes it up; where it is not known, it stays parked."""
        if not s.known:
            return
        reader = Reader(notice, s.begun + 1)
        begun = s._replace(readers=(*s.readers, reader), begun=s.begun + 1)
        if "effect" in self.off:
            begun = begun._replace(seen=s.seen | {notice}, kept=s.kept - {notice})
        yield f"n{notice} is taken up", begun

    def _reads(self, s: State, reader: Reader) -> Iterator[tuple[str, State]]:
        rest = tuple(each for each in s.readers if each is not reader)
        yield f"n{reader.notice}'s reader dies", s._replace(readers=rest)
        if not reader.saw:
            asked = "asked" not in self.off and "rank" not in self.off
            saw = s.walk[s.at - 1] if asked else s.walk[reader.notice]
            yield (
                f"n{reader.notice} is read as {saw}",
                s._replace(readers=(*rest, reader._replace(saw=saw))),
            )
            return
        done = s._replace(
            readers=rest, kept=s.kept - {reader.notice}, seen=s.seen | {reader.notice}
        )
        word = f"what n{reader.notice} read is stored"
        if "rank" in self.off:
            outranks = _RANK[reader.saw] > _RANK[s.ledger]
            yield word, done._replace(ledger=reader.saw if outranks else s.ledger)
        elif "fenced" in self.off or "asked" in self.off or "stored" in self.off:
            yield word, done._replace(ledger=reader.saw)
        elif reader.number > s.applied:
            yield word, done._replace(ledger=reader.saw, applied=reader.number)
        else:
            yield f"{word}, and overtaken", done


def _renumbered(s: State) -> State:
    """Only the order of the numbers matters: the smallest ones that keep it."""
    used = sorted({s.applied, *(each.number for each in s.readers)})
    new = {number: at for at, number in enumerate(used)}
    readers = tuple(each._replace(number=new[each.number]) for each in s.readers)
    return s._replace(readers=readers, applied=new[s.applied], begun=len(used) - 1)
