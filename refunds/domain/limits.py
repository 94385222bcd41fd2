"""The engine's own constants, with their defaults. Durations are seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Values that a test or demo environment may shorten; the rules stay the same."""

    send_deadline_seconds: float = 2
    call_total_seconds: float = 30
    lease_seconds: float = 60
    skew_seconds: int = 5
    send_delay_seconds: float = 10
    not_sent_backoff_seconds: tuple[int, ...] = (5, 30, 120, 600)
    not_sent_in_row_max: int = 3
    probe_after_seconds: int = 60
    probe_again_seconds: int = 300
    answer_bytes_max: int = 262_144
    attempts_max: int = 5
    resend_after_lookups: int = 2
    lookup_fresh_seconds: int = 60
    approval_left_seconds: int = 600
    inconclusive_lookups_max: int = 3
    escalation_age_seconds: int = 86_400
    poison_failures_max: int = 3
    lookup_with_case_seconds: int = 3600
    sweep_batch_max: int = 200
    lookup_pages_max: int = 50
    list_bytes_max: int = 4_194_304
    account_sweep_seconds: int = 300
    account_sweep_overlap_seconds: int = 900
    account_sweep_days: int = 35
    account_sweep_pages_max: int = 20
    waiting_seconds: int = 10
    calls_per_minute_max: int = 60
    notice_tolerance_seconds: int = 300
    notice_bytes_max: int = 262_144
    unmatched_notice_seconds: int = 900
    status_calls_max: int = 5
    status_calls_seconds: int = 600

    def backoff(self, attempts_so_far: int) -> int:
        """Seconds to wait after the n-th attempt (1, 2, ...) that was not executed."""
        steps = self.not_sent_backoff_seconds
        return steps[min(max(attempts_so_far, 1), len(steps)) - 1]
