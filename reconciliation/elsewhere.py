"""Notices of refunds that nobody here made: read back from the provider, then learnt as it shows.

The notice is a hint here too: what counts is what a list shows that was read after it. Only where
nobody can be asked does the verified notice itself say what there is.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from reconciliation import inbox, outside
from reconciliation.models import Notice
from refunds.domain.outcome import RefundRecord
from refunds.models import Payment, ProviderRefund
from refunds.providers import registry
from refunds.providers.account_list import ListedRefund
from refunds.providers.listing import read_payment


def learn_of(notice: Notice) -> tuple[UUID | None, bool]:
    """Take in the refund that a notice tells of on a payment that we know; asks the provider.

    Returns the operation that turns out to have made it, if one has, for that one is looked up;
    and whether the refund is in our books now as nobody's here. Call outside any transaction.
    """
    payment = outside.payment_of(notice.provider_account, tuple(notice.facts["payment_refs"]))
    if payment is None or _is_known(notice):
        return None, payment is not None
    record = _shown(notice, payment)
    if record is None:
        return None, False
    listed = ListedRefund(record=record, payment_refs=(payment.ref,))
    operation = outside.operation_of(notice.provider_account, listed)
    if operation is not None:
        return operation.pk, False
    outside.learn(notice.provider_account, listed)
    return None, True


def _is_known(notice: Notice) -> bool:
    """Whether what a notice tells of stands in our books as nobody's here, with that status."""
    return ProviderRefund.objects.filter(
        provider_account=notice.provider_account,
        ref=notice.facts.get("ref"),
        operation=None,
        provider_status=notice.facts.get("provider_status"),
    ).exists()


def _shown(notice: Notice, payment: Payment) -> RefundRecord | None:
    """The refund as the provider shows it now, or None where it does not."""
    account = registry.account(notice.provider_account)
    told = inbox.record_of(notice)
    if told is None:
        return None
    if inbox.is_proof(account.contract):
        whole = told.amount_minor is not None and told.currency is not None
        return told if whole and told.ref != told.payment_ref else None
    if account.contract.lookup == "none" or not account.credential:
        return None
    listing = read_payment(
        account,
        payment.ref,
        known_ref=None,
        pages_max=settings.LIMITS.lookup_pages_max,
        total_seconds=settings.LIMITS.call_total_seconds,
        body_bytes_max=settings.LIMITS.answer_bytes_max,
    )
    return next((each for each in listing.records if each.ref == told.ref), None)
