"""One of everything that lists, notices and settlement reports can tell of, as rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from reconciliation.cases import open_payment_case
from reconciliation.models import AccountSweep, Case, Notice, NoticeRefused, SettlementLine
from refunds.models import Dispute, Payment, ProviderRefund, UnplacedRefund


def everything(payment: Payment) -> Case:
    """Beside a payment of plain-main; returns the case about what was made elsewhere."""
    case = open_payment_case(payment, "external", "rf_made_elsewhere is not ours.")
    assert case is not None
    _lists(payment)
    _notices(payment, case)
    _settlement(payment)
    return case


def _lists(payment: Payment) -> None:
    now = timezone.now()
    account = payment.provider_account
    read: dict[str, Any] = {"covered_from": now - timedelta(days=1), "covered_until": now}
    AccountSweep.objects.create(
        provider_account=account, kind="recent", due_at=now, completed_at=now, **read
    )
    AccountSweep.objects.create(
        provider_account=account,
        kind="deep",
        due_at=now + timedelta(hours=1),
        began_at=now,
        page_count=3,
        because="the provider answered HTTP 503",
    )
    ProviderRefund.objects.create(
        provider_account=account,
        ref="rf_made_elsewhere",
        payment=payment,
        amount_minor=3000,
        provider_status="succeeded",
        counts=True,
        shown_at=now,
    )
    UnplacedRefund.objects.create(
        provider_account=account,
        ref="rf_unplaced",
        payment_refs=["pi_nobody"],
        amount_minor=1100,
        currency="USD",
        provider_status="succeeded",
    )
    Dispute.objects.create(
        provider_account=account,
        ref="dp_1",
        payment=payment,
        payment_refs=[payment.ref],
        amount_minor=12900,
        currency="USD",
        standing="open",
        provider_status="needs_response",
    )


def notice(account: str, event_id: str, **more: Any) -> Notice:
    """One that nothing explains, parked an hour ago; `more` is what differs."""
    now = timezone.now()
    facts = {
        "ref": "rf_unheard",
        "payment_ref": "pi_nobody",
        "payment_refs": ["pi_nobody"],
        "amount_minor": 7900,
        "currency": "USD",
        "provider_status": "succeeded",
        "marker": None,
    }
    values: dict[str, Any] = {
        "kind": "refund.updated",
        "verdict": "genuine",
        "body": b"{}",
        "digest": event_id.encode(),
        "facts": facts,
        "signed_at": now,
        "arrived_at": now - timedelta(hours=1),
        "due_at": now + timedelta(minutes=20),
        "tries": 4,
    }
    return Notice.objects.create(provider_account=account, event_id=event_id, **(values | more))


def _notices(payment: Payment, case: Case) -> None:
    now, account = timezone.now(), payment.provider_account
    notice(account, "ev_parked", case=case)
    notice(account, "ev_failing", failures=2)
    notice(account, "ev_foreign", verdict="foreign", due_at=None, applied_at=now, outcome="foreign")
    NoticeRefused.objects.create(provider_account=account, reason="forged", minute=now, count=3)


def _settlement(payment: Payment) -> None:
    values: dict[str, Any] = {
        "provider_account": payment.provider_account,
        "payment_ref": payment.ref,
        "currency": "USD",
        "provider_status": "succeeded",
        "report_ref": "po_november",
    }
    SettlementLine.objects.create(
        **values,
        provider_refund_ref="rf_made_elsewhere",
        amount_minor=3100,
        verdict="different",
        because="The settlement report po_november differs about rf_made_elsewhere: 31.00 USD"
        " instead of 30.00 USD.",
    )
    SettlementLine.objects.create(
        **values, provider_refund_ref="rf_ours", amount_minor=500, verdict="match"
    )
