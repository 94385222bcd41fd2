"""The seeded world; RAISED stands before what an act raised, which is no finding about the book."""

from typing import Final

RAISED: Final = "raised at "
