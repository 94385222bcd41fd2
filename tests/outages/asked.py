"""What the caller wants of one scenario."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """`broken` names what is taken out or done wrong; '' for nothing."""

    seed: int
    broken: str
    stock: int
