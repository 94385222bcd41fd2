"""From a wish to an operation: recognise the same refund, judge, store. One transaction.

The same refund is recognised three ways: the same call, the same wish (request_ref), and an
equivalent (same payment and amount) that is open or has ended lately.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import uuid_utils.compat as uuids
from django.db import IntegrityError, transaction
from django.utils import timezone

from refunds import doorbell, policies
from refunds.domain import fingerprint, money, states
from refunds.domain.contract import allowed
from refunds.domain.errors import Refusal
from refunds.domain.policy import Judgement, Policy, judge
from refunds.intake_facts import gather
from refunds.models import (
    Event,
    Operation,
    Order,
    Payment,
    PolicyCheck,
    Proposal,
)
from refunds.proposal import Caller, ProposalRequest
from refunds.providers import registry
from refunds.providers.base import Wish
from refunds.text import check_ref, check_text

REASON_CODES = (
    "damaged_item",
    "not_received",
    "returned_item",
    "duplicate_payment",
    "cancelled_order",
    "price_adjustment",
    "goodwill",
    "other",
)
CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_MINTED_REF = re.compile(r"request-[0-9]+", re.ASCII)
# After these ends an equal wish is answered with the first operation instead of a new one; the
# others (denied, withdrawn, expired) left nothing behind and may be asked for again.
_DONE_STATES = (
    states.SUCCEEDED,
    states.MISMATCHED,
    states.RETURNED,
    states.FAILED,
    states.REJECTED,
)
# How long policy's own authority (tier 0) lasts before the dispatcher must have claimed.
_POLICY_AUTHORITY = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """The operation this call stands for; `outcome` is created, same or already_done."""

    operation: Operation
    outcome: str


def propose(request: ProposalRequest, caller: Caller) -> Proposed:
    """Turn a call into an operation, or find the one it already stands for.

    Raises Refusal with the codes of the API table; nothing is recorded then. A well-formed
    proposal that a policy check refuses is recorded as `denied`.
    """
    _check_form(request)
    try:
        with transaction.atomic():
            return _propose(request, caller)
    except IntegrityError:
        # A twin of this call committed between our look and our insert; look once more.
        try:
            with transaction.atomic():
                return _propose(request, caller)
        except IntegrityError as error:
            if "operation_request" in str(error) or "operation_business_key" in str(error):
                # The wish exists where this caller may not look: say no more than that.
                raise _name_taken(request) from error
            raise


def _name_taken(request: ProposalRequest) -> Refusal:
    return Refusal(
        "request_ref_reused",
        f"{request.request_ref!r} names another refund of this order already.",
        status=409,
        what_to_do="Another wish needs another request_ref.",
        field="request_ref",
    )


def _check_form(request: ProposalRequest) -> None:
    for name in ("session_id", "tool_call_id"):
        if not CALL_ID.fullmatch(getattr(request, name)):
            raise Refusal(
                "field_format",
                f"{name} must be 1 to 128 of A-Z a-z 0-9 _ . : -",
                what_to_do="Send the identifiers of your own session and tool call.",
                field=name,
            )
    money.exponent(request.currency)
    money.check_minor(request.amount_minor)
    if request.reason_code not in REASON_CODES:
        raise Refusal(
            "reason_code_unknown",
            f"{request.reason_code[:40]!r} is not a reason code.",
            what_to_do=f"Use one of: {', '.join(REASON_CODES)}.",
            field="reason_code",
        )
    check_text(request.reason_text, field="reason_text", length_max=500)
    for name in ("order_ref", "requested_by_ref", "ticket_ref", "run_ref", "step_ref"):
        check_ref(getattr(request, name), field=name)
    if request.request_ref is not None:
        check_ref(request.request_ref, field="request_ref")
        if _MINTED_REF.fullmatch(request.request_ref) or not request.request_ref.strip():
            raise Refusal(
                "request_ref_reserved",
                f"{request.request_ref!r} has the form that we mint ourselves, or is empty.",
                what_to_do="Send your own name of this wish, such as the return's number.",
                field="request_ref",
            )


def _propose(request: ProposalRequest, caller: Caller) -> Proposed:
    call = _same_call(request, caller)
    if call is not None:
        return Proposed(operation=call, outcome="same")
    order = Order.objects.select_for_update().filter(ref=request.order_ref).first()
    if order is None:
        raise _order_unknown(request.order_ref)
    # The twin of this very call may have committed while we waited for the order.
    call = _same_call(request, caller)
    if call is not None:
        return Proposed(operation=call, outcome="same")
    wish = _same_wish(request, order, caller)
    if wish is not None:
        _record_call(request, caller, wish, created=False)
        return Proposed(operation=wish, outcome="same")
    payment = _payment(request, order, caller)
    _refuse_live_equivalent(request, payment)
    done = _ended_equivalent(request, payment)
    if done is not None and request.separate_from is None:
        return Proposed(operation=done, outcome="already_done")
    return Proposed(operation=_create(request, caller, order, payment, done), outcome="created")


def _digest(request: ProposalRequest, payment_ref: str) -> bytes:
    return fingerprint.arguments_digest(
        order_ref=request.order_ref,
        payment_ref=payment_ref,
        amount_minor=request.amount_minor,
        currency=request.currency,
        reason_code=request.reason_code,
    )


def _same_call(request: ProposalRequest, caller: Caller) -> Operation | None:
    """The operation of this very call (R3); raises Refusal when its arguments were others."""
    known = (
        Proposal.objects.select_related("operation__payment", "operation__order")
        .filter(
            agent=caller.agent,
            person=caller.person,
            session_id=request.session_id,
            tool_call_id=request.tool_call_id,
        )
        .first()
    )
    if known is None:
        return None
    # A payment that was left out is the one it was resolved to then.
    payment_ref = request.payment_ref or known.operation.payment.ref
    if bytes(known.arguments_digest) == _digest(request, payment_ref):
        return known.operation
    raise Refusal(
        "tool_call_reused",
        f"Call {request.tool_call_id} of this session asked for something else before.",
        status=409,
        what_to_do="Ask for the status of that operation, or propose under a new tool_call_id.",
        field="tool_call_id",
        operation_id=known.operation_id,
    )


def _same_wish(request: ProposalRequest, order: Order, caller: Caller) -> Operation | None:
    """The operation of this request_ref on this order, whoever asks; for ever."""
    if request.request_ref is None:
        return None
    known = (
        Operation.objects.select_related("payment", "order")
        .filter(order=order, request_ref=request.request_ref)
        .first()
    )
    if known is None or not caller.has_account(known.provider_account):
        return None
    same = (
        known.amount_minor == request.amount_minor
        and known.currency == request.currency
        and request.payment_ref in (None, known.payment.ref)
    )
    if same:
        return known
    raise Refusal(
        "request_ref_reused",
        f"{request.request_ref} was asked for as {money.display(known.amount_minor, known.currency)}"
        f" of payment {known.payment.ref}.",
        status=409,
        what_to_do="Ask for the status of that operation; another wish needs another request_ref.",
        field="request_ref",
        operation_id=known.pk,
    )


def _order_unknown(ref: str) -> Refusal:
    return Refusal(
        "order_unknown",
        f"There is no order {ref!r}.",
        what_to_do="Feed the order first (PUT /api/v1/orders/{ref}), then propose.",
        field="order_ref",
    )


def _payment(request: ProposalRequest, order: Order, caller: Caller) -> Payment:
    known = list(Payment.objects.filter(order=order).order_by("pk"))
    payments = [each for each in known if caller.has_account(each.provider_account)]
    if known and not payments:
        # An order of other accounts is answered like one that does not exist.
        raise _order_unknown(order.ref)
    if request.payment_ref is not None:
        payments = [payment for payment in payments if payment.ref == request.payment_ref]
        if not payments:
            raise Refusal(
                "payment_unknown",
                f"Order {order.ref} has no payment {request.payment_ref!r}.",
                what_to_do="Leave payment_ref out, or send one of the order's payments.",
                field="payment_ref",
            )
    elif len(payments) > 1:
        payments = [payment for payment in payments if payment.available_minor > 0] or payments
    if len(payments) != 1:
        code = "payment_ambiguous" if payments else "payment_unknown"
        raise Refusal(
            code,
            f"Order {order.ref} has {len(payments)} payments that could be meant.",
            what_to_do="Send payment_ref."
            if payments
            else "Feed the order's payments first, or use an agent that has the account.",
            field="payment_ref",
        )
    return payments[0]


def _refuse_live_equivalent(request: ProposalRequest, payment: Payment) -> None:
    live = Operation.objects.filter(
        payment=payment, amount_minor=request.amount_minor, blocks_equivalent=True
    ).first()
    if live is None or request.currency != payment.currency:
        return
    raise Refusal(
        "equivalent_unresolved",
        f"An equal refund of payment {payment.ref} is not ended: {live.business_key} is"
        f" {live.state}.",
        status=409,
        what_to_do="Ask for the status of that operation. If a second equal refund is wanted,"
        " propose it with separate_from after the first has ended.",
        operation_id=live.pk,
    )


def _ended_equivalent(request: ProposalRequest, payment: Payment) -> Operation | None:
    since = timezone.now() - timedelta(seconds=policies.current().repeat_window_seconds)
    return (
        Operation.objects.select_related("payment", "order")
        .filter(
            order_id=payment.order_id,
            payment=payment,
            amount_minor=request.amount_minor,
            currency=request.currency,
            state__in=_DONE_STATES,
            settled_at__gte=since,
        )
        .order_by("-settled_at")
        .first()
    )


def _create(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    payment: Payment,
    ended: Operation | None,
) -> Operation:
    now = timezone.now()
    policy = policies.current()
    separate = _separate_from(request, order)
    contract = registry.account(payment.provider_account).contract
    facts = gather(
        request,
        caller,
        order,
        payment,
        ended_equivalent=str(ended.pk) if ended else None,
        machine_can_settle=allowed(contract).can_settle,
        now=now,
    )
    judgement = judge(facts, policy, now)
    operation = _store(request, caller, order, payment, judgement, policy, now, separate)
    _record_call(request, caller, operation, created=True)
    if operation.state == states.AUTHORIZED:
        doorbell.ring_send(operation.pk)
    return operation


def _separate_from(request: ProposalRequest, order: Order) -> Operation | None:
    if request.separate_from is None:
        return None
    other = Operation.objects.filter(order=order, pk=request.separate_from).first()
    if other is None:
        raise Refusal(
            "separate_from_unknown",
            f"separate_from names no operation of order {order.ref}.",
            what_to_do="Send the operation_id of the refund this one is separate from.",
            field="separate_from",
        )
    return other


def _where_to(judgement: Judgement, policy: Policy, now: datetime) -> dict[str, Any]:
    """State, event and clocks of the second event, which follows the proposal at once."""
    if judgement.denied:
        return {
            "event": "policy_denied",
            "state": states.DENIED,
            "expires_at": now,
            "settled_at": now,
            "blocks_equivalent": False,
        }
    if judgement.cleared:
        until = now + _POLICY_AUTHORITY
        return {
            "event": "policy_cleared",
            "state": states.AUTHORIZED,
            "expires_at": until,
            "due_at": now,
        }
    until = now + timedelta(seconds=policy.proposal_valid_seconds)
    return {
        "event": "policy_held",
        "state": states.AWAITING_APPROVAL,
        "expires_at": until,
        "due_at": until,
    }


def _store(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    payment: Payment,
    judgement: Judgement,
    policy: Policy,
    now: datetime,
    separate: Operation | None,
) -> Operation:
    operation_id = uuids.uuid7()
    # Counted under the order's lock; every operation of the order has taken its number here.
    request_ref = request.request_ref or f"request-{_next_number(order)}"
    business_key = f"refund:{order.ref}:{request_ref}"
    account = registry.account(payment.provider_account)
    body = registry.adapter(account).body(
        Wish(
            marker=str(operation_id),
            payment_ref=payment.ref,
            amount_minor=request.amount_minor,
            currency=request.currency,
            reason_code=request.reason_code,
        )
    )
    where = _where_to(judgement, policy, now)
    event = where.pop("event")
    operation = Operation.objects.create(
        id=operation_id,
        business_key=business_key,
        order=order,
        payment=payment,
        provider_account=payment.provider_account,
        amount_minor=request.amount_minor,
        currency=request.currency,
        reason_code=request.reason_code,
        reason_text=request.reason_text,
        request_ref=request_ref,
        requested_by_kind=request.requested_by_kind,
        requested_by_ref=request.requested_by_ref,
        ticket_ref=request.ticket_ref,
        run_ref=request.run_ref,
        step_ref=request.step_ref,
        claims=request.claims,
        read_links=list(request.read_links),
        proposer=caller.person,
        agent=caller.agent,
        agent_owner=caller.agent.owner if caller.agent else None,
        provider_key=fingerprint.provider_key(operation_id),
        body=body,
        fingerprint=fingerprint.material_digest(
            operation_id=operation_id,
            business_key=business_key,
            provider_account=payment.provider_account,
            payment_ref=payment.ref,
            amount_minor=request.amount_minor,
            currency=request.currency,
            reason_code=request.reason_code,
            body=body,
        ),
        policy_version=policy.version,
        tier=judgement.tier,
        quorum=judgement.quorum,
        possible_repeat=judgement.possible_repeat,
        separate_from=separate,
        version=2,
        entered_at=now,
        created_at=now,
        send_version=order.version if judgement.cleared else None,
        **where,
    )
    _store_history(operation, caller, judgement, event, now)
    return operation


def _next_number(order: Order) -> int:
    return Operation.objects.filter(order=order).count() + 1


def _store_history(
    operation: Operation, caller: Caller, judgement: Judgement, event: str, now: datetime
) -> None:
    proposed = Event(
        operation=operation,
        seq=1,
        event="proposed",
        from_state=states.NONE,
        to_state=states.PROPOSED,
        actor_kind=states.CALLER,
        actor=caller.actor,
        detail={},
        at=now,
    )
    judged = Event(
        operation=operation,
        seq=2,
        event=event,
        from_state=states.PROPOSED,
        to_state=operation.state,
        actor_kind=states.POLICY,
        actor="policy",
        detail={"failed": judgement.failed_names(), "tier": judgement.tier},
        at=now,
    )
    Event.objects.bulk_create([proposed, judged])
    PolicyCheck.objects.bulk_create(
        PolicyCheck(
            operation=operation,
            position=position,
            name=check.name,
            passed=check.passed,
            says=check.says[:500],
            inputs=check.inputs,
        )
        for position, check in enumerate(judgement.checks, 1)
    )


def _record_call(
    request: ProposalRequest, caller: Caller, operation: Operation, *, created: bool
) -> None:
    Proposal.objects.create(
        operation=operation,
        agent=caller.agent,
        person=caller.person,
        session_id=request.session_id,
        tool_call_id=request.tool_call_id,
        arguments_digest=_digest(request, operation.payment.ref),
        created=created,
    )


__all__ = [
    "REASON_CODES",
    "Caller",
    "ProposalRequest",
    "Proposed",
    "propose",
]
