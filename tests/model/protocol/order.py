"""Refunds of one order: what pages showed, what approvals list, and the money that all of them share.

A and B are proposed; C comes later, and nobody was shown it. The rule reads the order's log of moves
since a page; what is wrong is judged by the money itself, as the page showed it and as it is when
something is sent. `off` names what is left out of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

A, B, C = 0, 1, 2
_NAMES = "ABC"
LIVE = frozenset({"waiting", "page", "approved", "reading", "sent", "unknown"})
_RANK = {"none": 0, "held": 1, "paid": 2}

Money = tuple[tuple[str, int], ...]


class Refund(NamedTuple):
    """`shown` is the page's list of the others, `money` and `facts` what else it showed; `log` since."""

    state: str
    amount: int
    held: int = 0
    booked: int = 0
    paid: int = 0
    shown: tuple[tuple[int, int], ...] = ()
    money: Money = ()
    facts: tuple[int, int] = (0, 0)
    log: frozenset[tuple[str, int, int]] = frozenset()


class State(NamedTuple):
    """`outside` is what the dashboard refunded, `facts` what of it is known, and a dispute."""

    refunds: tuple[Refund, ...]
    outside: int = 0
    facts: tuple[int, int] = (0, 0)
    edits: int = 1
    why: str = ""


@dataclass(frozen=True)
class Order:
    """See explore.Model."""

    captured: int = 5
    wants: tuple[int, int, int] = (2, 2, 2)
    events: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    only: str = ""

    def starts(self) -> Iterator[State]:
        a, b, c = self.wants
        late = "newcomer" if "newcomer" in self.events else "absent"
        yield State((Refund("waiting", a), Refund("waiting", b), Refund(late, c)))

    def rests(self, s: State) -> bool:
        return all(each.state in ("succeeded", "returned", "ended", "absent") for each in s.refunds)

    def fault(self, s: State) -> str:
        why = s.why or self._fault(s)
        return why if why.startswith(self.only) else ""

    def _fault(self, s: State) -> str:
        for each in s.refunds:
            if each.state in ("sent", "unknown") and not each.held:
                return "nothing is held for what may have been paid"
            if each.state == "ended" and (each.paid or each.held):
                return "ended, and the money moved or is held"
            if each.booked != each.paid and each.state in ("succeeded", "returned"):
                return f"booked {each.booked}, and {each.paid} was paid"
        sent = sum(each.paid for each in s.refunds)
        if sent > self.captured:
            return f"{sent} of {self.captured} was paid"
        return ""

    # What can happen

    def moves(self, s: State) -> Iterator[tuple[str, State]]:
        for i in (A, B):
            yield from self._page(s, i)
            yield from self._sent(s, i)
        yield from self._newcomer(s)
        for i in (A, B, C):
            yield from self._provider(s, i)
        yield from self._elsewhere(s)

    def _put(self, s: State, i: int, *, cause: str = "", **changed: Any) -> State:
        """One transaction: the refund, and the move of the order that it causes."""
        refunds = [*s.refunds]
        refunds[i] = refunds[i]._replace(**changed)
        s = s._replace(refunds=tuple(refunds))
        if not cause or ("moves" in self.off and cause == "reserved"):
            return s
        amount = refunds[i].held or refunds[i].booked or refunds[i].amount
        return self._logged(s, (cause, i, amount))

    def _logged(self, s: State, move: tuple[str, int, int]) -> State:
        refunds = [
            each._replace(log=each.log | {move})
            if each.state in LIVE and (each.shown or each.money)
            else each
            for each in s.refunds
        ]
        return s._replace(refunds=tuple(refunds))

    def _money(self, s: State) -> Money:
        return tuple(
            ("paid", e.booked) if e.booked else ("held", e.held) if e.held else ("none", 0)
            for e in s.refunds
        )

    def _free(self, s: State) -> int:
        return self.captured - s.facts[0] - sum(e.held + e.booked for e in s.refunds)

    # Pages and approvals

    def _page(self, s: State, i: int) -> Iterator[tuple[str, State]]:
        each, name = s.refunds[i], _NAMES[i]
        listed = tuple((j, o.amount) for j, o in enumerate(s.refunds) if j != i and o.state in LIVE)
        drawn: dict[str, Any] = {"shown": listed, "money": self._money(s), "facts": s.facts}
        if each.state == "waiting":
            yield f"{name}'s page is drawn", self._put(s, i, state="page", log=frozenset(), **drawn)
            yield f"{name} is rejected", self._put(s, i, state="ended")
            if "edits" in self.events and s.edits:
                more = self._put(s, i, amount=each.amount + 1)
                yield f"{name} is proposed at {each.amount + 1}", more._replace(edits=0)
        if each.state == "page":
            if "page" in self.off:
                yield (
                    f"{name} is approved",
                    self._put(s, i, state="approved", log=frozenset(), shown=listed),
                )
            elif not each.log and listed == each.shown:
                yield f"{name} is approved", self._put(s, i, state="approved")
            yield f"{name}'s page is closed", self._put(s, i, state="waiting", shown=(), money=())
        if each.state == "approved" and "edited" in self.off and s.edits:
            # Another amount under the approval of this one.
            changed = self._put(s, i, amount=each.amount + 1)
            yield f"{name} is edited", changed._replace(edits=0, why="changed under its approval")

    # The claim

    def _forgiven(self, each: Refund, i: int) -> bool:
        off, listed = self.off, dict(each.shown)
        log = [move for move in each.log if not (move[0] == "reserved" and move[1] == i)]
        if "versions" in off:
            return True
        if "identity" in off:
            return all(cause == "reserved" for cause, _, _ in log) and len(log) <= len(listed)
        if "sums" in off:
            gone = sum(amount for cause, _, amount in log if cause in ("reserved", "outside"))
            return gone in {0, *listed.values(), sum(listed.values())}
        for cause, j, amount in log:
            forgiven = cause in ("reserved", "succeeded") or f"forgives {cause}" in off
            if not forgiven:
                return False
            if cause in ("reserved", "succeeded", "otherwise") and j not in listed:
                return False
            exact = cause in ("reserved", "succeeded") and "amounts" not in off
            if exact and listed[j] != amount:
                return False
        return True

    def _explained(self, s: State, i: int) -> bool:
        """Whether the page's picture leads to the money of now, by refunds of its list alone."""
        each = s.refunds[i]
        if s.facts != each.facts:
            return False
        listed = dict(each.shown)
        for j, now in enumerate(self._money(s)):
            was = each.money[j]
            if j == i or now == was:
                continue
            if listed.get(j) != now[1] or _RANK[now[0]] < _RANK[was[0]]:
                return False
        return True

    def _sent(self, s: State, i: int) -> Iterator[tuple[str, State]]:
        each, name = s.refunds[i], _NAMES[i]
        if each.state not in ("approved", "reading"):
            return
        free = self._free(s)
        if "balance" in self.off:
            free += sum(s.refunds[j].held for j, _ in each.shown)
        if "taken" in self.off:
            free = self.captured
        fits = bool(each.held) or each.amount <= free
        fresh = self._forgiven(each, i)
        if "lock" in self.off:
            if each.state == "approved" and fits and fresh:
                yield f"{name} begins to be sent", self._put(s, i, state="reading")
            elif each.state == "reading":
                yield f"{name} is sent", self._dispatched(s, i)
        elif fits and fresh:
            yield f"{name} is sent", self._dispatched(s, i)
        if not (fits and fresh):
            cause = "released" if each.held else ""
            yield (
                f"{name} waits again",
                self._put(
                    s, i, state="waiting", held=0, shown=(), money=(), log=frozenset(), cause=cause
                ),
            )

    def _dispatched(self, s: State, i: int) -> State:
        each, why = s.refunds[i], ""
        if not self._explained(s, i):
            why = "sent on a picture that its approver never saw"
        elif not each.held and each.amount > self._free(s):
            why = f"{each.amount} was taken, and {self._free(s)} was free"
        after = self._put(
            s, i, state="sent", held=each.amount, cause="" if each.held else "reserved"
        )
        return after._replace(why=why)

    def _newcomer(self, s: State) -> Iterator[tuple[str, State]]:
        each = s.refunds[C]
        if each.state == "newcomer":
            yield "C is proposed", self._put(s, C, state="cleared")
        if each.state == "cleared":
            if each.amount <= self._free(s):
                yield "C is sent", self._put(s, C, state="sent", held=each.amount, cause="reserved")
            yield "C is withdrawn", self._put(s, C, state="ended")

    # The provider

    def _provider(self, s: State, i: int) -> Iterator[tuple[str, State]]:
        each, name = s.refunds[i], _NAMES[i]
        if each.state in ("sent", "unknown"):
            if each.state == "sent":
                held = 0 if "held" in self.off else each.held
                yield f"{name}'s answer is lost", self._put(s, i, state="unknown", held=held)
            if not each.paid:
                yield f"{name} is paid", self._put(s, i, paid=each.amount)
                yield (
                    f"{name} is refused",
                    self._put(s, i, state="ended", held=0, cause="released", shown=(), money=()),
                )
                if each.state == "sent" and "not_executed" in self.events:
                    yield f"{name} was not executed", self._put(s, i, state="approved")
                if "otherwise" in self.events and i == B:
                    yield f"{name} is paid less", self._put(s, i, paid=each.amount - 1)
            else:
                yield from self._booked(s, i)
        if each.state == "succeeded":
            if "booked.once" in self.off and each.booked == each.paid:
                yield f"{name} is booked again", self._put(s, i, booked=each.booked + each.paid)
            if "comes_back" in self.events and i == B:
                back = self._put(s, i, state="returned", booked=0, paid=0)
                yield f"{name} comes back", self._logged(back, ("taken_back", i, each.booked))

    def _booked(self, s: State, i: int) -> Iterator[tuple[str, State]]:
        each, name = s.refunds[i], _NAMES[i]
        same = each.paid == each.amount
        after = self._put(
            s, i, state="succeeded", held=0, booked=each.paid, shown=(), money=(),
            cause="succeeded" if same else "otherwise",
        )  # fmt: skip
        yield f"{name} ends as paid", after
        if "one.transaction" in self.off:
            yield (
                f"{name}'s money is given back, and nothing booked",
                self._put(s, i, state="succeeded", held=0, shown=(), money=()),
            )

    def _elsewhere(self, s: State) -> Iterator[tuple[str, State]]:
        known, disputed = s.facts
        if "outside" in self.events and not s.outside:
            yield "somebody refunds 2 in the dashboard", s._replace(outside=2)
        if s.outside and not known:
            learned = s._replace(facts=(s.outside, disputed))
            silent = "outside.moves" in self.off
            yield (
                "the dashboard's refund is learned",
                learned if silent else self._logged(learned, ("outside", -1, s.outside)),
            )
        if "disputes" in self.events and not disputed:
            yield (
                "the payment is disputed",
                self._logged(s._replace(facts=(known, 1)), ("disputed", -1, 0)),
            )
