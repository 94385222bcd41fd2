"""Reading the book as the account's lookup shows it: lagging, filtered, in pages."""

from dataclasses import replace

from sandbox.book import Book, Refund
from sandbox.dialects import DisputePage, Page
from sandbox.disputes import Disputes
from sandbox.instants import span
from sandbox.operations import (
    Answer,
    Declined,
    ListDisputes,
    ListRefunds,
    ReadPayment,
    Retrieve,
)
from sandbox.turn import Turn

# A cursor that no list continues from: what a lost page is asked for with.
LOST_CURSOR = "lost-page"


def refund_not_found(refund_id: str) -> Declined:
    return Declined("refund_not_found", f"no refund {refund_id!r} here", param="id")


def _cursor_not_found(cursor: str) -> Declined:
    return Declined("cursor_not_found", f"no page after {cursor!r}", param="starting_after")


def _as_shown(turn: Turn, refund: Refund) -> Refund:
    """Some providers take a marker and give none back."""
    if turn.profile.returns_markers:
        return refund
    return replace(refund, marker=None, metadata={})


class Lookups:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._disputes = Disputes(book)

    def answer(
        self, turn: Turn, asked: Retrieve | ListRefunds | ListDisputes | ReadPayment
    ) -> Answer:
        """What the provider shows at `turn.at`; Declined where there is nothing to show."""
        match asked:
            case ReadPayment():
                payment = self._book.payment(turn.account, asked.ref)
                if payment is None:
                    raise Declined("payment_not_found", f"no payment {asked.ref!r} here")
                return turn.dialect.payment(payment, turn.profile.mode)
            case Retrieve():
                self._check_offered(turn)
                return self._retrieve(turn, asked)
            case ListRefunds():
                self._check_offered(turn)
                return turn.dialect.page(self._page(turn, asked))
            case ListDisputes():
                self._check_offered(turn)
                return turn.dialect.dispute_page(self._dispute_page(turn, asked))

    def _check_offered(self, turn: Turn) -> None:
        if turn.profile.lookup == "none":
            raise Declined("lookup_not_offered", "this account has no lookup of refunds")

    def _as_of(self, turn: Turn) -> int:
        lag_seconds = turn.profile.lag_seconds
        if "list_lag" in turn.twists:
            lag_seconds += turn.twists.seconds("list_lag", 10)
        return turn.at - span(lag_seconds)

    def _retrieve(self, turn: Turn, asked: Retrieve) -> Answer:
        refund = self._book.refund(asked.refund_id, self._as_of(turn))
        hidden = "retrieve_404" in turn.twists or "wrong_mode" in turn.twists
        if refund is None or refund.account != turn.account or hidden:
            raise refund_not_found(asked.refund_id)
        return turn.dialect.current(_as_shown(turn, refund))

    def _page(self, turn: Turn, asked: ListRefunds) -> Page:
        if "wrong_mode" in turn.twists:
            return self._other_mode(turn, asked)
        filtered = "list_ignores_filter" not in turn.twists
        if asked.after is None and asked.before is None:
            self._book.set_fact(f"lost:{turn.account}", "")
        looping = "list_cursor_loop" in turn.twists
        backwards = asked.before is not None
        start = None if looping else self._number(turn, asked.before or asked.after)
        ascending = asked.newest_first == backwards
        found = self._book.refunds(
            turn.account,
            self._as_of(turn),
            payment_ref=self._payment_ref(turn, asked) if filtered else None,
            created_from=asked.created_from if filtered else None,
            created_until=asked.created_until if filtered else None,
            after_seq=start if ascending else None,
            before_seq=None if ascending else start,
            newest_first=not ascending,
            limit=asked.limit + 1,
        )
        shown = [_as_shown(turn, each) for each in found[: asked.limit]]
        more = len(found) > asked.limit
        if backwards:
            shown.reverse()
        if looping:
            return Page(refunds=shown, more=True, cursor=shown[-1].id if shown else LOST_CURSOR)
        if "list_missing_page" in turn.twists:
            return self._with_lost_rest(turn, shown[: len(shown) // 2])
        return Page(refunds=shown, more=more, cursor=shown[-1].id if more else None)

    def _dispute_page(self, turn: Turn, asked: ListDisputes) -> DisputePage:
        if "wrong_mode" in turn.twists:
            return DisputePage(disputes=[], more=False, cursor=None)
        filtered = "list_ignores_filter" not in turn.twists
        looping = "list_cursor_loop" in turn.twists
        start = None
        if asked.after is not None and not looping:
            start = self._disputes.number(turn.account, asked.after)
            if start is None:
                raise _cursor_not_found(asked.after)
        found = self._disputes.listed(
            turn.account,
            payment_ref=self._payment_ref(turn, asked) if filtered else None,
            created_from=asked.created_from if filtered else None,
            created_until=asked.created_until if filtered else None,
            after_seq=start,
            newest_first=asked.newest_first,
            limit=asked.limit + 1,
        )
        shown = found[: asked.limit]
        if "list_missing_page" in turn.twists:
            return DisputePage(disputes=shown[: len(shown) // 2], more=True, cursor=LOST_CURSOR)
        more = looping or len(found) > asked.limit
        cursor = shown[-1].id if shown else LOST_CURSOR
        return DisputePage(disputes=shown, more=more, cursor=cursor if more else None)

    def _payment_ref(self, turn: Turn, asked: ListRefunds | ListDisputes) -> str | None:
        """The payment to filter by; Declined when the filter names none of this account."""
        if asked.payment_ref is None and asked.charge is None:
            return None
        payment = self._book.payment(turn.account, asked.payment_ref, asked.charge)
        if payment is None:
            raise Declined("payment_not_found", "no such payment", param="payment_intent")
        return payment.ref

    def _number(self, turn: Turn, cursor: str | None) -> int | None:
        if cursor is None:
            return None
        number = self._book.refund_number(turn.account, cursor)
        if number is None or cursor == self._book.fact(f"lost:{turn.account}"):
            raise _cursor_not_found(cursor)
        return number

    def _with_lost_rest(self, turn: Turn, refunds: list[Refund]) -> Page:
        """A page that says it goes on, with a cursor from which nothing can be had."""
        cursor = refunds[-1].id if refunds else LOST_CURSOR
        self._book.set_fact(f"lost:{turn.account}", cursor)
        return Page(refunds=refunds, more=True, cursor=cursor)

    def _other_mode(self, turn: Turn, asked: ListRefunds) -> Page:
        """What the other mode of the account shows: none of these payments or refunds."""
        if turn.dialect.declines_other_mode and (asked.payment_ref or asked.charge):
            raise Declined("wrong_mode", "no such payment in this mode", param="payment_intent")
        return Page(refunds=[], more=False, cursor=None)
