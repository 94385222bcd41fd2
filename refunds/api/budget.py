"""How often one session may ask for one refund: an agent that polls is told to stop and speak.

Counted in the shared cache, so that all processes count together.
"""

from __future__ import annotations

import time
from uuid import UUID

import structlog
from django.conf import settings
from django.core.cache import cache

from refunds.models import Credential

log = structlog.get_logger(__name__)


def spend(credential: Credential, operation_id: UUID, session_id: str | None) -> int | None:
    """Count one status call; None while it is within the budget, else the seconds until it ends.

    The budget is of one refund and one session of the agent, or of the credential where no session
    is named. It begins with the first call and ends `status_calls_seconds` later.
    """
    session = f"{credential.agent_id}:{session_id}" if session_id else f"key-{credential.pk}"
    key = f"api-asked:{operation_id}:{session}"
    window = settings.LIMITS.status_calls_seconds
    now = int(time.time())
    try:
        cache.add(key, now, timeout=window)
        since = cache.get(key, now)
        counted = f"{key}:{since}"
        cache.add(counted, 0, timeout=window + 1)
        asked = cache.incr(counted)
    except Exception as error:
        # Whatever the cache's library raises: the budget spares us calls, it protects no money.
        log.warning("status_calls_not_counted", error=repr(error))
        return None
    if asked <= settings.LIMITS.status_calls_max:
        return None
    return max(1, int(since) + window - now)
