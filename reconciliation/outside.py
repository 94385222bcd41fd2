"""Learning of a refund that a provider shows, whoever heard of it first.

A list, a notice and a person's look all come here, so that one refund counts once, moves the
order once and asks a person once. A refund of our own is never decided here: its operation is
made due, and a lookup decides.
"""

from __future__ import annotations

from enum import Enum, auto
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from reconciliation.cases import open_payment_case
from reconciliation.models import Case
from refunds import doorbell, policies
from refunds.domain import states
from refunds.domain.money import display
from refunds.domain.outcome import RefundRecord
from refunds.ledger import RECONCILER, bump, lock
from refunds.ledger.external import Learned, count, learn_shown, lock_payments
from refunds.models import Evidence, Operation, Payment, ProviderRefund, UnplacedRefund
from refunds.providers import registry
from refunds.providers.account_list import ListedRefund

# A refund that shows up while its operation waits may be sent a second time: stopped at once.
_MAY_BE_SENT = frozenset({states.AUTHORIZED, states.AWAITING_APPROVAL})


class Heard(Enum):
    """What a reading of one refund turned out to be."""

    KNOWN = auto()
    OURS = auto()
    NEW = auto()
    FOLLOWED = auto()
    UNPLACED = auto()


def learn(account: str, listed: ListedRefund) -> Heard:
    """Take in one refund as the provider shows it; call outside any transaction.

    OURS: it carries a marker or reference of ours and says something else than our record, so its
    operation is looked up now. NEW: nobody here made it; it counts, and a person is asked unless
    the account says otherwise. FOLLOWED: a known one turned out differently. UNPLACED: remembered
    until its payment is fed.
    """
    operation = operation_of(account, listed)
    if operation is not None:
        return _ours(operation, listed.record)
    payment = payment_of(account, listed.payment_refs)
    if payment is None:
        return _remember(account, listed)
    return _outside(payment, listed.record)


def operation_of(account: str, listed: ListedRefund) -> Operation | None:
    """The operation whose reference or marker this refund carries, on the payment it is of."""
    row = (
        ProviderRefund.objects.filter(provider_account=account, ref=listed.record.ref)
        .exclude(operation=None)
        .select_related("operation")
        .first()
    )
    if row is not None:
        return row.operation
    try:
        marker = UUID(listed.record.marker or "")
    except ValueError:
        return None
    return Operation.objects.filter(
        pk=marker, provider_account=account, payment__ref__in=listed.payment_refs
    ).first()


def payment_of(account: str, payment_refs: tuple[str, ...]) -> Payment | None:
    """The payment that has one of these names."""
    return Payment.objects.filter(provider_account=account, ref__in=payment_refs).first()


def agrees(operation: Operation, row: ProviderRefund | None, record: RefundRecord) -> bool:
    """Whether this refund is what our record of the operation says already.

    `row` is the stored refund of this reference, if there is one. While a send is in flight its
    own answer comes first, and a lookup follows if it does not.
    """
    words = registry.adapter(registry.account(operation.provider_account)).words
    status = record.provider_status
    if operation.state == states.SUBMITTING:
        return True
    if operation.state == states.PENDING:
        return row is not None and status in words.pending
    if operation.state in (states.FAILED, states.RETURNED):
        return status in words.failed
    if operation.state in (states.SUCCEEDED, states.MISMATCHED):
        if row is None or record.amount_minor != row.amount_minor:
            return False
        return status in (words.succeeded if row.counts else words.failed)
    return False


def _ours(operation: Operation, record: RefundRecord) -> Heard:
    """Have the operation looked up at once if the refund says something new; nothing is decided."""
    with transaction.atomic():
        held = lock(operation.pk).operation
        row = ProviderRefund.objects.filter(operation=held, ref=record.ref).first()
        if agrees(held, row, record):
            return Heard.KNOWN
        _store_listing(held, record)
        sets = {"halted": True} if held.state in _MAY_BE_SENT else {}
        Operation.objects.filter(pk=held.pk).update(due_at=timezone.now(), **sets)
        doorbell.ring_lookup(held.pk)
    return Heard.OURS


def _store_listing(operation: Operation, record: RefundRecord) -> None:
    """What the list showed is evidence; once for each status of each refund."""
    shown = Evidence.objects.filter(operation=operation, kind="listing", facts__ref=record.ref)
    last = shown.order_by("-pk").first()
    if last is not None and last.facts["provider_status"] == record.provider_status:
        return
    Evidence.objects.create(
        operation=operation,
        kind="listing",
        started_at=timezone.now(),
        body=b"",
        facts={
            "ref": record.ref,
            "provider_status": record.provider_status,
            "amount_minor": record.amount_minor,
            "currency": record.currency,
            "payment_ref": record.payment_ref,
            "marker": record.marker,
            "created_at": record.created_at.isoformat() if record.created_at else None,
            "method": "list of the account's refunds",
        },
    )


def _remember(account: str, listed: ListedRefund) -> Heard:
    record = listed.record
    told = {
        "payment_refs": list(listed.payment_refs),
        "amount_minor": record.amount_minor,
        "currency": record.currency or "",
        "provider_status": record.provider_status,
        "marker": record.marker or "",
    }
    _, created = UnplacedRefund.objects.update_or_create(
        provider_account=account,
        ref=record.ref,
        defaults=told,
        create_defaults={**told, "provider_created_at": record.created_at},
    )
    return Heard.UNPLACED if created else Heard.KNOWN


