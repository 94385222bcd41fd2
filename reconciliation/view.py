"""Reading one operation as `decide` sees it, under the locks of the caller."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from reconciliation.decide import AttemptView, View
from reconciliation.lookup import INCONCLUSIVE
from reconciliation.matching import Verdict
from reconciliation.models import Case
from refunds.domain.contract import ProviderContract
from refunds.models import Attempt, Event, Evidence, Operation, ProviderRefund, Quarantine
from refunds.why import order_explained, sendable_until

_AT_THE_DOOR = (401, 403, 429)
_BY_RULING = frozenset({"ruled_happened", "ruled_different"})
_INCONCLUSIVE = frozenset(str(each) for each in INCONCLUSIVE)
_TOLD = frozenset(str(each) for each in Verdict) - _INCONCLUSIVE


def view_of(operation: Operation, contract: ProviderContract, *, to_send: bool = True) -> View:
    """The operation as `decide` sees it; `contract` is what its attempts are held to.

    `to_send`: whether it may come to another send. What only a send needs is not read otherwise,
    and the view says that it does not hold.
    """
    attempts = Attempt.objects.filter(operation=operation).order_by("no")
    evidence = _evidence_of(operation)
    kept = _kept_answers(evidence, contract)
    events = list(
        Event.objects.filter(operation=operation)
        .order_by("seq")
        .values_list("event", "detail__accepted")
    )
    cases = list(
        Case.objects.filter(operation=operation).values_list("reasons", "opened_at", "closed_at")
    )
    quarantined, resumed_at = _quarantine()
    counted = ProviderRefund.objects.filter(operation=operation, counts=True)
    booked = counted.order_by("pk").first()
    return View(
        state=operation.state,
        entered_at=operation.entered_at,
        unknown_since=operation.unknown_since,
        attempts=tuple(
            AttemptView(
                no=each.no,
                outcome=each.outcome,
                recorded_at=each.recorded_at,
                send_deadline=each.send_deadline,
                stop_proof_at=each.stop_proof_at,
                settled_by_evidence=each.settled_by_evidence is not None,
                kept=kept.get(each.no, ""),
            )
            for each in attempts
        ),
        has_case=any(closed_at is None for _, _, closed_at in cases),
        inconclusive_at=tuple(
            each.started_at
            for each in evidence
            if each.kind == "lookup" and each.verdict in _INCONCLUSIVE
        ),
        booked_ref=booked.ref if booked else None,
        halted=operation.halted,
        adopted=any(event == "adopted" for event, _ in events),
        quarantined=quarantined,
        resumed_at=resumed_at,
        explained=to_send and order_explained(operation),
        sendable_until=sendable_until(operation) if to_send else None,
        rested_on=frozenset(each for _, ids in events for each in ids or ()),
        booked_minor=booked.amount_minor if booked else None,
        by_ruling=bool(events) and events[-1][0] in _BY_RULING,
        sighted=_sighted(evidence),
        answered=any(
            "contradiction" in reasons and opened_at >= operation.entered_at and closed_at
            for reasons, opened_at, closed_at in cases
        ),
    )


def _quarantine() -> tuple[bool, datetime | None]:
    """Whether there is one, or when the last one was lifted."""
    last = Quarantine.objects.order_by("-pk").values_list("lifted_at", flat=True)[:1]
    return (True, None) if None in last else (False, next(iter(last), None))


class _Evidence(NamedTuple):
    """One answer, lookup or sighting in a list, as far as the view needs it."""

    kind: str
    attempt_no: int | None
    started_at: datetime
    verdict: str | None
    status: int | None
    headers: dict[str, str] | None


def _evidence_of(operation: Operation) -> list[_Evidence]:
    """All that was stored about it, the oldest first."""
    rows = Evidence.objects.filter(
        operation=operation, kind__in=["answer", "lookup", "listing"]
    ).order_by("pk")
    fields = ("facts__verdict", "facts__status", "facts__headers")
    return [
        _Evidence(*row) for row in rows.values_list("kind", "attempt_no", "started_at", *fields)
    ]


def _sighted(evidence: list[_Evidence]) -> bool:
    """Whether a list of the account showed a refund of ours that no lookup has read since."""
    shown = [each.started_at for each in evidence if each.kind == "listing"]
    return bool(shown) and not any(
        each.kind == "lookup" and each.verdict in _TOLD and each.started_at >= shown[-1]
        for each in evidence
    )


def _kept_answers(
    evidence: list[_Evidence], contract: ProviderContract
) -> dict[int, Literal["error", "turned_away"]]:
    """What the provider was seen to answer again under our key, per attempt.

    Its header says so where it has one. Where it keeps server errors, one to a later attempt is one
    that it will give for good.
    """
    kept: dict[int, Literal["error", "turned_away"]] = {}
    for each in evidence:
        if each.kind != "answer":
            continue
        no, status = each.attempt_no, each.status or 0
        assert no is not None, "an answer is of an attempt"
        again = (each.headers or {}).get("idempotent-replayed") == "true"
        if status >= 500 and (again or (no > 1 and contract.server_errors_replayed)):
            kept[no] = "error"
        elif again and status in _AT_THE_DOOR:
            kept[no] = "turned_away"
    return kept
