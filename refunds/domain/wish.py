"""What one wish of one order is called, for life; the database holds the same (migration 0017)."""

from __future__ import annotations


def business_key(order_ref: str, request_ref: str) -> str:
    """The merchant's references as one name; two wishes never share one."""
    return f"refund:{_part(order_ref)}:{_part(request_ref)}"


def wish_called(business_key: str) -> tuple[str, str] | None:
    """The order's reference and the wish's, where this is a business key; None for other text."""
    parts = business_key.split(":")
    if len(parts) != 3 or parts[0] != "refund":
        return None
    order_ref, request_ref = (each.replace("%3A", ":").replace("%25", "%") for each in parts[1:])
    return order_ref, request_ref


def _part(ref: str) -> str:
    """A merchant's reference inside a business key: a colon in it must not end the part."""
    return ref.replace("%", "%25").replace(":", "%3A")
