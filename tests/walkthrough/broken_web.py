"""The web program with one guard out: a notice is acknowledged whether it could be stored or not.

Served as `tests.walkthrough.broken_web:application` instead of `config.asgi:application`.
"""

from __future__ import annotations

from config.asgi import application
from tests.notices.broken import ack_before_store

ack_before_store()

__all__ = ["application"]
