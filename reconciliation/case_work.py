"""Working on cases: claim, release, take over, assign, note, check, snooze, escalate.

Every verb takes the case's row, so of two people at once one is first and the other hears who was.
All raise Refusal: case_closed, role_missing (403), stale_page, and what they name.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from reconciliation import rulings
from reconciliation.models import Case, CaseEvent
from refunds import doorbell
from refunds.consent import checked_reason, roles_of
from refunds.domain.errors import Refusal
from refunds.domain.roles import OPS, OPS_LEAD
from refunds.models import Evidence, Operation, Person
from refunds.providers import registry
from refunds.text import check_text

CASE_CLAIM_SECONDS = 1_800
SNOOZE_SECONDS_MAX = 86_400
CHECK_AGAIN_SECONDS = 10
NOTE_LENGTH_MAX = 500
ESCALATED_TO = ("ops_lead", "provider", "on_call")


def open_for_work(case_id: int, *, version: int | None = None) -> Case:
    """The case with its row locked; raises Refusal case_closed, or stale_page for another version."""
    case = Case.objects.select_for_update(of=("self",)).select_related("owner").get(pk=case_id)
    if case.closed_at is not None:
        raise Refusal(
            "case_closed",
            f"Not recorded. This case closed at {case.closed_at:%H:%M:%S} UTC:"
            f" {case.closed_because}",
            status=409,
            what_to_do="No decision is needed any more. Your text is kept below.",
        )
    if version is not None and case.version != version:
        raise moved(case)
    return case


def moved(case: Case) -> Refusal:
    """Somebody did something about the case since the page was drawn; says who and what."""
    last = (
        CaseEvent.objects.filter(case=case).exclude(kind__in=["noted", "checked"]).order_by("-pk")
    ).first()
    who = last.actor.removeprefix("person:") if last else "the machine"
    what = f"{who} {last.kind.replace('_', ' ')} it at {last.at:%H:%M:%S} UTC" if last else ""
    return Refusal(
        "stale_page",
        "Not recorded. The case changed while you looked" + (f": {what}." if what else "."),
        status=409,
        what_to_do="Look at what stands there now, and decide again if it still holds.",
    )


def holder(case: Case, now: datetime) -> Person | None:
    """Who has the case now; a claim whose time is over holds nothing."""
    held = case.owner is not None and case.owned_until is not None and case.owned_until > now
    return case.owner if held else None


def claim(case_id: int, person: Person, *, intent: UUID | None = None) -> Case:
    """Take a case that nobody holds, for 30 minutes. Raises Refusal already_claimed (409)."""
    _require_worker(person, "claim a case")
    with transaction.atomic():
        case, now = open_for_work(case_id), timezone.now()
        other = holder(case, now)
        if other is not None and other.pk != person.pk:
            raise _claimed(case, other, now)
        _hold(case, person, now)
        if other is None:
            rulings.step(case, "claimed", by=person, intent=intent)
    return case


def extend(case: Case, person: Person, now: datetime) -> None:
    """The page is in use: the holder keeps the case for another 30 minutes."""
    Case.objects.filter(pk=case.pk, owner=person, owned_until__gt=now, closed_at=None).update(
        owned_until=now + timedelta(seconds=CASE_CLAIM_SECONDS)
    )


def release(case_id: int, person: Person, *, intent: UUID | None = None) -> Case:
    """Give the case back. Raises Refusal not_yours (409)."""
    with transaction.atomic():
        case = open_for_work(case_id)
        if case.owner_id != person.pk:
            raise Refusal(
                "not_yours",
                "Not recorded. You do not hold this case.",
                status=409,
                what_to_do="There is nothing to give back.",
            )
        case.owner = case.owned_until = None
        case.save(update_fields=["owner", "owned_until"])
        rulings.step(case, "released", by=person, intent=intent)
    return case


def take_over(
    case_id: int, person: Person, *, reason: str, version: int, intent: UUID | None = None
) -> Case:
    """Take a case that another person holds, saying why; that person is told."""
    _require_worker(person, "take over a case")
    said = checked_reason(
        reason, not_done="Not taken over", what_to_do="Say why, for whoever held it."
    )
    with transaction.atomic():
        case, now = open_for_work(case_id, version=version), timezone.now()
        before = case.owner.username if case.owner else ""
        _hold(case, person, now)
        rulings.step(case, "taken_over", by=person, intent=intent, reason=said, before=before)
    return case


def assign(
    case_id: int, person: Person, to: Person, *, version: int, intent: UUID | None = None
) -> Case:
    """An ops lead gives the case to somebody who works on cases. Raises Refusal assignee_unfit."""
    _require(person, {OPS_LEAD}, "assign a case")
    if not to.is_active or roles_of(to).isdisjoint({OPS, OPS_LEAD}):
        raise Refusal(
            "assignee_unfit",
            f"Not assigned. {to.username} does not work on cases.",
            what_to_do="Choose somebody with the role ops or ops lead.",
            field="to",
        )
    with transaction.atomic():
        case, now = open_for_work(case_id, version=version), timezone.now()
        before = case.owner.username if case.owner else ""
        _hold(case, to, now)
        rulings.step(case, "assigned", by=person, intent=intent, to=to.username, before=before)
    return case


def note(case_id: int, person: Person, *, text: str, intent: UUID | None = None) -> CaseEvent:
    """A line for everybody who reads the case; never edited. Raises the refusals of texts."""
    said = check_text(text.strip(), field="note", length_max=NOTE_LENGTH_MAX)
    if not said:
        raise Refusal(
            "note_empty",
            "Not recorded. The note is empty.",
            what_to_do="Write what the next reader should know.",
            field="note",
        )
    with transaction.atomic():
        case = open_for_work(case_id)
        extend(case, person, timezone.now())
        return rulings.step(case, "noted", by=person, intent=intent, text=said)


def check_now(case_id: int, person: Person, *, intent: UUID | None = None) -> Case:
    """Make a lookup due at once: reading only. Raises Refusal no_lookup, already_checked (409)."""
    _require_worker(person, "ask the provider now")
    with transaction.atomic():
        operation = Case.objects.select_related("operation").get(pk=case_id).operation
        if operation is not None:
            Operation.objects.select_for_update().get(pk=operation.pk)
        case, now = open_for_work(case_id), timezone.now()
        if operation is None or not _may_be_asked(operation.provider_account):
            raise Refusal(
                "no_lookup",
                "Not asked. Nothing can be looked up here: the account has no lookup, or the case"
                " is about no operation.",
                status=409,
                what_to_do="Look at the payment in the provider’s own dashboard.",
            )
        _require_rest(case, operation, now)
        Operation.objects.filter(pk=operation.pk).update(due_at=now)
        extend(case, person, now)
        rulings.step(case, "checked", by=person, intent=intent)
        doorbell.ring_lookup(operation.pk)
    return case


def snooze(
    case_id: int,
    person: Person,
    *,
    seconds: int,
    reason: str,
    version: int,
    intent: UUID | None = None,
) -> Case:
    """Leave the case out of the list for at most 24 h; anything new wakes it.

    Past its due time only an ops lead may. Raises Refusal snooze_length, role_missing.
    """
    _require_worker(person, "snooze a case")
    said = checked_reason(reason, not_done="Not snoozed", what_to_do="Say what it waits for.")
    if not 0 < seconds <= SNOOZE_SECONDS_MAX:
        raise Refusal(
            "snooze_length",
            "Not snoozed. A case rests for at most 24 hours.",
            what_to_do="Choose a shorter time.",
            field="seconds",
        )
    with transaction.atomic():
        case, now = open_for_work(case_id, version=version), timezone.now()
        until = now + timedelta(seconds=seconds)
        if until > case.due_at:
            _require(person, {OPS_LEAD}, "snooze a case past its due time")
        case.snoozed_until = until
        case.save(update_fields=["snoozed_until"])
        rulings.step(
            case, "snoozed", by=person, intent=intent, reason=said, until=until.isoformat()
        )
    return case


def escalate(
    case_id: int, person: Person, *, to: str, reason: str, version: int, intent: UUID | None = None
) -> Case:
    """Hand the case to an ops lead, the provider or whoever is on call; it stays in the list."""
    _require_worker(person, "escalate a case")
    said = checked_reason(reason, not_done="Not escalated", what_to_do="Say what is wanted.")
    if to not in ESCALATED_TO:
        raise Refusal(
            "escalated_to_unknown",
            "Not escalated. Say to whom.",
            what_to_do="Choose the ops lead, the provider, or whoever is on call.",
            field="to",
        )
    with transaction.atomic():
        case = open_for_work(case_id, version=version)
        case.escalated_to, case.snoozed_until = to, None
        case.save(update_fields=["escalated_to", "snoozed_until"])
        extend(case, person, timezone.now())
        rulings.step(case, "escalated", by=person, intent=intent, to=to, reason=said)
    return case


def require_free(case: Case, person: Person, now: datetime) -> None:
    """Raise Refusal already_claimed if somebody else holds the case."""
    other = holder(case, now)
    if other is not None and other.pk != person.pk:
        raise _claimed(case, other, now)


def _hold(case: Case, person: Person, now: datetime) -> None:
    case.owner, case.owned_until = person, now + timedelta(seconds=CASE_CLAIM_SECONDS)
    case.snoozed_until = None
    case.save(update_fields=["owner", "owned_until", "snoozed_until"])


def _claimed(case: Case, other: Person, now: datetime) -> Refusal:
    last = CaseEvent.objects.filter(
        case=case, kind__in=["claimed", "taken_over", "assigned"]
    ).order_by("-pk")
    begun = last.values_list("at", flat=True).first() or now
    before = max(0, int((now - begun).total_seconds()))
    left = int((case.owned_until - now).total_seconds() // 60) + 1 if case.owned_until else 0
    return Refusal(
        "already_claimed",
        f"{other.username} claimed this {before} seconds before you and holds it for another"
        f" {left} min. You can read and add notes.",
        status=409,
        what_to_do="Take it over with a reason if it cannot wait.",
        facts={"owner": other.username},
    )


def _may_be_asked(name: str) -> bool:
    account = registry.accounts().get(name)
    return account is not None and account.contract.lookup != "none"


def _require_rest(case: Case, operation: Operation, now: datetime) -> None:
    since = now - timedelta(seconds=CHECK_AGAIN_SECONDS)
    pressed = CaseEvent.objects.filter(case=case, kind="checked", at__gt=since).exists()
    asked = Evidence.objects.filter(operation=operation, kind="lookup", started_at__gt=since)
    if pressed or asked.exists():
        raise Refusal(
            "already_checked",
            f"Asked less than {CHECK_AGAIN_SECONDS} s ago: the answer is here, or about to come.",
            status=409,
            what_to_do="Look at the evidence; ask again after a moment if it does not tell.",
        )


def _require_worker(person: Person, act: str) -> None:
    _require(person, {OPS, OPS_LEAD}, act)


def _require(person: Person, roles: set[str], act: str) -> None:
    if roles.isdisjoint(roles_of(person)):
        wanted = " or ".join(sorted(role.replace("_", " ") for role in roles))
        raise Refusal(
            "role_missing",
            f"You can read this but not {act}. It needs the role {wanted}.",
            status=403,
            what_to_do=f"Ask somebody with the role {wanted}.",
        )
