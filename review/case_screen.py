"""What a case's page showed beside a ruling, sealed into its form so that what moved can be named.

The digest decides whether it moved; this only says what. It is signed, so that nobody is shown a
difference that never was.
"""

from __future__ import annotations

from typing import Any

from django.core import signing

from reconciliation.ruling_room import Opened

_SALT = "review.case_screen"
# What the page names of a refund that the provider shows.
_NAMED = ("ref", "amount_minor", "currency", "provider_status", "payment_ref", "ours")


def screen(found: Opened) -> dict[str, Any]:
    """The evidence and the money of `Opened.screen_digest`, as the page names them."""
    shown = dict(found.gathered.shown)
    lookup = shown.get("lookup")
    if lookup:
        named = [{name: each.get(name) for name in _NAMED} for each in lookup.get("candidates", [])]
        shown["lookup"] = {"verdict": lookup.get("verdict"), "candidates": named}
    return {"shown": shown, "money": found.money}


def sealed(found: dict[str, Any]) -> str:
    return signing.dumps(found, salt=_SALT, compress=True)


def opened(text: str) -> dict[str, Any] | None:
    """What a form was drawn with; None where it says nothing that we wrote."""
    try:
        told: dict[str, Any] = signing.loads(text, salt=_SALT)
    except signing.BadSignature:
        return None
    return told
