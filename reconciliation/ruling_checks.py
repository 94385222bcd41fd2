"""What a signature must meet, one named refusal each; read under the locks of the verb that asks."""

from __future__ import annotations

from django.utils import timezone

from reconciliation import judge, rulings
from reconciliation.choices import (
    EVENTS,
    HAPPENED,
    REASON_LENGTH_MIN,
    REMEDY,
    Judged,
    NotProved,
    Question,
    Said,
)
from reconciliation.models import Case, Ruling
from reconciliation.ruling_room import Opened
from refunds.consent import roles_of
from refunds.domain.errors import Refusal
from refunds.domain.roles import LEAD, OPS, OPS_LEAD, deciding
from refunds.models import Person
from refunds.text import check_text

REASON_LENGTH_MAX = 500


def first_roles(said: Said) -> frozenset[str]:
    remedy = said.choice == REMEDY
    return frozenset({OPS, OPS_LEAD, LEAD} if remedy else {OPS, OPS_LEAD})


def require_signer(found: Opened, person: Person, roles: frozenset[str]) -> None:
    if roles.isdisjoint(deciding(roles_of(person))):
        wanted = " or ".join(sorted(role.replace("_", " ") for role in roles))
        raise Refusal(
            "role_missing",
            f"You can read this but not sign it. It needs the role {wanted}.",
            status=403,
            what_to_do=f"Ask somebody with the role {wanted}, who is no admin.",
        )
    operation = found.operation
    if operation is not None and person.pk in (operation.proposer_id, operation.agent_owner_id):
        raise Refusal(
            "own_proposal",
            "You cannot sign this: the refund was proposed by you or your agent.",
            status=403,
            what_to_do="Ask somebody else who works on cases.",
        )


def require_nobody_waits(case: Case) -> None:
    waiting = rulings.waiting(case)
    if waiting is not None:
        raise Refusal(
            "already_decided",
            f"Not recorded. {waiting.first_by.username} signed first at {waiting.at:%H:%M:%S} UTC;"
            " that waits for a second person.",
            status=409,
            what_to_do="Compare it with what you wrote; another ops lead signs or declines it.",
        )


def waiting_one(case: Case, ruling_id: int) -> Ruling:
    found = rulings.waiting(case)
    if found is None or found.pk != ruling_id or found.lapses_at <= timezone.now():
        raise Refusal(
            "already_decided",
            "Not recorded. This first signature does not wait any more.",
            status=409,
            what_to_do="Look at what became of it.",
        )
    return found


def require_another(ruling: Ruling, person: Person) -> None:
    """The second signature, or the answer that there is none, is another person's."""
    if ruling.first_by_id == person.pk:
        raise Refusal(
            "own_signature",
            "You gave the first signature. The second must come from someone else.",
            status=403,
            what_to_do="Ask another ops lead, who signs or declines it.",
        )


def require_same_screen(found: Opened, shown_digest: str) -> None:
    if found.screen_digest != shown_digest:
        raise Refusal(
            "evidence_moved",
            "Not recorded. The evidence you were looking at changed. Your text is kept below.",
            status=409,
            what_to_do="Compare, and submit again if it still holds.",
        )


def void() -> Refusal:
    return Refusal(
        "evidence_moved",
        "Not signed. New evidence arrived after the first signature, so it no longer counts.",
        status=409,
        what_to_do="Compare and decide again: the case needs a new first signature.",
    )


def checked_reason(reason: str) -> str:
    said = check_text(reason.strip(), field="reason", length_max=REASON_LENGTH_MAX)
    if len(said) < REASON_LENGTH_MIN:
        raise Refusal(
            "reason_too_short",
            f"Not recorded. The reason needs {REASON_LENGTH_MIN} characters or more.",
            what_to_do="Say why you are sure; it is kept for ever.",
            field="reason",
        )
    return said


def judged_or_refused(question: Question, said: Said) -> Judged:
    try:
        return judge.judge(question, said)
    except NotProved as lacks:
        raise Refusal(
            "proof_missing",
            f"Cannot be recorded yet. Missing: {lacks}.",
            what_to_do="You can check again, attach a provider statement, or keep it as unknown.",
            field=lacks.field or None,
            facts={"missing": list(lacks.missing)},
        ) from lacks


def require_amount_again(
    found: Opened, said: Said, judged: Judged, confirmed_minor: int | None
) -> None:
    operation = found.operation
    if operation is None or said.choice not in EVENTS or said.choice == HAPPENED:
        return
    wanted = judged.amount_minor or operation.amount_minor
    if confirmed_minor != wanted:
        raise Refusal(
            "proof_missing",
            "Cannot be recorded yet. Missing: the amount, typed once more.",
            what_to_do="Type the amount that this is about, with its decimals.",
            field="confirmed",
            facts={"missing": ["the amount, typed once more"]},
        )
