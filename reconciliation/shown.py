"""What the provider shows of one operation: a lookup, our own answers and lists taken together."""

from __future__ import annotations

from dataclasses import replace

from reconciliation.decide import SAID_NO, View
from reconciliation.inbox import told_of_money
from reconciliation.lookup import INCONCLUSIVE, Looked
from reconciliation.matching import Finding, Verdict, match
from refunds.dispatch import expected_of
from refunds.domain import states
from refunds.domain.contract import ProviderContract
from refunds.domain.outcome import RefundRecord
from refunds.models import Attempt, Evidence, Operation
from refunds.providers.base import instant


def shown(operation: Operation, view: View, looked: Looked, contract: ProviderContract) -> Finding:
    """What the lookup found, or what our own answers show where it could not.

    Not once a list has shown something newer than they are, and not once its money has moved: then
    what the provider shows today is the question. Where we say that no money moved, and no lookup
    can tell otherwise or the payment's own list lacks it, the list is what shows it.
    """
    moved = view.state in (states.SUCCEEDED, states.MISMATCHED)
    found = looked.finding
    if found.verdict not in INCONCLUSIVE or moved:
        return found
    if view.sighted:
        settled = contract.lookup == "none" or found.verdict is Verdict.ABSENT
        listed = _from_lists(operation) if view.state in SAID_NO and settled else None
        return listed or found
    told = told_of_money(operation) if found.verdict is Verdict.ABSENT else ""
    if told:
        # A list that does not show what the provider itself signed proves no absence.
        because = f"The list shows none of ours, and a verified notice tells of {told}."
        return replace(found, verdict=Verdict.CANNOT_TELL, because=because)
    told_us = from_answers(operation, contract, complete=found.complete)
    return told_us or found


def _from_lists(operation: Operation) -> Finding | None:
    """What lists and reports of the account showed of it: ours by marker or by reference."""
    listings = Evidence.objects.filter(operation=operation, kind="listing").order_by("pk")
    records = {each.facts["ref"]: _record_of(each.facts, None) for each in listings}
    finding = _matched(operation, records)
    return None if finding.verdict is Verdict.ABSENT else finding


def _matched(operation: Operation, records: dict[str, RefundRecord]) -> Finding:
    first = Attempt.objects.filter(operation=operation).order_by("no").first()
    return match(
        records.values(),
        expected_of(operation),
        complete=True,
        why_incomplete="",
        known_refs=frozenset(records),
        first_recorded_at=first.recorded_at if first else operation.created_at,
    )


def from_answers(
    operation: Operation, contract: ProviderContract, *, complete: bool
) -> Finding | None:
    """What our own stored answers show: they decide where no lookup can (and beside one).

    `complete`: whether the lookup beside them read everything that the provider shows. A provider
    that gives our marker back and showed none answered about somebody else's refund: that differs.
    """
    answers = Evidence.objects.filter(operation=operation, kind="answer").exclude(facts__ref=None)
    unmarked = "" if contract.markers_returned else None
    records = {each.facts["ref"]: _record_of(each.facts, unmarked) for each in answers}
    if not records:
        return None
    finding = _matched(operation, records)
    return None if finding.verdict is Verdict.ABSENT else replace(finding, complete=complete)


def _record_of(facts: dict[str, object], unmarked: str | None) -> RefundRecord:
    amount = facts["amount_minor"]
    return RefundRecord(
        ref=str(facts["ref"]),
        payment_ref=str(facts["payment_ref"]),
        amount_minor=amount if isinstance(amount, int) else None,
        currency=str(facts["currency"]) if facts["currency"] else None,
        provider_status=str(facts["provider_status"]),
        marker=str(facts["marker"]) if facts["marker"] else unmarked,
        created_at=instant(facts.get("created_at")),
    )
