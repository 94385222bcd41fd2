"""/metrics, for a machine that gathers them: a bearer token, and off without one."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from reconciliation import exposition


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text. 404 while AFTERSEND_METRICS_TOKEN is not set, 401 for another token."""
    if not settings.METRICS_TOKEN:
        raise Http404
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode()):
        refused = HttpResponse(
            "The token is missing or another one.\n", content_type="text/plain", status=401
        )
        refused["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    return HttpResponse(exposition.text(), content_type="text/plain; version=0.0.4; charset=utf-8")
