"""Executes what was asked: the truth about money, free of HTTP and of any dialect's words."""

from collections.abc import Callable
from dataclasses import replace

from sandbox.book import Book, Payment, Refund
from sandbox.errors import ErrorFault, error_fault
from sandbox.instants import span
from sandbox.keys import Keys
from sandbox.lookups import Lookups, refund_not_found
from sandbox.notices import NoticeQueue
from sandbox.operations import (
    Answer,
    Cancel,
    Create,
    Declined,
    ListDisputes,
    ListRefunds,
    Operation,
    ReadPayment,
    Refused,
    Retrieve,
    Update,
)
from sandbox.profiles import Profile
from sandbox.turn import Turn

# How long a customer takes to answer, where the rule does not say.
_CUSTOMER_SECONDS = 60


class Engine:
    def __init__(self, book: Book, notices: NoticeQueue) -> None:
        self._book = book
        self._notices = notices
        self._keys = Keys(book)
        self._lookups = Lookups(book)

    def perform(self, turn: Turn, operation: Operation) -> Answer:
        """Execute at `turn.at`, in one transaction with the key store; the answer to give."""
        with self._book.transaction():
            try:
                return self._answer(turn, operation)
            except Declined as declined:
                return turn.dialect.declined(declined)

    def _answer(self, turn: Turn, operation: Operation) -> Answer:
        match operation:
            case Create():
                return self._once(turn, operation, lambda: self._create(turn, operation))
            case Cancel():
                return self._once(turn, operation, lambda: self._cancel(turn, operation))
            case Update():
                return self._once(turn, operation, lambda: self._update(turn, operation))
            case Retrieve() | ListRefunds() | ListDisputes() | ReadPayment():
                error = error_fault(turn.twists)
                return (
                    error.answer(turn.dialect) if error else self._lookups.answer(turn, operation)
                )

    # Keys

    def claim(self, turn: Turn, create: Create) -> Answer | None:
        """Take the key for a request executed later; an answer when it is not free."""
        if create.key is None or turn.profile.keys not in ("window", "forever"):
            return None
        with self._book.transaction():
            try:
                earlier = self._repeated(turn, create)
            except Declined as declined:
                return turn.dialect.declined(declined)
            if earlier is None:
                self._keys.claim(turn.account, create.key, create.digest, turn.at)
        return earlier

    def release_claim(self, account: str, key: str) -> None:
        """Free the key of a request that will never be executed."""
        self._keys.forget(account, key)

    def _once(
        self, turn: Turn, asked: Create | Cancel | Update, execute: Callable[[], Answer]
    ) -> Answer:
        """Execute once per key, as the profile keeps keys; later calls get the kept answer."""
        error = error_fault(turn.twists)
        if error is not None and not error.executed:
            answer = error.answer(turn.dialect)
            if error.stored and self._unknown(turn, asked):
                self._keep(turn, asked, answer)
            return answer
        if "already_refunded" in turn.twists:
            raise Declined("already_refunded", "this payment was refunded already")
        if "forget_key" in turn.twists and asked.key is not None:
            self._keys.forget(turn.account, asked.key)
        elif (earlier := self._repeated(turn, asked)) is not None:
            return error.answer(turn.dialect) if error else earlier
        return self._first(turn, asked, execute, error)

    def _first(
        self,
        turn: Turn,
        asked: Create | Cancel | Update,
        execute: Callable[[], Answer],
        error: ErrorFault | None,
    ) -> Answer:
        try:
            true = execute()
        except Refused as refused:
            true = turn.dialect.declined(refused)
        given = error.answer(turn.dialect) if error else true
        kept = given if error and error.kept_by(turn.profile) else true
        if "forget_key" not in turn.twists and self._keeps(turn.profile, kept, given):
            self._keep(turn, asked, kept)
        elif turn.owns_claim and asked.key is not None:
            self._keys.forget(turn.account, asked.key)
        return given

    def _repeated(self, turn: Turn, asked: Create | Cancel | Update) -> Answer | None:
        """The answer for a key that is known already; None when the request is a first one."""
        if asked.key is None or turn.profile.keys == "none":
            return None
        kept = self._keys.find(turn.account, asked.key, turn.profile, turn.at)
        if kept is None or (kept.answer is None and turn.owns_claim):
            return None
        if kept.digest != asked.digest:
            raise Declined("key_reused", "this key was first used with other parameters")
        if kept.answer is None:
            raise Declined("key_in_use", "a request under this key is still being executed")
        return turn.dialect.replayed(kept.answer)

    def _unknown(self, turn: Turn, asked: Create | Cancel | Update) -> bool:
        return asked.key is not None and not self._keys.find(
            turn.account, asked.key, turn.profile, turn.at
        )

    def _keeps(self, profile: Profile, kept: Answer, given: Answer) -> bool:
        if profile.keys == "weak":
            return given.status < 300
        return kept.status < 300 or kept.status >= 500 or profile.stores_rejections

    def _keep(self, turn: Turn, asked: Create | Cancel | Update, answer: Answer) -> None:
        if asked.key is not None and turn.profile.keys != "none":
            self._keys.keep(turn.account, asked.key, asked.digest, answer, turn.at)

    # Money

    def _create(self, turn: Turn, create: Create) -> Answer:
        payment = self._book.payment(turn.account, create.payment_ref, create.charge)
        if payment is None:
            raise Declined("payment_not_found", "no such payment", param="payment_intent")
        amount_minor = self._admitted_amount(turn, create, payment)
        copies = 2 if "execute_twice" in turn.twists else 1
        refunds = [
            self._write(turn, payment, create, amount_minor, self._course(turn))
            for _ in range(copies)
        ]
        return turn.dialect.created(refunds[0])

    def _admitted_amount(self, turn: Turn, create: Create, payment: Payment) -> int:
        """The amount to refund; Refused when the provider says no."""
        if payment.state == "uncaptured":
            raise Refused("payment_not_refundable", "this payment was not captured")
        if payment.state in ("disputed", "reversed"):
            raise Refused("payment_disputed", "this payment is disputed")
        if create.currency is not None and create.currency.upper() != payment.currency:
            raise Refused("currency_mismatch", f"this payment is in {payment.currency}")
        remaining_minor = self._book.remaining_minor(payment, turn.at)
        asked_minor = create.amount_minor
        amount_minor = remaining_minor if asked_minor is None else asked_minor
        if asked_minor is not None and asked_minor <= 0:
            raise Refused("amount_invalid", "the amount must be at least 1", param="amount")
        accepted = turn.profile.reasons_accepted
        if accepted is not None and create.reason not in accepted:
            raise Refused("reason_not_accepted", f"use one of {sorted(accepted)}", param="reason")
        if turn.profile.polices_totals or asked_minor is None:
            if remaining_minor <= 0:
                raise Refused("already_refunded", "nothing of this payment is left to refund")
            if amount_minor > remaining_minor:
                raise Refused(
                    "amount_exceeds_remaining",
                    f"{amount_minor} is greater than the {remaining_minor} left to refund",
                    param="amount",
                )
        return amount_minor

    def _course(self, turn: Turn) -> list[tuple[int, str]]:
        """The statuses of a new refund, now and later."""
        settle = turn.profile.settle_seconds
        for fault, status in (("fail_later", "failed"), ("cancel_later", "canceled")):
            if fault in turn.twists:
                wait = span(turn.twists.seconds(fault, 1 if settle is None else settle))
                return [(turn.at, "pending"), (turn.at + wait, status)]
        if "ask_customer" in turn.twists:
            wait = span(turn.twists.seconds("ask_customer", _CUSTOMER_SECONDS))
            own_word = "requires_action" in turn.dialect.statuses
            return [
                (turn.at, "requires_action" if own_word else "pending"),
                (turn.at + wait, "succeeded"),
            ]
        if settle is None:
            course = [(turn.at, "succeeded")]
        else:
            course = [(turn.at, "pending"), (turn.at + span(settle), "succeeded")]
        if "take_back" in turn.twists:
            wait = span(turn.twists.seconds("take_back", 1))
            course.append((course[-1][0] + wait, "failed"))
        return course

    def _write(
        self,
        turn: Turn,
        payment: Payment,
        create: Create,
        amount_minor: int,
        course: list[tuple[int, str]],
        by: str = "api",
    ) -> Refund:
        number = self._book.mint()
        refund = Refund(
            id=f"{turn.dialect.refund_prefix}_{number:04d}",
            account=turn.account,
            payment_ref=payment.ref,
            charge=payment.charge,
            marker=create.marker,
            key=create.key,
            amount_minor=amount_minor,
            currency=payment.currency,
            reason=create.reason,
            metadata=create.metadata,
            created_at=turn.at,
            by=by,
            status=course[0][1],
        )
        self._book.add_refund(refund, number, course)
        for at, _ in course:
            self._notices.add(refund, turn.profile, at)
        return refund

    def refund_by_hand(self, turn: Turn, payment_ref: str, amount_minor: int) -> Refund:
        """A refund made in the provider's dashboard: no key, no marker. Refused as any other."""
        create = Create(
            payment_ref=payment_ref,
            amount_minor=amount_minor,
            currency=None,
            reason=None,
            marker=None,
            key=None,
            digest="",
        )
        open_minded = replace(turn, profile=replace(turn.profile, reasons_accepted=None))
        with self._book.transaction():
            payment = self._book.payment(turn.account, payment_ref)
            if payment is None:
                raise Declined("payment_not_found", f"no payment {payment_ref!r} here")
            self._admitted_amount(open_minded, create, payment)
            return self._write(
                turn, payment, create, amount_minor, self._course(turn), by="dashboard"
            )

    def turn_status(self, refund: Refund, profile: Profile, status: str, at: int) -> None:
        """The refund has this status from `at` on; a notice says so."""
        with self._book.transaction():
            self._book.set_status(refund.id, status, at)
            self._notices.drop_later(refund.id, at)
            self._notices.add(refund, profile, at)

    def _cancel(self, turn: Turn, cancel: Cancel) -> Answer:
        refund = self._own(turn, cancel.refund_id)
        if refund.status != "requires_action":
            raise Refused("cancel_not_possible", f"a {refund.status} refund cannot be canceled")
        self.turn_status(refund, turn.profile, "canceled", turn.at)
        return turn.dialect.current(replace(refund, status="canceled"))

    def _update(self, turn: Turn, update: Update) -> Answer:
        refund = self._own(turn, update.refund_id)
        changed = {} if update.metadata is None else {**refund.metadata, **update.metadata}
        metadata = {name: value for name, value in changed.items() if value}
        self._book.set_metadata(refund.id, metadata)
        return turn.dialect.current(replace(refund, metadata=metadata))

    def _own(self, turn: Turn, refund_id: str) -> Refund:
        refund = self._book.refund(refund_id, turn.at)
        if refund is None or refund.account != turn.account:
            raise refund_not_found(refund_id)
        return refund
