"""The web program with one guard out, to see the hammering notice: `BREAK=same-call`.

Served as `tests.bad_agent.broken:application` instead of `config.asgi:application`.
"""

from __future__ import annotations

from config.asgi import application
from refunds import intake

# A repeated call is not recognised any more, and neither is an equal refund that is not ended.
intake._same_call = lambda request, caller: None
intake._refuse_live_equivalent = lambda request, payment: None

__all__ = ["application"]
