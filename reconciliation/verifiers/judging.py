"""Whether a state agrees with the newest thing that the provider showed about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from refunds.domain import states
from refunds.providers.base import StatusWords

_NO_MONEY = frozenset(
    {
        states.AWAITING_APPROVAL,
        states.AUTHORIZED,
        states.DENIED,
        states.REJECTED,
        states.WITHDRAWN,
        states.EXPIRED,
        states.FAILED,
    }
)
_PAID = frozenset({states.SUCCEEDED, states.MISMATCHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One operation beside its newest finding. `ours`: the candidates that are ours, as stored.

    `quiet_at`: after it a complete list that does not show the refund proves that it is not
    there; None where the contract never proves that.
    """

    state: str
    booked_ref: str
    verdict: str
    ours: list[dict[str, Any]]
    looked_at: datetime
    quiet_at: datetime | None


def contradiction(seen: Seen, words: StatusWords) -> str:
    """What the finding says against the state, as the end of "It is ..., and ..."; "" if nothing."""
    if seen.verdict == "duplicate":
        # What came back since was recovered: it is the one that stands that counts.
        standing = [each for each in seen.ours if each["provider_status"] not in words.failed]
        if len(standing) != 1:
            refs = ", ".join(str(each["ref"]) for each in seen.ours)
            return f"the provider shows more than one refund of it: {refs}"
        seen = replace(seen, ours=standing)
    if seen.verdict in ("match", "differs", "duplicate") and seen.ours:
        return _beside_refund(seen, words)
    gone = seen.verdict == "absent" and seen.state == states.SUCCEEDED
    if gone and seen.quiet_at is not None and seen.looked_at > seen.quiet_at:
        return "a complete list, asked late enough, does not show it"
    return ""


def _beside_refund(seen: Seen, words: StatusWords) -> str:
    ref, status = str(seen.ours[0]["ref"]), str(seen.ours[0]["provider_status"])
    if seen.state in _NO_MONEY and status not in words.failed:
        return f"the provider shows {ref} as {status}"
    if seen.state in _PAID:
        if status in words.failed:
            return f"the provider shows {ref} as {status}"
        if seen.booked_ref and seen.booked_ref != ref:
            return f"it is booked as {seen.booked_ref}, and the provider shows {ref}"
    if seen.state == states.SUCCEEDED and seen.verdict == "differs":
        return f"{ref} at the provider is not as we asked for it"
    return ""
