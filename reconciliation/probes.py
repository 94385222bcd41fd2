"""Whether a paused account may go on: a reading question, never a send."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from django.conf import settings

from refunds.domain import states
from refunds.ledger import connections
from refunds.ledger.sending import end_pause
from refunds.models import Operation, Payment, ProviderAccount
from refunds.providers import http, registry

log = structlog.get_logger(__name__)


def probe_accounts(now: datetime) -> list[str]:
    """Ask each account whose outage pause is due; returns the names that may send again.

    Any answer over HTTP shows that the outage is over: what it says about the credential is for
    the next send to learn, which pauses the account again if it must.
    """
    started = []
    for row in ProviderAccount.objects.filter(pause_kind="no_credential"):
        if row.name in registry.accounts() and registry.account(row.name).credential:
            end_pause(row.name, kind="no_credential")
            started.append(row.name)
    due = ProviderAccount.objects.filter(pause_kind="outage", probe_at__lte=now)
    for row in due:
        if _answers(row.name):
            end_pause(row.name, kind="outage")
            started.append(row.name)
        else:
            again = now + timedelta(seconds=settings.LIMITS.probe_again_seconds)
            ProviderAccount.objects.filter(pk=row.pk).update(probe_at=again)
    for name in started:
        log.info("account_sends_again", account=name)
        _make_due(name, now)
    return started


def _answers(name: str) -> bool:
    account = registry.account(name)
    payment = Payment.objects.filter(provider_account=name).order_by("pk").first()
    if payment is None or not account.credential:
        return False
    connections.let_go()
    raw = http.call(
        registry.adapter(account).list_refunds(account, payment.ref, None),
        total_seconds=settings.LIMITS.call_total_seconds,
        body_bytes_max=settings.LIMITS.answer_bytes_max,
    )
    return raw.status is not None and raw.status < 500


def _make_due(name: str, now: datetime) -> None:
    Operation.objects.filter(
        provider_account=name, state=states.AUTHORIZED, due_at__isnull=False
    ).update(due_at=now)
