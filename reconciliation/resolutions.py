"""Ruling on a case: the first signature, the second, and what follows through the one door.

Every press gathers the evidence again under the locks of order, payment, operation and case. What
the machine settles meanwhile wins: the case is closed then, and the person is told.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from reconciliation import case_work, rulings
from reconciliation import ruling_checks as checks
from reconciliation.case_evidence import gather
from reconciliation.choices import Judged, Said, Testimony
from reconciliation.models import Case, Ruling
from reconciliation.ruling_acts import carry_out
from reconciliation.ruling_room import Opened, opened, planned
from refunds.domain.roles import OPS_LEAD
from refunds.ledger.facts import accepted_now
from refunds.models import Person

SECOND_SIGNATURE_SECONDS = 259_200


def rule(
    case_id: int,
    person: Person,
    said: Said,
    *,
    reason: str,
    version: int,
    shown_digest: str,
    confirmed_minor: int | None = None,
    intent: UUID | None = None,
) -> Ruling:
    """The first signature; in force at once where one person is enough.

    `shown_digest` is the `screen_digest` that was on the screen, `confirmed_minor` the amount as typed
    again where two must sign about money of an operation.

    Raises Refusal: role_missing, own_proposal (403), case_closed, already_claimed,
    already_decided, stale_page, evidence_moved (409), reason_too_short, proof_missing (422).
    """
    now = timezone.now()
    with transaction.atomic():
        found = opened(case_id, now)
        checks.require_signer(found, person, checks.first_roles(said))
        case_work.require_free(found.case, person, now)
        checks.require_nobody_waits(found.case)
        if found.case.version != version:
            raise case_work.moved(found.case)
        checks.require_same_screen(found, shown_digest)
        text = checks.checked_reason(reason)
        judged = checks.judged_or_refused(found.gathered.question, said)
        checks.require_amount_again(found, said, judged, confirmed_minor)
        ruling = Ruling.objects.create(
            case=found.case,
            choice=said.choice,
            reason=text,
            said=_stored(said, judged),
            shown={**found.gathered.shown, "plan": planned(found, said, judged).stored()},
            evidence_digest=found.gathered.digest,
            operation_version=found.operation.version if found.operation else None,
            people=judged.people,
            first_by=person,
            intent=intent,
            lapses_at=now + timedelta(seconds=SECOND_SIGNATURE_SECONDS),
        )
        rulings.step(
            found.case,
            "ruled",
            by=person,
            intent=intent,
            ruling=ruling.pk,
            choice=said.choice,
            reason=text,
        )
        if judged.people == 1:
            _in_force(found, ruling, said, judged, by=person, intent=intent)
    return ruling


def sign(
    ruling_id: int,
    person: Person,
    *,
    version: int,
    shown_digest: str,
    intent: UUID | None = None,
) -> Ruling:
    """The second signature, on the evidence that the first one saw.

    Raises Refusal: role_missing, own_proposal, own_signature (403), already_decided,
    stale_page, evidence_moved (409; `void_if_moved` then ends the first), proof_missing (422).
    """
    with transaction.atomic():
        found, ruling = _second_room(ruling_id, person)
        if bytes(ruling.evidence_digest) != found.gathered.digest:
            raise checks.void()
        if found.case.version != version:
            raise case_work.moved(found.case)
        checks.require_same_screen(found, shown_digest)
        said = said_of(ruling)
        judged = checks.judged_or_refused(found.gathered.question, said)
        _in_force(found, ruling, said, judged, by=person, intent=intent)
    return ruling


def decline(ruling_id: int, person: Person, *, reason: str, intent: UUID | None = None) -> Ruling:
    """An ops lead does not sign, and says why: the case waits for a person again.

    Raises Refusal: role_missing, own_signature (403), already_decided (409), reason_too_short.
    """
    with transaction.atomic():
        _, ruling = _second_room(ruling_id, person)
        rulings.end(
            ruling, "declined", by=person, because=checks.checked_reason(reason), intent=intent
        )
    return ruling


def _second_room(ruling_id: int, person: Person) -> tuple[Opened, Ruling]:
    """The case of a first signature that waits, locked for a second person who may answer it."""
    case_id = Ruling.objects.values_list("case_id", flat=True).get(pk=ruling_id)
    found = opened(case_id, timezone.now())
    checks.require_signer(found, person, frozenset({OPS_LEAD}))
    ruling = checks.waiting_one(found.case, ruling_id)
    checks.require_another(ruling, person)
    return found, ruling


def void_if_moved(case_id: int) -> bool:
    """End a waiting first signature whose evidence is no longer what it saw; True if it was."""
    now = timezone.now()
    with transaction.atomic():
        account = Case.objects.select_related("payment").get(pk=case_id).account
        accepted = accepted_now(account)
        case = Case.objects.select_for_update(of=("self",)).get(pk=case_id)
        ruling = rulings.waiting(case)
        if case.closed_at is not None or ruling is None:
            return False
        if bytes(ruling.evidence_digest) == gather(case, now, accepted).digest:
            return False
        return rulings.void_waiting(case, "New evidence arrived after the first signature.")


def void_moved(*, batch_max: int) -> int:
    """The same for every ruling that waits; returns how many ended."""
    waiting = (
        Ruling.objects.filter(end__isnull=True).order_by("pk").values_list("case_id", flat=True)
    )
    return sum(void_if_moved(case_id) for case_id in list(waiting[:batch_max]))


def _in_force(
    found: Opened, ruling: Ruling, said: Said, judged: Judged, *, by: Person, intent: UUID | None
) -> None:
    ruling.case = found.case
    rulings.end(ruling, "in_force", by=by, intent=intent)
    carry_out(
        found.case,
        ruling,
        said,
        judged,
        locked=found.locked,
        order=found.order,
        payment=found.payment,
        absence=found.gathered.absence,
    )


def said_of(ruling: Ruling) -> Said:
    """What the first signer chose and filled in, as stored."""
    values: dict[str, Any] = dict(ruling.said)
    told = values.pop("testimony", None)
    return Said(choice=ruling.choice, testimony=Testimony(**told) if told else None, **values)


def _stored(said: Said, judged: Judged) -> dict[str, Any]:
    told = said.testimony
    values = {
        "ref": said.ref,
        "amount_minor": judged.amount_minor,
        "ticket": said.ticket,
        "kind": said.kind,
        "reference": said.reference,
    }
    stored: dict[str, Any] = {name: value for name, value in values.items() if value}
    if told is not None:
        stored["testimony"] = {name: getattr(told, name) for name in Testimony.__slots__}
    return stored
