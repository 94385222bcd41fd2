"""The seeded world, and which of its findings are about money."""

from typing import Final

# Before what an act raised.
RAISED: Final = "raised at "


def about_the_book(finding: str) -> bool:
    """Whether a finding compares with the provider's book or within ours: not what was merely
    raised, and not that something waits in the end."""
    return not finding.startswith((RAISED, "after ")) and " in the end" not in finding
