"""What is decided from and what is decided are values: nobody changes one on its way."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass
from types import ModuleType

import pytest

from reconciliation import known, lateness, matching, proof
from refunds.domain import contract, outcome

_OF = (known, matching, proof, lateness, contract, outcome)


def _values(module: ModuleType) -> list[type]:
    own = [each for each in vars(module).values() if isinstance(each, type)]
    return [each for each in own if is_dataclass(each) and each.__module__ == module.__name__]


@pytest.mark.parametrize("value", [each for module in _OF for each in _values(module)])
def test_a_value_cannot_be_changed_once_it_is_made(value: type) -> None:
    made: object = object.__new__(value)
    for each in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(made, each.name, None)
    assert value.__hash__ is not None
