"""The result contract: what an operation means for whoever asked for it, and what is safe now.

REST and MCP answer with these very dictionaries. Building one runs no query: `readable` has
fetched everything with a number of queries that does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from refunds.domain import states
from refunds.domain.contract import allowed
from refunds.domain.judging import CORRECTABLE_CHECKS
from refunds.domain.rejection import OTHER
from refunds.domain.say import About, say
from refunds.domain.sentences import STALE_CAUSES, Told, sentence
from refunds.models import Approval, Event, Operation, PolicyCheck, ProviderRefund
from refunds.providers import registry

STALE: Final = "stale"
ALREADY_DONE: Final = "already_done"
CONFLICT: Final = "conflict"
STOP: Final = "stop_and_tell_customer"
CORRECT: Final = "correct_and_propose"

# Everything that a result may advise, and what it means; no other word is ever sent.
NEXT_ACTIONS: Final = {
    "ask_status": "Ask for the status after `ask_again_after_seconds`. Do not propose again.",
    STOP: "You asked often enough. Stop asking, tell the customer what `say` says, and come back"
    " after `ask_again_after_seconds` if at all.",
    "ask_customer": "The payment company needs something from the customer. Tell the customer"
    " `say`, and a colleague, who looks up what it is (`ask_customer_for` is null until we know).",
    "done": "Nothing is left to do.",
    "tell_a_person": "A person must look at it. Tell a colleague what `reasons` and `sentence` say;"
    " propose nothing in its place unless they ask for it.",
    CORRECT: "Read `reasons` (of an error: `what_to_do`), correct the wish, and"
    " propose it as a new call. `do_not_repeat` still holds: the same wish is refused again.",
    "propose_again_if_needed": "Nothing was sent. Propose it as a new call if it is still wanted.",
}
# Everything that a problem may advise which is not told as a refund, and what it means.
ERROR_ACTIONS: Final = {
    "correct_and_repeat": "Nothing was recorded. Do what `what_to_do` says, then call again.",
    "repeat_later": "Wait as long as `Retry-After` says, then repeat the very same call, with the"
    " same ids.",
}
# Once only a person can find out, asking every minute changes nothing.
ASK_PEOPLE_SECONDS: Final = 900
# A lead's no that says what would be right may be answered with a corrected wish.
CORRECTABLE_REJECTIONS: Final = frozenset({"amount_wrong"})
# For an operation whose account is not configured any more.
UNKNOWN_TARGET_SECONDS: Final = 900
_IN_DOUBT: Final = (states.SUBMITTING, states.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Advice:
    """One line of the outcome table. `ask_after_seconds` is None where asking changes nothing."""

    outcome: str
    money_may_have_moved: str
    do_not_repeat: bool
    next_action: str
    ask_after_seconds: int | None = None


ADVICE: Final[dict[str, Advice]] = {
    states.PROPOSED: Advice("awaiting_approval", "no", True, "ask_status", 60),
    states.AWAITING_APPROVAL: Advice("awaiting_approval", "no", True, "ask_status", 60),
    states.AUTHORIZED: Advice("in_progress", "no", True, "ask_status", 5),
    states.SUBMITTING: Advice("in_progress", "maybe", True, "ask_status", 5),
    states.PENDING: Advice("pending", "maybe", True, "ask_status", 300),
    states.UNKNOWN: Advice("unknown", "maybe", True, "ask_status", 60),
    states.SUCCEEDED: Advice("succeeded", "yes", True, "done"),
    states.MISMATCHED: Advice("mismatched", "yes", True, "tell_a_person"),
    states.RETURNED: Advice("returned", "yes", True, "tell_a_person"),
    states.FAILED: Advice("failed", "no", True, "tell_a_person"),
    states.REJECTED: Advice("rejected", "no", True, "tell_a_person"),
    states.DENIED: Advice("denied", "no", True, "tell_a_person"),
    states.EXPIRED: Advice("expired", "no", False, "propose_again_if_needed"),
    states.WITHDRAWN: Advice("withdrawn", "no", False, "propose_again_if_needed"),
}


def readable(accounts: Collection[str] | None = None) -> QuerySet[Operation]:
    """Operations with all that `result` looks at; only those of `accounts`, where given."""
    operations = Operation.objects.select_related(
        "order", "payment", "agent", "proposer"
    ).prefetch_related(
        Prefetch("events", Event.objects.order_by("seq")),
        Prefetch("approvals", Approval.objects.select_related("approver").order_by("pk")),
        Prefetch("provider_refunds", ProviderRefund.objects.order_by("pk")),
        Prefetch("checks", PolicyCheck.objects.filter(passed=False).order_by("position")),
    )
    return operations if accounts is None else operations.filter(provider_account__in=accounts)


def find(operation_id: UUID, accounts: Collection[str] | None = None) -> Operation | None:
    """One readable operation; None where there is none, or not in these accounts."""
    return readable(accounts).filter(pk=operation_id).first()


def page(
    accounts: Collection[str], *, after: UUID | None, count_max: int
) -> tuple[list[Operation], UUID | None]:
    """Up to `count_max` operations after an id, oldest first, and where the next page begins."""
    operations = readable(accounts).order_by("pk")
    if after is not None:
        operations = operations.filter(pk__gt=after)
    found = list(operations[: count_max + 1])
    more = len(found) > count_max
    return found[:count_max], found[count_max - 1].pk if more else None


def told(operation: Operation) -> Told:
    """What the sentence about this operation may name."""
    history = list(operation.events.all())
    last = history[-1]
    sent = [each.at for each in history if each.to_state == states.SUBMITTING]
    refs = [each.ref for each in operation.provider_refunds.all()]
    return Told(
        asked_by=_proposer(operation),
        approved_by=_approvers(operation, history),
        order_version=operation.send_version,
        expires_at=operation.expires_at,
        sent_at=sent[-1] if sent else None,
        entered_at=last.at,
        entered_by=_names(last.actor),
        event=last.event,
        because=str(last.detail.get("because") or last.detail.get("reason") or ""),
        stale_cause=operation.stale_cause,
        needs_customer=operation.pending_reason == "needs_customer",
        only_people=_only_people(operation),
        provider_refund_ref=refs[0] if refs else "",
        failed_checks=tuple(each.name for each in operation.checks.all()),
    )


def about(operation: Operation) -> About:
    """What the customer's words about this operation may name (`refunds.domain.say`)."""
    failed = tuple(each.name for each in operation.checks.all())
    return about_read(operation, list(operation.events.all()), failed)


