"""A card number is found whatever stands beside it; long numbers of shops and carriers are not."""

from __future__ import annotations

import time

import pytest

from refunds.domain.errors import Refusal
from refunds.text import check_ref, check_text


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111  1111  1111  1111",
        "4111 - 1111 - 1111 - 1111",
        "4111 1111 1111 1111 12/27",
        "4111111111111111 12 27 123",
        "item 1 4111111111111111",
        "4111 1111 1111 1111 5555 5555 5555 4444",
        "3782 822463 10005 06/28",
        "4111\u00a01111\u00a01111\u00a01111",
        "４１１１１１１１１１１１１１１１",
    ],
)
def test_a_card_number_is_refused_whatever_stands_beside_it(text: str) -> None:
    for check in (check_text, check_ref):
        with pytest.raises(Refusal) as refused:
            check(f"pays with {text}", field="reason_text", length_max=500)
        assert refused.value.code == "text_card_number"


@pytest.mark.parametrize(
    "text",
    [
        "order 4111 1111 1111 1112",
        "parcel 1Z 999 AA1 01 2345 6784",
        "ring 020 7946 0958 or 020 7946 0959",
        "on 2026-11-29 14 02 11, order 4821, 79 00",
        "9" * 500,
        "12 " * 160,
    ],
)
def test_other_numbers_are_let_through(text: str) -> None:
    assert check_text(text, field="reason_text", length_max=500) == text


@pytest.mark.parametrize("text", ["4" * 10_000, "4 " * 5_000, "444 " * 2_500, "4-    " * 1_600])
def test_a_hostile_text_costs_no_time(text: str) -> None:
    began = time.process_time()
    check_text(text, field="reason_text", length_max=10_000)
    assert time.process_time() - began < 0.5
