"""Start what the settings point at, where it is ours to start."""

from __future__ import annotations

from config import embedded, settings


def ensure_servers() -> None:
    """Start or reuse the embedded PostgreSQL and Valkey, unless their URLs are set."""
    if not settings.ENV.database_url:
        embedded.Postgres(settings.HOME, durable=not settings.TESTING).ensure("aftersend")
    if not (settings.ENV.celery_broker_url and settings.ENV.cache_url):
        embedded.Valkey(settings.HOME).ensure()
