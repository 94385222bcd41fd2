"""The web program with one guard out, to see the hammering notice: `BREAK=same-call`.

Served as `tests.bad_agent.broken:application` instead of `config.asgi:application`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from config.asgi import application
from refunds import intake_look
from refunds.intake_look import Entered, Seen
from refunds.models import Order
from refunds.proposal import Caller, ProposalRequest

_enter, _look = intake_look.enter, intake_look.look


def _as_if_new(request: ProposalRequest, caller: Caller) -> Entered:
    """A repeated call is not recognised any more."""
    return _enter(replace(request, tool_call_id=uuid4().hex), caller)


def _as_if_alone(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    *,
    since: datetime,
    repeat_since: datetime,
) -> Seen:
    """Neither is it on the second look, nor an equal refund that is not ended."""
    seen = _look(request, caller, order, since=since, repeat_since=repeat_since)
    payments = tuple(replace(each, live=False) for each in seen.payments)
    return replace(seen, known_call=False, payments=payments)


intake_look.enter = _as_if_new
intake_look.look = _as_if_alone

__all__ = ["application"]
