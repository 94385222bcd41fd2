"""The seeded world, and which of its findings are about money."""

from typing import Final

# Before what an act raised.
RAISED: Final = "raised at "
NEEDLESS_CASE: Final = "a case where none is needed"


def about_the_book(finding: str) -> bool:
    """Whether a finding compares with the provider's book or within ours: not what was merely
    raised, and not that something waits in the end, or that people were asked without need."""
    if finding.startswith((RAISED, "after ")):
        return False
    return " in the end" not in finding and NEEDLESS_CASE not in finding
