"""One ASGI process: the console and the agents' REST door."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_asgi_application()

# Importing the Celery app connects the bell, so that an approval rings the money queue.
import config.celery  # noqa: E402, F401