def about_read(operation: Operation, history: list[Event], failed_checks: tuple[str, ...]) -> About:
    """The same for an operation whose events (oldest first) and failed checks were read already."""
    account = registry.accounts().get(operation.provider_account)
    return About(
        state=operation.state,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        since=_since(history),
        due_at=operation.expires_at,
        unknown_target_seconds=account.contract.unknown_target_seconds
        if account
        else UNKNOWN_TARGET_SECONDS,
        stale_cause=operation.stale_cause,
        needs_customer=operation.pending_reason == "needs_customer",
        failed_checks=failed_checks,
    )


def _since(history: list[Event]) -> datetime:
    """When it came to where it stands; a doubt is as old as its first request (no promise moves
    because a second one was sent)."""
    at = history[-1].at
    for event in reversed(history):
        if event.to_state not in _IN_DOUBT:
            break
        at = event.at
    return at


def _only_people(operation: Operation) -> bool:
    account = registry.accounts().get(operation.provider_account)
    return account is not None and not allowed(account.contract).finds_out


def _proposer(operation: Operation) -> str:
    if operation.agent is not None:
        return operation.agent.name
    return operation.proposer.username if operation.proposer else ""


def _approvers(operation: Operation, history: list[Event]) -> str:
    """Who said yes in this round; policy where it cleared the operation by itself."""
    if any(each.event == "policy_cleared" for each in history):
        return "policy"
    given = [each for each in operation.approvals.all() if each.round == operation.round]
    return ", ".join(each.approver.username for each in given)


def _names(actor: str) -> str:
    """Names without their kind: "person:ada, person:fay" -> "ada, fay"."""
    return ", ".join(part.split(":", 1)[-1] for part in actor.split(", "))


