"""What an operation is for life: its id, its keys, and the bytes that would be sent."""

from __future__ import annotations

from typing import Any

import uuid_utils.compat as uuids

from refunds.domain import fingerprint, wish
from refunds.models import Order, Payment
from refunds.providers import registry
from refunds.providers.base import Wish


def mint(
    payment: Payment, *, amount_minor: int, currency: str, reason_code: str, request_ref: str
) -> dict[str, Any]:
    """The columns of a new operation that never change; `payment` has its order loaded.

    Raises Refusal where the provider cannot express the amount.
    """
    operation_id = uuids.uuid7()
    business_key = business_key_of(payment.order, request_ref)
    body = registry.adapter(registry.account(payment.provider_account)).body(
        Wish(
            marker=str(operation_id),
            payment_ref=payment.ref,
            amount_minor=amount_minor,
            currency=currency,
            reason_code=reason_code,
        )
    )
    sealed = fingerprint.material_digest(
        operation_id=operation_id,
        business_key=business_key,
        provider_account=payment.provider_account,
        payment_ref=payment.ref,
        amount_minor=amount_minor,
        currency=currency,
        reason_code=reason_code,
        body=body,
    )
    return {
        "id": operation_id,
        "business_key": business_key,
        "order": payment.order,
        "payment": payment,
        "provider_account": payment.provider_account,
        "amount_minor": amount_minor,
        "currency": currency,
        "reason_code": reason_code,
        "request_ref": request_ref,
        "provider_key": fingerprint.provider_key(operation_id),
        "body": body,
        "fingerprint": sealed,
    }


def business_key_of(order: Order, request_ref: str) -> str:
    """What one wish of one order is called, for life."""
    return wish.business_key(order.ref, request_ref)
