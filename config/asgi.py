"""One ASGI process: the console and the agents' REST door."""

import os
from concurrent.futures import ThreadPoolExecutor

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_asgi_application()

# Importing the Celery app connects the bell, so that an approval rings the money queue.
from django.conf import settings  # noqa: E402

import config.celery  # noqa: E402, F401
from refunds.checks import require_trustworthy_database  # noqa: E402

if settings.PRODUCTION:
    # The server imports this module inside its event loop, where Django's database may not be
    # asked; a thread of its own has no loop.
    with ThreadPoolExecutor(1) as once:
        once.submit(require_trustworthy_database).result()