def reasons(operation: Operation) -> list[dict[str, str]]:
    """Why: the checks that refused it, the lead's reason for a no, or what made it stale."""
    if operation.state == states.DENIED:
        return [{"code": each.name, "says": each.says} for each in operation.checks.all()]
    if operation.state == states.REJECTED:
        detail = list(operation.events.all())[-1].detail
        return [{"code": detail.get("code", OTHER), "says": detail.get("reason", "")}]
    if _is_stale(operation):
        cause = operation.stale_cause
        return [{"code": cause, "says": STALE_CAUSES.get(cause, cause.replace("_", " "))}]
    return []


def _is_stale(operation: Operation) -> bool:
    return operation.state == states.AWAITING_APPROVAL and bool(operation.stale_cause)


def _correctable(operation: Operation) -> bool:
    """Whether the wish itself was wrong and another one in its place may be right.

    Limits, ages, holds and a lead's plain no are not: a model would split or bend the wish.
    """
    codes = {each["code"] for each in reasons(operation)}
    if operation.state == states.DENIED:
        return bool(codes) and codes <= CORRECTABLE_CHECKS
    return operation.state == states.REJECTED and codes <= CORRECTABLE_REJECTIONS


def _ask_after_seconds(operation: Operation) -> int | None:
    if operation.state == states.UNKNOWN and _only_people(operation):
        return ASK_PEOPLE_SECONDS
    return ADVICE[operation.state].ask_after_seconds


def result(operation: Operation, now: datetime, *, outcome: str | None = None) -> dict[str, Any]:
    """The dictionary of the result contract, for an operation of `readable`.

    `outcome` is `already_done` or `conflict` where the call got an existing operation; all else
    is that operation's own. Amounts in minor units, instants UTC to the second.
    """
    advice = ADVICE[operation.state]
    facts = told(operation)
    answer: dict[str, Any] = {
        "operation_id": str(operation.pk),
        "business_key": operation.business_key,
        "outcome": outcome or (STALE if _is_stale(operation) else advice.outcome),
        "state": operation.state,
        "version": operation.version,
        "sentence": sentence(operation.state, facts, now),
        "say": say(about(operation), now).text,
        "money_may_have_moved": advice.money_may_have_moved,
        "next_action": CORRECT if _correctable(operation) else advice.next_action,
        "do_not_repeat": advice.do_not_repeat or outcome is not None,
        "ask_again_after_seconds": _ask_after_seconds(operation),
        "order_ref": operation.order.ref,
        "payment_ref": operation.payment.ref,
        "amount_minor": operation.amount_minor,
        "currency": operation.currency,
        "provider_refund_ref": facts.provider_refund_ref or None,
        "possible_repeat": operation.possible_repeat,
        "reasons": reasons(operation),
        "created_at": utc(operation.created_at),
        "as_of": utc(now),
    }
    if operation.state == states.PENDING:
        answer["pending_reason"] = operation.pending_reason
        if facts.needs_customer:
            # No adapter reads what is asked of the customer; a colleague sees it on the page of
            # the provider.
            answer |= {"next_action": "ask_customer", "ask_customer_for": None, "until": None}
    return answer


def has_ended(answer: dict[str, Any]) -> bool:
    """Whether the operation of a result has ended, so that asking again changes nothing."""
    return answer["state"] in states.ENDED


def stopped(answer: dict[str, Any], left_seconds: int) -> dict[str, Any]:
    """The same truth for who asked too often: stop, speak, and when asking makes sense again."""
    return answer | {"next_action": STOP, "ask_again_after_seconds": left_seconds}


def next_actions_table() -> str:
    """The closed list as a Markdown table, for the documentation."""
    rows = [f"| `{name}` | {means} |" for name, means in (NEXT_ACTIONS | ERROR_ACTIONS).items()]
    return "\n".join(["| next_action | means |", "|---|---|", *rows])


def utc(at: datetime) -> str:
    """ISO 8601 in UTC, to the second: "2026-11-29T14:02:03Z"."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
