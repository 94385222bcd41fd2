"""Identities that are computed: the provider key of an operation, and what an approval binds."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refunds.domain import fingerprint

OPERATION = UUID("0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a")
MATERIAL: dict[str, Any] = {
    "operation_id": OPERATION,
    "business_key": "refund:4821:request-1",
    "provider_account": "plain-main",
    "payment_ref": "pi_4821",
    "amount_minor": 7900,
    "currency": "USD",
    "reason_code": "damaged_item",
    "body": b'{"amount_minor":7900}',
}
OTHER: dict[str, Any] = {
    "operation_id": UUID("0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6b"),
    "business_key": "refund:4821:request-2",
    "provider_account": "plain-forever",
    "payment_ref": "pi_4822",
    "amount_minor": 7901,
    "currency": "EUR",
    "reason_code": "other",
    "body": b'{"amount_minor":7901}',
}
ARGUMENTS: dict[str, Any] = {
    "order_ref": "4821",
    "payment_ref": "pi_4821",
    "amount_minor": 7900,
    "currency": "USD",
    "reason_code": "damaged_item",
}


def test_the_provider_key_of_the_known_operation_is_the_known_key() -> None:
    assert fingerprint.provider_key(OPERATION) == "af06802e-b314-4ce9-bef4-130685fed08c"


@given(st.uuids())
def test_a_provider_key_is_a_version_4_uuid_and_depends_on_the_id_alone(id_: UUID) -> None:
    key = fingerprint.provider_key(id_)
    assert key == fingerprint.provider_key(UUID(str(id_)))
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", key)
    assert key != str(id_)


@pytest.mark.parametrize("name", sorted(MATERIAL))
def test_every_material_fact_changes_the_fingerprint(name: str) -> None:
    first = fingerprint.material_digest(**MATERIAL)
    assert len(first) == 32
    assert first == fingerprint.material_digest(**MATERIAL)
    assert first != fingerprint.material_digest(**(MATERIAL | {name: OTHER[name]}))


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_every_argument_changes_the_identity_of_a_call(name: str) -> None:
    first = fingerprint.arguments_digest(**ARGUMENTS)
    other = {"order_ref": "4822"} | OTHER
    assert first != fingerprint.arguments_digest(**(ARGUMENTS | {name: other[name]}))


def test_equal_values_have_one_form_of_bytes() -> None:
    one = fingerprint.canonical({"b": [1, {"y": "ä", "x": None}], "a": True})
    other = fingerprint.canonical({"a": True, "b": [1, {"x": None, "y": "ä"}]})
    assert one == other == '{"a":true,"b":[1,{"x":null,"y":"ä"}]}'.encode()
