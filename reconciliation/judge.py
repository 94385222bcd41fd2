"""What each answer to a case must rest on. Pure.

The page draws `offers`, and the press is judged again by the same rules under the locks. People
obey the machine's proof: an answer whose proof is missing is shown, named, and refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciliation.choices import (
    ACCEPT_FIGURE,
    ATTACH,
    CORRECT,
    DIFFERENT,
    EVENTS,
    EXPLAINED,
    HAPPENED,
    MAY_BE_PAID,
    NOT_HAPPENED,
    RECOVERED,
    REMEDIES,
    REMEDY,
    TITLES,
    WRITTEN_OFF,
    Judged,
    NotProved,
    Offer,
    Question,
    Said,
    Seen,
    choices,
)
from refunds.domain import states
from refunds.domain.money import display


def offers(question: Question) -> tuple[Offer, ...]:
    """Every choice with what it lacks."""
    return tuple(_offer(question, choice) for choice in choices(question))


def _offer(question: Question, choice: str) -> Offer:
    refs = _refs(question, choice)
    by_testimony = choice in (HAPPENED, DIFFERENT) and not question.looks
    alone = all(_people(question, choice, each) == 1 for each in refs) if refs else not by_testimony
    return Offer(
        choice=choice,
        title=TITLES[choice],
        missing=tuple(_missing(question, choice, refs)),
        refs=refs,
        people=1 if alone and _people(question, choice, None) == 1 else 2,
        needs_testimony=by_testimony,
        by_statement=choice == NOT_HAPPENED and bool(question.absent_because),
    )


def _refs(question: Question, choice: str) -> tuple[Seen, ...]:
    wanted = [each for each in question.seen if each.by_lookup and each.paid and not each.anothers]
    if choice == HAPPENED:
        return tuple(each for each in wanted if _equal(question, each))
    if choice == DIFFERENT:
        return tuple(each for each in wanted if not _equal(question, each))
    if choice in (ACCEPT_FIGURE, CORRECT):
        return tuple(each for each in wanted if each.ours and not _equal(question, each))
    return ()


def _equal(question: Question, seen: Seen) -> bool:
    asked = (question.amount_minor, question.currency, True)
    return (seen.amount_minor, seen.currency, seen.payment_same) == asked


def _missing(question: Question, choice: str, refs: tuple[Seen, ...]) -> Iterator[str]:
    if choice in EVENTS and question.state == states.SUBMITTING:
        yield "it is being sent just now; wait for the answer, or for its worker’s time to end"
        return
    if choice == REMEDY and question.remedy_out:
        yield f"the end of {question.remedy_out}, which may make good for it already"
    elif choice == REMEDY and question.made_good_by:
        yield f"money that is still owed: {question.made_good_by} has paid for it already"
    elif choice == NOT_HAPPENED:
        yield from _absence_lacks(question)
    elif choice == EXPLAINED and _would_be_sent(question) and not question.statements:
        yield (
            "a statement of the provider that none of it was paid: once this is answered the"
            " refund can go out; withdrawing it needs none"
        )
    elif choice in EVENTS and question.looks:
        yield from _record_lacks(question, choice, refs)
    elif choice == ATTACH and not question.attachable:
        yield "an operation whose payment, amount and currency are those of the provider’s message"
    elif choice in (HAPPENED, DIFFERENT) and not question.statements:
        yield (
            f"{question.account} cannot be asked: what you saw in its dashboard, and a statement"
            " of the provider attached to the case"
        )


def _would_be_sent(question: Question) -> bool:
    """Whether nothing but this case keeps a refund back that may be paid already."""
    waits = question.state in (states.AUTHORIZED, states.AWAITING_APPROVAL)
    return waits and not MAY_BE_PAID.isdisjoint(question.reasons)


def _absence_lacks(question: Question) -> Iterator[str]:
    shown = next((each for each in question.seen if each.ours and not each.only_listed), None)
    if shown is None and not question.looks:
        shown = next((each for each in question.seen if each.ours and not each.negative), None)
    if shown is not None:
        yield f"nothing can prove it: {shown.ref} is this refund, {shown.provider_status}"
        return
    if not question.quiet:
        yield question.absent_because
        return
    if question.statements:
        return
    if question.absent_because:
        yield f"{question.absent_because}; or the provider’s statement"
    elif _old(question):
        yield _too_old(question)


def _record_lacks(question: Question, choice: str, refs: tuple[Seen, ...]) -> Iterator[str]:
    if refs:
        if _old(question):
            yield _too_old(question)
        return
    asked = display(question.amount_minor, question.currency)
    if choice == HAPPENED:
        yield (
            f"a refund of exactly {asked} on this payment that our own lookup shows as paid and"
            " that belongs to nothing else"
        )
    elif choice == DIFFERENT:
        yield f"a paid refund on this payment that differs from {asked}, shown by our own lookup"
    else:
        yield "a paid refund of ours whose figure differs from what we asked for"


def _old(question: Question) -> bool:
    return question.look_age is None or question.look_age > question.fresh_seconds


def _too_old(question: Question) -> str:
    minutes = question.fresh_seconds // 60
    return f"a check younger than {minutes} min; check now"


def _people(question: Question, choice: str, seen: Seen | None) -> int:
    if choice in EVENTS and choice != HAPPENED:
        return 2
    limit = question.tier1_max_minor
    if choice == HAPPENED:
        known = seen is None or seen.ours
        return 1 if known and limit is not None and question.amount_minor <= limit else 2
    if choice in (RECOVERED, WRITTEN_OFF) or (
        choice == EXPLAINED and "duplicate" in question.reasons
    ):
        # Money that left twice is signed for like money that is asked for.
        return 1 if limit is not None and question.surplus_minor <= limit else 2
    return 1


def judge(question: Question, said: Said) -> Judged:
    """What a press may record; raises NotProved with what is missing."""
    if said.choice not in choices(question):
        raise NotProved(("one of the answers that this case offers now",), "choice")
    offer = _offer(question, said.choice)
    if offer.missing:
        raise NotProved(offer.missing, "choice")
    if offer.needs_testimony:
        return _by_testimony(question, said)
    if offer.refs:
        return _by_record(question, said, offer)
    _require_words(question, said)
    return Judged(people=_people(question, said.choice, None))


def _by_record(question: Question, said: Said, offer: Offer) -> Judged:
    seen = next((each for each in offer.refs if each.ref == said.ref), None)
    if seen is None:
        raise NotProved(("which of the provider’s refunds it is",), "ref")
    people = _people(question, said.choice, seen)
    if said.choice == HAPPENED:
        return Judged(people=people, seen=seen, amount_minor=question.amount_minor)
    return Judged(people=people, seen=seen, amount_minor=_figure(question, said, seen))


def _figure(question: Question, said: Said, seen: Seen) -> int:
    """What left the payment: the record's own figure, or in another currency what a person read
    on the provider's statement."""
    if seen.currency == question.currency and seen.amount_minor is not None:
        if said.amount_minor not in (None, seen.amount_minor):
            shown = display(seen.amount_minor, question.currency)
            raise NotProved((f"the amount of {seen.ref}, which is {shown}",), "amount")
        return seen.amount_minor
    if said.amount_minor is None:
        raise NotProved((f"what left the payment, in {question.currency}",), "amount")
    if not question.statements:
        raise NotProved((f"a statement that shows the amount in {question.currency}",), "amount")
    return said.amount_minor


