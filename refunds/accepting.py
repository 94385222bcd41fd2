"""Figures that two people accept where a provider states none (rules 40 to 44).

One proposes, another confirms; it ends by itself after 180 days at most, and either may withdraw it
at once. A figure is for one account, one fact and one kind of act.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from refunds.domain.contract import Accepted, ProviderContract, as_accepted
from refunds.domain.errors import Refusal
from refunds.domain.limits import Limits
from refunds.domain.risks import if_absence_is_false, if_resend_is_false
from refunds.domain.roles import ADMIN, OPS_LEAD
from refunds.ledger import accepted_now
from refunds.models import AcceptedFact, Person
from refunds.models.facts import VALID_MAX
from refunds.providers import registry

MAY_ACCEPT = frozenset({OPS_LEAD, ADMIN})
_REASON_MIN, _REASON_MAX = 10, 500
_YEAR = 366 * 86_400


def listed(account: str | None = None) -> list[AcceptedFact]:
    """Every record, proposed, in force, run out or withdrawn, the newest first."""
    rows = AcceptedFact.objects.select_related("proposed_by", "confirmed_by").order_by("-pk")
    return list(rows if account is None else rows.filter(account=account))


def propose(
    account: str, fact: str, seconds: int, scope: str, *, reason: str, days: int, by: Person
) -> AcceptedFact:
    """Propose a figure; it counts once another person confirms it.

    `fact` is flight_max (a request is executed so many seconds after it was sent, or never) or
    lookup_lag; `scope` is resend or absence; `days` how long it is to hold. Raises Refusal.
    """
    _require_right(by)
    contract = registry.account(account).contract
    _require_sense(contract, fact, seconds, scope, settings.LIMITS)
    reason = reason.strip()
    if not _REASON_MIN <= len(reason) <= _REASON_MAX:
        raise _refused(
            "reason_needed",
            f"A reason has {_REASON_MIN} to {_REASON_MAX} characters.",
            "Say what the figure rests on: a measurement, a letter of the provider, a contract.",
            field="reason",
        )
    if not 1 <= days <= VALID_MAX.days:
        raise _refused(
            "days_out_of_range",
            f"An accepted figure holds for 1 to {VALID_MAX.days} days.",
            f"Give at most {VALID_MAX.days} days; it can be accepted again.",
            field="days",
        )
    return _stored(account, fact, seconds, scope, reason, days, by)


def _stored(
    account: str, fact: str, seconds: int, scope: str, reason: str, days: int, by: Person
) -> AcceptedFact:
    now = timezone.now()
    try:
        with transaction.atomic():
            AcceptedFact.objects.filter(
                account=account, fact=fact, scope=scope, withdrawn_at=None, valid_until__lte=now
            ).update(withdrawn_at=now, withdrawn_by="policy", withdrawn_because="It ran out.")
            return AcceptedFact.objects.create(
                account=account,
                fact=fact,
                seconds=seconds,
                scope=scope,
                reason=reason,
                proposed_by=by,
                proposed_at=now,
                valid_until=now + timedelta(days=days),
            )
    except IntegrityError as error:
        raise _refused(
            "accepted_already",
            f"A figure for {fact} and {scope} of {account} is proposed or in force.",
            "Withdraw it first.",
            status=409,
        ) from error


def confirm(fact_id: int, *, by: Person) -> AcceptedFact:
    """The second person's yes: from now on the figure counts. Raises Refusal."""
    _require_right(by)
    with transaction.atomic():
        row = _locked(fact_id)
        if row.withdrawn_at is not None or row.valid_until <= timezone.now():
            raise _refused(
                "no_longer_open", "It was withdrawn or has run out.", "Propose it anew.", status=409
            )
        if row.confirmed_at is not None:
            raise _refused(
                "confirmed_already", "It is in force.", "There is nothing to do.", status=409
            )
        if row.proposed_by_id == by.pk:
            raise _refused(
                "confirmed_by_the_same_person",
                f"{by.username} proposed it; another person must confirm it.",
                "Ask another ops lead or admin.",
                status=403,
            )
        contract = registry.account(row.account).contract
        _require_sense(contract, row.fact, row.seconds, row.scope, settings.LIMITS)
        row.confirmed_by, row.confirmed_at = by, timezone.now()
        row.save(update_fields=["confirmed_by", "confirmed_at"])
    return row


