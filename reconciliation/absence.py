"""Whether it is proved that a refund never happened: the same proof for the machine and for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from reconciliation.matching import Verdict
from refunds.domain.contract import allowed, quiet_until
from refunds.ledger import held_to
from refunds.models import Attempt, Evidence, Operation
from refunds.providers import registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """`evidence_id` is the finding that proves it; None comes with what is missing in `because`.

    `quiet`: the time in which the refund can still show is over, or nobody knows how long it is.
    """

    evidence_id: int | None = None
    because: str = ""
    quiet: bool = True

    @property
    def proved(self) -> bool:
        return self.evidence_id is not None


def absence_proved(operation: Operation, now: datetime) -> Absence:
    """A complete lookup that began after the quiet period and shows no refund of ours, and nothing
    since that shows one (rules 15, 16, 22). An account whose contract bounds no flight: never."""
    name = operation.provider_account
    account = registry.accounts().get(name)
    if account is None or not allowed(account.contract).absence:
        return Absence(
            because=f"{name} states no time after which a refund is certain to show, so that an"
            " empty list proves nothing"
        )
    attempts = Attempt.objects.filter(operation=operation).order_by("no")
    writes = [
        (each.stop_proof_at or each.send_deadline, each.stop_proof_at is not None)
        for each in attempts
    ]
    contract = held_to(operation, account.contract)
    until = quiet_until(contract, writes, settings.LIMITS.skew_seconds)
    if until is None:
        why = (
            "an attempt of it may still be on its way: nobody knows that its sender has stopped,"
            " or it was sent when less was known"
            if writes
            else "no attempt of it is recorded"
        )
        return Absence(because=why, quiet=False)
    begun = f"a complete list begun after {until:%H:%M:%S} UTC that shows no refund of ours"
    if now <= until:
        return Absence(because=f"{begun}; {name} can still show it until then", quiet=False)
    newest = (
        Evidence.objects.filter(operation=operation, kind="lookup")
        .exclude(facts__verdict=str(Verdict.CANNOT_TELL))
        .order_by("-lookup_no")
        .first()
    )
    absent = newest is not None and newest.facts.get("verdict") == str(Verdict.ABSENT)
    if newest is None or not absent or newest.started_at <= until:
        return Absence(because=begun)
    return Absence(evidence_id=newest.pk)
