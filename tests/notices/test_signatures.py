"""Who signed a notice, and when: over the raw bytes, and before a byte of them is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import stripe

from refunds.providers.signatures import NotGenuine, verify
from tests.notices.telling import signature, stripe_body

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OLD, NEW = "whsec_the_secret_of_before", "whsec_the_secret_from_now_on"
BODY = stripe_body("evt_1", {"object": "refund", "id": "re_1"})


def verified(header: str, body: bytes = BODY, *secrets: str) -> datetime:
    return verify(header, body, secrets or (NEW,), arrived_at=NOW, tolerance_seconds=300)


def signed(*secrets: str, seconds: float = 0, body: bytes = BODY) -> str:
    return signature(body, *secrets, at=NOW.timestamp() + seconds)


@pytest.mark.parametrize("seconds", [-300, -299, 0, 299, 300])
def test_a_signature_within_the_tolerance_is_genuine(seconds: int) -> None:
    assert verified(signed(NEW, seconds=seconds)) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize("seconds", [-301, 301, -3600, 3600])
def test_a_genuine_signature_of_another_time_is_stale_on_both_sides(seconds: int) -> None:
    with pytest.raises(NotGenuine) as refused:
        verified(signed(NEW, seconds=seconds))
    assert refused.value.kind == "stale"


def test_while_a_secret_is_changed_both_hold_in_every_place() -> None:
    for header in (signed(OLD), signed(NEW), signed("another-secret", OLD), signed(OLD, NEW)):
        verified(header, BODY, OLD, NEW)
    with pytest.raises(NotGenuine):
        verified(signed(OLD), BODY, NEW)


def _of_another_scheme() -> str:
    return signed(NEW).replace("v1=", "v0=")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "t=",
        "v1=",
        "t=1,v1=",
        signed("another-secret"),
        signed(NEW).replace("v1=", "v1=0"),
        signed(NEW).partition(",")[2],
        signed(NEW).partition(",")[0],
        _of_another_scheme(),
        "t=1," + signed(NEW),
        signed(NEW).replace("t=", "t=+"),
        signed(NEW).replace("t=", "t= "),
        f"t={'9' * 30},v1={'a' * 64}",
        "t=١٢٣,v1=" + "a" * 64,
        f"t={int(NOW.timestamp())},v1=" + "ä" * 64,
        f"t={int(NOW.timestamp())}" + ",v1=a" * 40,
    ],
)
def test_anything_else_is_forged(header: str) -> None:
    with pytest.raises(NotGenuine) as refused:
        verified(header)
    assert refused.value.kind == "forged"


@pytest.mark.parametrize("changed", [BODY + b" ", BODY.replace(b"re_1", b"re_2"), b""])
def test_one_byte_more_or_other_is_forged(changed: bytes) -> None:
    with pytest.raises(NotGenuine):
        verified(signed(NEW), changed)


def test_a_time_signed_again_without_the_secret_is_forged() -> None:
    header = signed(NEW, seconds=-1000)
    stamp = header.partition(",")[0]
    with pytest.raises(NotGenuine) as refused:
        verified(header.replace(stamp, f"t={int(NOW.timestamp())}"))
    assert refused.value.kind == "forged"


def test_stripes_own_library_writes_what_we_believe() -> None:
    theirs = stripe.WebhookSignature._compute_signature(
        f"{int(NOW.timestamp())}.{BODY.decode()}", NEW
    )
    assert verified(f"t={int(NOW.timestamp())},v1={theirs}") == NOW