def _outside(payment: Payment, record: RefundRecord) -> Heard:
    with transaction.atomic():
        row = ProviderRefund.objects.filter(
            provider_account=payment.provider_account, ref=record.ref
        ).first()
        fed_for = row.payment if row is not None else payment
        payments = lock_payments(payment, fed_for)
        payment = payments[payment.pk]
        if row is not None:
            row.refresh_from_db()  # under the locks: a lookup may have found it to be ours
            if row.operation_id is not None:
                return Heard.KNOWN
        if record.currency != payment.currency or record.amount_minor is None:
            return _cannot_be_counted(payment, record)
        if row is not None and row.payment_id != payment.pk:
            _move(row, payments[row.payment_id], payment)
        learned = learn_shown(payment, record)
        if learned.changed:
            _bump(payment, record, learned)
        if not learned.created:
            return Heard.FOLLOWED if learned.changed else Heard.KNOWN
        if learned.after_minor:
            ask_a_person(payment, record)
    return Heard.NEW


def _move(row: ProviderRefund, fed_for: Payment, payment: Payment) -> None:
    """It was fed for another payment than it left: the provider's word outranks the feed's."""
    counted_minor = row.amount_minor if row.counts else 0
    count(fed_for, -counted_minor)
    ProviderRefund.objects.filter(pk=row.pk).update(payment=payment, counts=False)
    if fed_for.order_id != payment.order_id and counted_minor:
        bump(
            fed_for.order,
            "difference",
            by=RECONCILER,
            amount_minor=counted_minor,
            detail={"ref": row.ref, "left_payment": payment.ref, "fed_payment": fed_for.ref},
        )


def _bump(payment: Payment, record: RefundRecord, learned: Learned) -> None:
    """The order moves by what changed: first seen, counted again or otherwise, or come back."""
    back = learned.before_minor > 0 and learned.after_minor == 0
    bump(
        payment.order,
        "taken_back" if back else "external",
        by=RECONCILER,
        amount_minor=learned.before_minor if back else learned.after_minor,
        detail={"ref": record.ref, "external": [record.ref], "payment": payment.ref},
    )


def _cannot_be_counted(payment: Payment, record: RefundRecord) -> Heard:
    """No amount in the payment's currency: nothing is guessed, nothing is sent, a person looks."""
    amount = f"{record.amount_minor} {record.currency}" if record.amount_minor else "no amount"
    because = (
        f"{record.ref} was refunded elsewhere, and it shows {amount}: it cannot be counted in"
        f" {payment.currency}."
    )
    # Nothing is booked of it, so its case is what says that people were asked, and answered.
    if Case.objects.filter(payment=payment, operation=None, because=because).exists():
        return Heard.KNOWN
    open_payment_case(payment, "external", because)
    return Heard.NEW


def ask_a_person(payment: Payment, record: RefundRecord) -> None:
    """Open the case about a refund that nobody here made; locks are the caller's.

    Not where the account, or else the policy, says that such refunds are only listed for now.
    """
    account = registry.account(payment.provider_account)
    rule = account.external_refunds or policies.current().external_refunds
    made_at = record.created_at or timezone.now()
    if not rule.asks_a_person(made_at):
        return
    amount = display(record.amount_minor or 0, payment.currency)
    open_payment_case(
        payment,
        "external",
        f"{record.ref}: {amount} was refunded at the provider on {made_at:%Y-%m-%d at %H:%M} UTC,"
        " and nobody here made it.",
    )


def conclude_placed(batch_max: int) -> int:
    """Do what follows from refunds that were known before their payment was fed; returns how many.

    The feed has counted those that count; a refund of our own is looked up, and of the others a
    person is asked, unless the feed itself named them.
    """
    waiting = UnplacedRefund.objects.exclude(placed_at=None).filter(concluded_at=None)
    done = 0
    for each in waiting.order_by("pk")[:batch_max]:
        _conclude(each)
        done += 1
    return done


def _conclude(waiting: UnplacedRefund) -> None:
    listed = ListedRefund(
        record=RefundRecord(
            ref=waiting.ref,
            payment_ref=waiting.payment_refs[0],
            amount_minor=waiting.amount_minor,
            currency=waiting.currency or None,
            provider_status=waiting.provider_status,
            marker=waiting.marker or None,
            created_at=waiting.provider_created_at,
        ),
        payment_refs=tuple(waiting.payment_refs),
    )
    learn(waiting.provider_account, listed)
    with transaction.atomic():
        known = payment_of(waiting.provider_account, listed.payment_refs)
        if known is not None and not waiting.explained:
            [payment] = lock_payments(known).values()
            counts = ProviderRefund.objects.filter(
                provider_account=waiting.provider_account, ref=waiting.ref, operation=None
            ).filter(counts=True)
            if counts.exists():
                ask_a_person(payment, listed.record)
        UnplacedRefund.objects.filter(pk=waiting.pk).update(concluded_at=timezone.now())
