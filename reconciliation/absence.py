"""Whether it is proved that a refund never happened: the same proof for people as for the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from reconciliation import proof
from reconciliation.matching import Finding, Verdict
from reconciliation.view import view_of
from refunds.domain.contract import Accepted
from refunds.ledger.facts import held_to
from refunds.models import Evidence, Operation
from refunds.providers import registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """`evidence_id` is the finding that proves it; None comes with what is missing in `because`.

    `quiet`: the time in which the refund can still show is over, or nobody knows how long it is.
    `accepted`: the accepted facts that the proof rests on.
    """

    evidence_id: int | None = None
    because: str = ""
    quiet: bool = True
    accepted: tuple[int, ...] = ()


def absence_proved(operation: Operation, now: datetime, accepted: Iterable[Accepted]) -> Absence:
    """Judge the newest lookup that told anything by `proof.absence` (rules 15, 16, 22).

    An account that bounds no flight, and for which nobody accepted a bound: never.
    """
    name, accepted = operation.provider_account, tuple(accepted)
    account = registry.accounts().get(name)
    if account is None:
        return Absence(because=f"{name} is no longer configured, so that nothing can be asked")
    contract = held_to(operation, account.contract)
    view = view_of(operation, contract)
    until = proof.quiet_end(view, contract, accepted, settings.LIMITS)
    if until is None:
        return Absence(
            because=f"{name} states no time after which a refund is certain to show, so that an"
            " empty list proves nothing"
        )
    begun = f"a complete list begun after {until:%H:%M:%S} UTC that shows no refund of ours"
    if now <= until:
        return Absence(because=f"{begun}; {name} can still show it until then", quiet=False)
    newest = (
        Evidence.objects.filter(operation=operation, kind="lookup")
        .exclude(facts__verdict=str(Verdict.CANNOT_TELL))
        .order_by("-lookup_no")
        .first()
    )
    if newest is None or newest.facts.get("verdict") != str(Verdict.ABSENT):
        return Absence(because=begun)
    found = Finding(
        verdict=Verdict.ABSENT,
        because=str(newest.facts.get("because")),
        complete=bool(newest.facts.get("complete")),
    )
    proved = proof.absence(view, found, newest.started_at, contract, accepted, settings.LIMITS)
    if proved is None:
        return Absence(because=begun)
    return Absence(evidence_id=newest.pk, accepted=proved.accepted)
