"""The way out of a quarantine (rule 3): what must be known before anything is sent again.

The database may have lost rows that permitted sends. So every uncertain operation is looked up,
and every account's own list is read over the time that may be lost: a refund with our marker
halts its operation and has it looked up, one that no row explains counts as made elsewhere.
What was read before the last of those sends must have landed and be visible says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from reconciliation import account_sweep
from reconciliation.models import Case
from refunds import doorbell, witness
from refunds.consent import roles_of
from refunds.domain import states
from refunds.domain.contract import as_accepted, quiet_until
from refunds.domain.errors import Refusal
from refunds.domain.roles import ADMIN, OPS_LEAD
from refunds.ledger import accepted_now, sending
from refunds.models import Evidence, Operation, Payment, Person, ProviderAccount, Quarantine
from refunds.providers import registry

_BATCH_MAX = 200
# Where a second request under the same key may be a second refund.
_KEYS_THAT_GUARD_NOTHING = frozenset({"none", "weak"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One thing that is not known yet. `by_hand`: no list can say it, so a person must."""

    account: str
    says: str
    by_hand: bool = False


def known_until(quarantine: Quarantine) -> datetime:
    """From when on sends may be lost."""
    at = quarantine.detail.get("known_until")
    return datetime.fromisoformat(at) if at else quarantine.began_at


def missing(quarantine: Quarantine) -> list[Missing]:
    """What is not known yet, by account; nothing when it may be lifted."""
    found = []
    for name in _in_use():
        unread = _unread(name, quarantine)
        if unread:
            found.append(Missing(account=name, says=unread))
        why = _why_by_hand(name, quarantine)
        if why and not unread and name not in quarantine.by_hand:
            since = f"{known_until(quarantine):%Y-%m-%d %H:%M:%S} UTC"
            says = (
                f"{name} {why}. Compare its refunds since {since} with the provider's own"
                " dashboard, and say so."
            )
            found.append(Missing(account=name, says=says, by_hand=True))
        count = _not_looked_up(name, quarantine).count()
        if count:
            were = "refund {0} was" if count == 1 else "refunds {0} were"
            says = f"{count} uncertain {were.format(f'of {name}')} not looked up since it began."
            found.append(Missing(account=name, says=says))
    return found


def _in_use() -> list[str]:
    """Accounts that payments here are of, the configured ones and those that are gone."""
    names = set(registry.accounts()) | set(ProviderAccount.objects.values_list("name", flat=True))
    return [
        name for name in sorted(names) if Payment.objects.filter(provider_account=name).exists()
    ]


def _listable(name: str) -> bool:
    account = registry.accounts().get(name)
    return account is not None and account.contract.account_list != "none"


def _landed(name: str, quarantine: Quarantine) -> datetime | None:
    """When all that was permitted before it began has landed and shows; None if nobody knows.

    A send that the database no longer knows may have written its last byte at its deadline.
    """
    account = registry.accounts().get(name)
    if account is None:
        return None
    bounds, _ = as_accepted(account.contract, accepted_now(name), "absence")
    limits = settings.LIMITS
    last_write = quarantine.began_at + timedelta(seconds=limits.send_deadline_seconds)
    return quiet_until(bounds, [(last_write, False)], limits.skew_seconds)


def _why_by_hand(name: str, quarantine: Quarantine) -> str:
    """Why no list can say what may be lost; empty where one can.

    Where nobody knows how long a request flies, what is still on its way pays once under a key that
    lives, and twice where no key is kept.
    """
    if not _listable(name):
        return "has no list that can be read here"
    unguarded = registry.accounts()[name].contract.keys in _KEYS_THAT_GUARD_NOTHING
    if unguarded and _landed(name, quarantine) is None:
        return "does not say how late a request may still land"
    return ""


def _unread(name: str, quarantine: Quarantine) -> str:
    """Why the account's list does not yet say what may be lost; empty where it does, or where
    there is no list."""
    if not _listable(name):
        return ""
    until = account_sweep.covered(name, known_until(quarantine))
    landed = _landed(name, quarantine)
    if until is not None and until > (landed or quarantine.began_at):
        return ""
    after = (
        f"{landed:%H:%M:%S} UTC, when the last send has landed"
        if landed
        else "the quarantine began"
    )
    return (
        f"The refunds of {name} since {known_until(quarantine):%Y-%m-%d %H:%M:%S} UTC were not"
        f" listed to the end after {after}."
    )


