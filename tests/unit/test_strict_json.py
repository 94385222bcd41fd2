"""JSON from outside: whole numbers, each name once, a bounded depth; everything else is named."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refunds.api.parsing import DEPTH_MAX, read_json
from refunds.domain.errors import Refusal

# What PostgreSQL can store: no NUL, no half of a surrogate pair.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17) + 1, 10**18 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def code(raw: bytes) -> tuple[str, str | None]:
    with pytest.raises(Refusal) as refused:
        read_json(raw)
    return refused.value.code, refused.value.field


def no_float(value: Any) -> bool:
    if isinstance(value, dict):
        return all(no_float(item) for item in value.values())
    if isinstance(value, list):
        return all(no_float(item) for item in value)
    return not isinstance(value, float)


@given(VALUES)
def test_what_is_clean_is_read_as_it_is(value: Any) -> None:
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        value = read_json(raw)
    except Refusal:
        return
    assert no_float(value)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["a", "x_minor"]))
def test_no_float_ever_comes_out(number: float, name: str) -> None:
    raw = json.dumps({"outer": [{name: number}]}).encode()
    wanted = "amount_fraction" if name == "x_minor" else "field_format"
    assert code(raw) == (wanted, f"outer.0.{name}")


def test_the_depth_is_bounded_exactly() -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth

    assert read_json(nested(DEPTH_MAX))
    assert code(nested(DEPTH_MAX + 1)) == ("too_deep", None)
    assert code(b'{"a":' * 21 + b"1" + b"}" * 21) == ("too_deep", None)
    assert code(b"[" * 60_000) == ("too_deep", None)


@pytest.mark.parametrize(
    "raw",
    [b'{"a":1,"a":1}', b'[{"b":{"c":1,"c":2}}]', b"NaN", b"-Infinity", b"", b"\xff", b'"\\udc00"'],
)
def test_unclean_texts_are_malformed(raw: bytes) -> None:
    assert code(raw) == ("malformed_json", None)


def test_the_first_wrong_place_in_the_text_is_named() -> None:
    assert code(b'{"a": {"b": 1.5}, "c": 2.5}') == ("field_format", "a.b")
    assert code(b'{"a": [1, {"d_minor": 1e2}], "c": "\\u0000"}') == (
        "amount_fraction",
        "a.1.d_minor",
    )
    assert code(b'{"x\\u0000": 1}') == ("text_control", None)


def test_numbers_too_long_are_named_and_not_computed() -> None:
    assert code(b'{"amount_minor": ' + b"9" * 60_000 + b"}") == ("amount_too_large", "amount_minor")
    assert read_json(b"[-1, 0, 999999999999999999]") == [-1, 0, 999999999999999999]


def test_long_names_over_many_items_cost_little() -> None:
    raw = json.dumps({"n" * 30_000: {"m" * 10_000: [[0]] * 5_000}}).encode()
    began = time.process_time()
    read_json(raw)
    assert time.process_time() - began < 1