def _by_testimony(question: Question, said: Said) -> Judged:
    told = said.testimony
    if told is None:
        raise NotProved(("what you saw: reference, amount, status, when and where",), "ref")
    same = (told.amount_minor, told.currency) == (question.amount_minor, question.currency)
    if said.choice == HAPPENED and not same:
        raise NotProved(
            (f"the amount that was asked for, {display(question.amount_minor, question.currency)};"
             " another one is ‘a different refund happened’",), "amount"
        )  # fmt: skip
    if said.choice == DIFFERENT and same:
        raise NotProved(("an amount that differs from what was asked for",), "amount")
    if told.currency != question.currency:
        raise NotProved((f"what left the payment, in {question.currency}",), "currency")
    return Judged(people=2, amount_minor=told.amount_minor)


def _require_words(question: Question, said: Said) -> None:
    if said.choice == REMEDY:
        if said.kind not in REMEDIES:
            raise NotProved(("how the customer gets the money",), "kind")
        if not said.reference:
            raise NotProved(
                ("its reference: the operation, voucher, transfer or cheque",), "reference"
            )
    if said.choice == EXPLAINED and not said.ticket:
        raise NotProved(("the ticket that explains it",), "ticket")
    if said.choice == RECOVERED and not said.reference:
        raise NotProved(("the reference under which it came back",), "reference")
    if said.choice == ATTACH and said.reference not in question.attachable:
        raise NotProved(("the operation that it belongs to, one of those that match",), "reference")
