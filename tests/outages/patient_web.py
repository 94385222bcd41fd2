"""The web program with one guard out: whoever wants a connection waits for it, however long.

Served as `tests.outages.patient_web:application` instead of `config.asgi:application`.
"""

from __future__ import annotations

from django.conf import settings

from config.asgi import application

settings.DATABASES["default"]["OPTIONS"]["pool"]["timeout"] = 600

__all__ = ["application"]