def withdraw(fact_id: int, *, by: Person, because: str) -> AcceptedFact:
    """End a figure at once; one person is enough for that. Raises Refusal."""
    _require_right(by)
    because = because.strip()
    if not because:
        raise _refused("reason_needed", "Say why.", "Give a reason.", field="because")
    with transaction.atomic():
        row = _locked(fact_id)
        if row.withdrawn_at is not None:
            raise _refused(
                "withdrawn_already", "It was withdrawn.", "There is nothing to do.", status=409
            )
        row.withdrawn_at, row.withdrawn_by = timezone.now(), by.username
        row.withdrawn_because = because[:500]
        row.save(update_fields=["withdrawn_at", "withdrawn_by", "withdrawn_because"])
    return row


def if_false(row: AcceptedFact) -> str:
    """In one sentence, what goes wrong if this figure is not true (reliability 2.6)."""
    account = registry.account(row.account)
    if row.scope == "resend":
        return if_resend_is_false(account.contract, row.seconds, row.account, settings.LIMITS)
    ours = Accepted(row.pk, row.fact, row.seconds, "absence")  # type: ignore[arg-type]
    others = [each for each in accepted_now(row.account) if each.fact != row.fact]
    held, _ = as_accepted(account.contract, [ours, *others], "absence")
    return if_absence_is_false(held, row.account)


def _require_sense(
    contract: ProviderContract, fact: str, seconds: int, scope: str, limits: Limits
) -> None:
    """A figure for something that may be accepted, that nobody states, and that permits something."""
    if fact not in ("flight_max", "lookup_lag") or scope not in ("resend", "absence"):
        raise _refused(
            "not_acceptable",
            f"{fact} for {scope} cannot be accepted.",
            "Accept flight_max or lookup_lag, for resend or absence.",
            field="fact",
        )
    if not 1 <= seconds <= _YEAR:
        raise _refused(
            "seconds_out_of_range", "It is no duration.", "Give whole seconds.", field="seconds"
        )
    if getattr(contract, fact).seconds is not None:
        raise _refused(
            "stated_already",
            f"The contract of this account states {fact}: nothing may loosen it.",
            "There is nothing to accept.",
            field="fact",
        )
    if scope == "absence" and contract.lookup == "none":
        raise _refused(
            "no_lookup",
            "This account has no lookup: nothing can be absent from it.",
            "A person must find out.",
            field="scope",
        )
    if scope == "resend":
        _require_a_living_key(contract, fact, seconds, limits)


def _require_a_living_key(
    contract: ProviderContract, fact: str, seconds: int, limits: Limits
) -> None:
    window = contract.key_window.seconds
    if contract.keys != "window" or window is None:
        raise _refused(
            "no_key_window",
            "Only a key that lives for a known time makes a second send the same refund.",
            "Nothing can be accepted in its place.",
            field="scope",
        )
    spent = limits.send_deadline_seconds + (contract.idle_close.seconds or 0) + limits.skew_seconds
    if fact == "flight_max" and seconds + spent > window:
        raise _refused(
            "longer_than_the_key",
            f"A request in flight for {seconds} s outlives the key, which lives {window} s.",
            "A smaller figure, if it is true, or none.",
            field="seconds",
        )


def _locked(fact_id: int) -> AcceptedFact:
    # Whoever sends or settles on it now holds the row: this waits until that is committed.
    row = AcceptedFact.objects.select_for_update().filter(pk=fact_id).first()
    if row is None:
        raise _refused(
            "fact_unknown", f"There is no accepted fact {fact_id}.", "List them.", status=404
        )
    return row


def _require_right(by: Person) -> None:
    held = by.groups.filter(name__in=MAY_ACCEPT)
    if not (by.is_active and held.exists()):
        raise _refused(
            "may_not_accept",
            f"{by.username} may not accept a fact about a provider.",
            "Ask an ops lead or an admin.",
            status=403,
        )


def _refused(
    code: str, detail: str, what_to_do: str, *, status: int = 422, field: str | None = None
) -> Refusal:
    return Refusal(code, detail, status=status, what_to_do=what_to_do, field=field)
