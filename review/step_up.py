"""Confirm it is you: some acts need a proof that is not older than five minutes.

The proof is the newest record of a second factor in this session; while second factors are off
(demo and tests), the newest record of a password. Stock re-authentication would take a password.
"""

from __future__ import annotations

import time

from allauth.account.internal.flows.login import get_authentication_records
from django.conf import settings
from django.http import HttpRequest

from review import proof

STEP_UP_SECONDS = 300
_TIER_WITHOUT = 1
_FACTOR = ("mfa",)
_ANY = ("mfa", "password", "socialaccount")


class StepUpNeeded(Exception):
    """The act may be done by this person, once they have confirmed that it is them.

    The console answers 403 `step_up_needed` with a form in place; nothing was executed.
    """

    def __init__(self, words: str) -> None:
        super().__init__(f"Confirm that it is you, to {words}.")
        self.words = words


def left_seconds(request: HttpRequest) -> int:
    """Whole seconds for which this session's newest proof still counts; 0 for none."""
    return _left(request, _FACTOR if settings.SECOND_FACTOR else _ANY)


def require(request: HttpRequest, words: str) -> None:
    """Raise StepUpNeeded unless a proof is fresh; `words` completes "Confirm ... to"."""
    if not left_seconds(request):
        raise StepUpNeeded(words)


def require_for_tier(request: HttpRequest, tier: int) -> None:
    """Approving above tier 1 needs a fresh proof."""
    if tier > _TIER_WITHOUT:
        require(request, "approve it: it is above tier 1")


def require_for_own_account(request: HttpRequest, words: str) -> None:
    """The same for one's own factors and password: who has no factor yet confirms by signing in."""
    person = request.user
    assert person.is_authenticated
    if not _left(request, _FACTOR if proof.enrolled(person) else _ANY):
        raise StepUpNeeded(words)


def _left(request: HttpRequest, methods: tuple[str, ...]) -> int:
    if not request.user.is_authenticated:
        return 0
    newest = max(
        (
            float(record["at"])
            for record in get_authentication_records(request, request.user)
            if record["method"] in methods
        ),
        default=0.0,
    )
    return max(0, int(newest + STEP_UP_SECONDS - time.time()))
