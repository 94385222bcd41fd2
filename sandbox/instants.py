"""Instants of the control clock: whole microseconds since 1970, UTC."""

from datetime import UTC, datetime

MICROSECONDS = 1_000_000


def span(seconds: float) -> int:
    """A duration in seconds as microseconds of the control clock."""
    return round(seconds * MICROSECONDS)


def iso(at: int) -> str:
    """ISO 8601 in UTC with milliseconds, for example ``2026-11-29T14:03:00.125Z``."""
    whole, rest = divmod(at, MICROSECONDS)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest // 1000:03d}Z"
