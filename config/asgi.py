"""One ASGI process: the console, the agents' REST door, and their MCP door beside it."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Each request runs in a thread of its own here, so connections are shared: kept per thread they
# would outlive their threads and use up what the database allows.
os.environ.setdefault("AFTERSEND_DATABASE_POOL", "24")
_django = get_asgi_application()

# Importing the Celery app connects the bell, so that an approval rings the money queue.
from django.conf import settings  # noqa: E402

import config.celery  # noqa: E402, F401
from config.capped import Capped  # noqa: E402
from refunds.api import mcp  # noqa: E402
from refunds.checks import require_trustworthy_database  # noqa: E402

if settings.PRODUCTION:
    # The server imports this module inside its event loop, where Django's database may not be
    # asked; a thread of its own has no loop.
    with ThreadPoolExecutor(1) as once:
        once.submit(require_trustworthy_database).result()

_tools = mcp.mcp_app()
_notices = Capped(_django, settings.LIMITS.notice_bytes_max)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """MCP at its one path; the process's lifespan is MCP's too, for Django knows none."""
    if scope["type"] == "lifespan" or scope["path"] == mcp.PATH:
        await _tools(scope, receive, send)
    elif scope["path"].startswith("/webhooks/"):
        await _notices(scope, receive, send)
    else:
        await _django(scope, receive, send)
