"""The policy in force: the parsed file, read once per process."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from refunds.domain.policy import Policy, PolicyUnreadable, parse


@cache
def current() -> Policy:
    """The policy of AFTERSEND_POLICY_FILE; raises ImproperlyConfigured naming the wrong value."""
    try:
        return parse(settings.POLICY_FILE.read_bytes())
    except (OSError, PolicyUnreadable) as error:
        raise ImproperlyConfigured(f"{settings.POLICY_FILE}: {error}") from error
