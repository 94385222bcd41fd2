"""What goes wrong if an accepted figure is false, in a sentence for whoever accepts it. Pure."""

from __future__ import annotations

from refunds.domain.contract import ProviderContract
from refunds.domain.limits import Limits


def if_resend_is_false(
    contract: ProviderContract, seconds: int, provider: str, limits: Limits
) -> str:
    """For a flight bound, or a lookup lag, that resends rest on."""
    window = contract.key_window.seconds or 0
    spent = limits.send_deadline_seconds + (contract.idle_close.seconds or 0) + limits.skew_seconds
    relied_on = window - spent - window / 4
    return (
        f"You accepted that {provider} does not execute a request later than {span(seconds)} after"
        f" we sent it; we rely on less, namely on {span(relied_on)}, and if a request is executed"
        " later than that, one refund can be paid twice, and we can show it to you only afterwards."
    )


def if_absence_is_false(contract: ProviderContract, provider: str) -> str:
    """For the figures by which a refund that is not shown counts as never executed."""
    flight, lag = contract.flight_max.seconds, contract.lookup_lag.seconds
    shown_by = span((flight or 0) + (lag or 0))
    if flight is None or lag is None:
        what = "flight bound" if flight is None else "lookup lag"
        shown_by += f" and its {what}, which nobody has accepted yet,"
    return (
        f"Two of you accepted that a refund which {provider} does not show {shown_by} after the last"
        f" attempt will never happen; if {provider} is later than that even once, we will have told"
        ' you "no refund" and freed the money although it then moves, and if it was sent again'
        " meanwhile without a living key, it is paid twice."
    )


def span(seconds: float) -> str:
    """A duration for people: "45 s", "1 h", "17 h 59 min"; rounded down to what is written."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = whole // 60
    hours, minutes = divmod(minutes, 60)
    return " ".join(
        part for part, value in ((f"{hours} h", hours), (f"{minutes} min", minutes)) if value
    )