def _not_looked_up(name: str, quarantine: Quarantine) -> QuerySet[Operation]:
    """Uncertain operations without a lookup since it began that could tell; what no lookup can
    tell needs its case."""
    uncertain = Operation.objects.filter(provider_account=name, state__in=states.UNCERTAIN)
    account = registry.accounts().get(name)
    if account is None or account.contract.lookup == "none":
        return uncertain.filter(
            ~Exists(Case.objects.filter(operation=OuterRef("pk"), closed_at=None))
        )
    told = Q(facts__complete=True) | Q(facts__verdict__in=["match", "differs", "duplicate"])
    after = _landed(name, quarantine) or quarantine.began_at
    looked = Evidence.objects.filter(
        told, operation=OuterRef("pk"), kind="lookup", started_at__gt=after
    )
    return uncertain.filter(~Exists(looked))


def tend(now: datetime) -> int:
    """While there is a quarantine: have read and looked up what is missing; how much was rung for."""
    quarantine = sending.open_quarantine()
    if quarantine is None:
        return 0
    rung = 0
    for name in _in_use():
        if _unread(name, quarantine):
            ProviderAccount.objects.get_or_create(name=name)
            account_sweep.read_weeks_now(name)
            doorbell.ring_account_sweep(name)
            rung += 1
        for operation in _not_looked_up(name, quarantine)[:_BATCH_MAX]:
            if operation.state != states.SUBMITTING:
                doorbell.ring_lookup(operation.pk)
                rung += 1
    return rung


def ask(*, by: Person, by_hand: frozenset[str]) -> Quarantine:
    """The first of two people asks to lift it. Raises Refusal with what is missing."""
    _require_role(by)
    quarantine = _require_open()
    _require_complete(quarantine, by_hand)
    return sending.ask_to_lift(by=by.username, by_hand=sorted(by_hand))


def lift(*, by: Person) -> None:
    """The second person lifts it, one of the two an ops lead and the other an admin.

    Raises Refusal: nobody asked, the same person asked, the roles do not fit, or what is missing.
    """
    _require_role(by)
    quarantine = _require_open()
    first = Person.objects.filter(username=quarantine.asked_by, is_active=True).first()
    if first is None:
        raise Refusal(
            "nobody_asked",
            "Nobody has asked to lift the quarantine.",
            status=409,
            what_to_do="Ask first; another person lifts it.",
        )
    _require_two(first, by)
    _require_complete(quarantine, frozenset(quarantine.by_hand))
    sending.lift_quarantine(by=first.username, with_=by.username)
    witness.forget()


def _require_open() -> Quarantine:
    quarantine = sending.open_quarantine()
    if quarantine is None:
        raise Refusal(
            "no_quarantine", "There is no quarantine.", status=409, what_to_do="Nothing to do."
        )
    return quarantine


def _require_role(person: Person) -> None:
    if roles_of(person).isdisjoint({OPS_LEAD, ADMIN}):
        raise Refusal(
            "role_missing",
            f"{person.username} is neither an ops lead nor an admin.",
            status=403,
            what_to_do="Ask an ops lead and an admin.",
        )


def _require_two(first: Person, second: Person) -> None:
    pairs = ((first, second), (second, first))
    fit = any(OPS_LEAD in roles_of(one) and ADMIN in roles_of(other) for one, other in pairs)
    if first.pk == second.pk or not fit:
        raise Refusal(
            "two_people_needed",
            "Lifting a quarantine takes two different people: an ops lead and an admin.",
            status=403,
            what_to_do=f"{first.username} asked. Leave it to another person of the other role.",
        )


def _require_complete(quarantine: Quarantine, by_hand: frozenset[str]) -> None:
    left = [each for each in missing(quarantine) if not (each.by_hand and each.account in by_hand)]
    if left:
        raise Refusal(
            "proof_missing",
            "Not lifted. " + " ".join(each.says for each in left),
            what_to_do="Wait until the lists and lookups are done; they run by themselves. What"
            " cannot be listed is compared by hand.",
        )
