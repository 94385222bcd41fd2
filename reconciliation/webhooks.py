"""The door for notices: verify the raw bytes, store, acknowledge. Nothing here touches money.

200 only after the notice is committed; what was not stored is answered with 503, so that the
provider sends it again. What became of it is `reconciliation.notices`.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from reconciliation import inbox
from refunds import doorbell
from refunds.domain.errors import Refusal
from refunds.providers import registry
from refunds.providers.base import Account, NotOneRecord
from refunds.providers.signatures import NotGenuine, verify

log = structlog.get_logger(__name__)


@csrf_exempt
@require_POST
def receive(request: HttpRequest, account: str) -> HttpResponse:
    """`POST /webhooks/{account}`: 200 stored, 400 bad signature, time or body, 404 no such
    account or none that sends notices, 413 too large, 503 not stored."""
    try:
        return _received(request, account)
    except Refusal as refused:
        return _said(refused.status, refused.code, refused.detail, refused.what_to_do)
    except (DatabaseError, InterfaceError) as error:
        log.error("notice_not_stored", account=account, error=type(error).__name__)
        return _said(
            503,
            "not_stored",
            "The notice could not be stored.",
            "Send the same notice again later.",
        )


def _received(request: HttpRequest, name: str) -> HttpResponse:
    arrived_at = timezone.now()
    account = _account(name)
    body = request.read(settings.LIMITS.notice_bytes_max + 1)
    adapter = registry.adapter(account)
    try:
        if len(body) > settings.LIMITS.notice_bytes_max:
            raise _Turned(
                "too_large",
                f"A notice has at most {settings.LIMITS.notice_bytes_max} bytes.",
                413,
            )
        signed_at = verify(
            request.headers.get(adapter.signature_header, ""),
            body,
            account.webhook_secrets,
            arrived_at=arrived_at,
            tolerance_seconds=settings.LIMITS.notice_tolerance_seconds,
        )
        told = adapter.read_notice(body)
    except _Turned as turned:
        return _turned_away(account, turned.kind, str(turned), turned.status)
    except NotGenuine as false:
        return _turned_away(account, false.kind, str(false))
    except NotOneRecord as odd:
        return _turned_away(account, "unreadable", f"The notice is not readable: {odd}.")
    stored = inbox.store(account, told, body, signed_at=signed_at, arrived_at=arrived_at)
    if stored.is_new:
        log.info(
            "notice_stored",
            account=account.name,
            notice=stored.id,
            event_id=told.event_id,
            verdict=stored.verdict,
        )
        doorbell.ring_notice(stored.id)
    return JsonResponse({"stored": True})


class _Turned(Exception):
    def __init__(self, kind: str, because: str, status: int) -> None:
        super().__init__(because)
        self.kind, self.status = kind, status


def _account(name: str) -> Account:
    account = registry.accounts().get(name)
    if account is None:
        raise Refusal(
            "account_unknown",
            "There is no such provider account here.",
            status=404,
            what_to_do="Check the address that is registered at the provider.",
        )
    if account.contract.notice == "none":
        raise Refusal(
            "no_notices",
            f"{name} is an account without notices.",
            status=404,
            what_to_do="Remove this address at the provider, or choose a contract with notices.",
        )
    if not account.webhook_secrets:
        variable = f"AFTERSEND_PROVIDER_{name.upper().replace('-', '_')}_WEBHOOK_SECRETS"
        log.error("webhook_secret_missing", account=name)
        raise Refusal(
            "secret_missing",
            f"No secret is set here for the notices of {name}, so none can be believed.",
            status=503,
            what_to_do=f"Set {variable} and restart; the provider sends them again.",
        )
    return account


def _turned_away(account: Account, reason: str, because: str, status: int = 400) -> HttpResponse:
    """Counted for whoever watches, and not kept: nobody vouches for what it says."""
    inbox.count_refused(account.name, reason, timezone.now())
    log.warning("notice_refused", account=account.name, reason=reason)
    return _said(status, reason, because, "Check the secret, the clock and the body that is sent.")


def _said(status: int, code: str, detail: str, what_to_do: str) -> HttpResponse:
    words: dict[str, Any] = {"code": code, "detail": detail, "what_to_do": what_to_do}
    response = JsonResponse(words, status=status)
    if status == 503:
        response["Retry-After"] = "60"
    return response
