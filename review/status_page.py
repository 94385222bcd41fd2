"""The rep's honest page of an order: every refund in words that may be said to the customer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.say import say
from refunds.models import Evidence, Operation, ProviderRefund
from refunds.queries import orders, results
from review import case_reads, facts, intent
from review.access import Viewer
from review.presenters import told
from review.presenters.sentences import only_a_person
from review.presenters.told import RefundFacts, Told


def told_of(operations: Sequence[Operation], who: Viewer) -> list[Told]:
    """What to say about each, for operations of `results.readable`; those that are open first."""
    ids = [each.pk for each in operations]
    cases = case_reads.open_of(ids)
    looked = orders.last_lookups(ids)
    found = [one(each, who, cases.get(each.pk), looked.get(each.pk)) for each in operations]
    return sorted(found, key=lambda each: each.ended)


def one(op: Operation, who: Viewer, case: Case | None, lookup: Evidence | None) -> Told:
    """What to say about one operation of `results.readable`."""
    said = say(results.about(op), who.clock.now, who.clock.zone)
    return told.told(_refund(op, case, lookup), said, who.clock)


def mark(shown: Iterable[Told], elsewhere: Iterable[ProviderRefund]) -> str:
    """What a poll compares: everything that is on the page."""
    return intent.digest_of(
        [[each.ref, each.amount_minor, each.provider_status] for each in elsewhere],
        *(
            [str(each.refund.id), each.refund.state, each.said.text, each.missed, each.facts]
            for each in shown
        ),
    )[:16]


def _refund(op: Operation, case: Case | None, lookup: Evidence | None) -> RefundFacts:
    known = results.told(op)
    contract = facts.contract_of(op.provider_account)
    plain = facts.case(case) if case else None
    return RefundFacts(
        id=op.pk,
        state=op.state,
        amount_minor=op.amount_minor,
        currency=op.currency,
        reason=op.reason_code,
        asked_at=op.created_at,
        ends_at=op.expires_at,
        tier=op.tier,
        stale_cause=op.stale_cause,
        provider_ref=known.provider_refund_ref,
        last_check_at=lookup.stored_at if lookup else None,
        next_check_at=op.due_at if op.state in states.UNCERTAIN else None,
        has_lookup=not only_a_person(contract),
        entered_by=known.entered_by,
        because=known.because or "; ".join(each["says"] for each in results.reasons(op)),
        case=plain,
        case_ref=plain.ref if plain else "",
    )
