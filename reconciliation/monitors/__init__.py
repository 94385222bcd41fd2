"""Standing questions with thresholds, asked for ever: see `table` for all of them."""

from reconciliation.monitors.over_refunds import over_refunded

__all__ = ["over_refunded"]
