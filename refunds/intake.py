"""From a wish to an operation: recognise the same refund, judge, store. One transaction.

The same refund is recognised three ways, as `refunds.domain.sameness` declares them: the same
call, the same wish (request_ref), and an equivalent that is open or has ended lately.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from refunds import doorbell, intake_look, making_good, policies
from refunds import intake_refusals as refusals
from refunds.domain import fingerprint, sameness, states
from refunds.domain.contract import allowed
from refunds.domain.judging import judge
from refunds.domain.policy import Policy
from refunds.intake_facts import gather
from refunds.intake_look import OnPayment, Seen
from refunds.ledger.opening import open_operation
from refunds.models import (
    Operation,
    Order,
    Payment,
    Proposal,
)
from refunds.proposal import Caller, ProposalRequest, check_form
from refunds.providers import registry


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
    check_form(request)
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
                raise refusals.name_taken(request) from error
            raise


def _propose(request: ProposalRequest, caller: Caller) -> Proposed:
    now = timezone.now()
    policy = policies.current()
    entered = intake_look.enter(request, caller)
    if entered.known:
        return _same_call(request, caller)
    order = entered.order
    if order is None:
        raise refusals.order_unknown(request.order_ref)
    seen = intake_look.look(
        request,
        caller,
        order,
        since=now - timedelta(seconds=policy.sum_window_seconds),
        repeat_since=now - timedelta(seconds=policy.repeat_window_seconds),
    )
    # The twin of this very call may have committed while we waited for the order.
    if seen.known_call:
        return _same_call(request, caller)
    wish = _same_wish(request, order, caller) if seen.known_wish else None
    if wish is not None:
        _record_call(request, caller, wish)
        return Proposed(operation=wish, outcome="same")
    on = _payment(request, order, caller, seen)
    if on.live:
        _refuse_live_equivalent(request, on.payment)
    first = making_good.first_of(request, order, on.payment)
    done = _ended_equivalent(request, on.payment, policy, now) if on.ended else None
    asked_apart = request.separate_from is not None
    if done is not None and not asked_apart and not making_good.accounts_for(first, done):
        # The call is remembered: repeated when the window is over, it still wishes nothing new.
        _record_call(request, caller, done)
        return Proposed(operation=done, outcome="already_done")
    if first is not None and not asked_apart:
        # It has its own approval and its own key, and whoever approves says that it is no repeat.
        request = replace(request, separate_from=first.pk)
    operation = _create(request, caller, order, on, seen, done, first, policy, now)
    return Proposed(operation=operation, outcome="created")


def _digest(request: ProposalRequest, payment_ref: str) -> bytes:
    return fingerprint.arguments_digest(
        order_ref=request.order_ref,
        payment_ref=payment_ref,
        amount_minor=request.amount_minor,
        currency=request.currency,
        reason_code=request.reason_code,
    )


def _same_call(request: ProposalRequest, caller: Caller) -> Proposed:
    """What this very call was answered with (R3); raises Refusal when its arguments were others."""
    known = Proposal.objects.select_related("operation__payment", "operation__order").get(
        agent=caller.agent,
        person=caller.person,
        session_id=request.session_id,
        tool_call_id=request.tool_call_id,
    )
    # A payment that was left out is the one it was resolved to then.
    payment_ref = request.payment_ref or known.operation.payment.ref
    if bytes(known.arguments_digest) == _digest(request, payment_ref):
        done = _was_done(known, request)
        return Proposed(operation=known.operation, outcome="already_done" if done else "same")
    raise refusals.call_reused(request, known.operation)


def _was_done(call: Proposal, request: ProposalRequest) -> bool:
    """Whether the call met a refund that had ended, so that nothing was created for it."""
    met = call.operation
    ended = met.settled_at is not None and met.settled_at <= call.at
    return ended and not call.created and met.request_ref != request.request_ref


def _same_wish(request: ProposalRequest, order: Order, caller: Caller) -> Operation | None:
    """The operation of this request_ref on this order, whoever asks; for ever."""
    known = Operation.objects.select_related("payment", "order").get(
        order=order, request_ref=request.request_ref
    )
    if not caller.has_account(known.provider_account):
        return None
    same = (
        known.amount_minor == request.amount_minor
        and known.currency == request.currency
        and request.payment_ref in (None, known.payment.ref)
    )
    if same:
        return known
    raise refusals.wish_reused(request, known)


def _payment(request: ProposalRequest, order: Order, caller: Caller, seen: Seen) -> OnPayment:
    payments = [each for each in seen.payments if caller.has_account(each.payment.provider_account)]
    if seen.payments and not payments:
        # An order of other accounts is answered like one that does not exist.
        raise refusals.order_unknown(order.ref)
    if request.payment_ref is not None:
        payments = [each for each in payments if each.payment.ref == request.payment_ref]
        if not payments:
            raise refusals.payment_unknown(request.payment_ref, order.ref)
    elif len(payments) > 1:
        payments = [each for each in payments if each.payment.available_minor > 0] or payments
    if len(payments) != 1:
        raise refusals.payment_not_one(order.ref, len(payments))
    return payments[0]


def _refuse_live_equivalent(request: ProposalRequest, payment: Payment) -> None:
    live = Operation.objects.get(
        payment=payment, amount_minor=request.amount_minor, blocks_equivalent=True
    )
    if request.currency != payment.currency:
        return
    raise refusals.equivalent_unresolved(live, payment.ref)


def _ended_equivalent(
    request: ProposalRequest, payment: Payment, policy: Policy, now: datetime
) -> Operation | None:
    """The last equal refund of the payment that ended well within the window."""
    return (
        Operation.objects.select_related("payment", "order")
        .filter(
            order_id=payment.order_id,
            payment=payment,
            amount_minor=request.amount_minor,
            currency=request.currency,
            state__in=sameness.DONE_STATES,
            settled_at__gte=now - timedelta(seconds=policy.repeat_window_seconds),
        )
        .order_by("-settled_at")
        .first()
    )


def _create(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    on: OnPayment,
    seen: Seen,
    ended: Operation | None,
    first: Operation | None,
    policy: Policy,
    now: datetime,
) -> Operation:
    separate = _separate_from(request, order)
    facts = gather(
        request,
        caller,
        order,
        on,
        seen,
        ended_equivalent=str(ended.pk) if ended else None,
        machine_can_settle=_can_settle(on.payment.provider_account),
    )
    operation = open_operation(
        request,
        caller,
        on.payment,
        judge(facts, policy, now),
        number=seen.operations + 1,
        arguments_digest=_digest(request, on.payment.ref),
        policy=policy,
        now=now,
        separate=separate,
        remedy_of=first,
    )
    if operation.state == states.AUTHORIZED:
        doorbell.ring_send(operation.pk)
    return operation


def _can_settle(account: str) -> bool:
    return allowed(registry.account(account).contract).can_settle


def _separate_from(request: ProposalRequest, order: Order) -> Operation | None:
    if request.separate_from is None:
        return None
    other = Operation.objects.filter(order=order, pk=request.separate_from).first()
    if other is None:
        raise refusals.separate_from_unknown(order.ref)
    return other


def _record_call(request: ProposalRequest, caller: Caller, operation: Operation) -> None:
    """The call as one that an operation which was there already stands for."""
    Proposal.objects.create(
        operation=operation,
        agent=caller.agent,
        person=caller.person,
        session_id=request.session_id,
        tool_call_id=request.tool_call_id,
        arguments_digest=_digest(request, operation.payment.ref),
        created=False,
    )


__all__ = [
    "Caller",
    "ProposalRequest",
    "Proposed",
    "propose",
]
