"""Roles of people, as names of groups. A person may hold several; rights add up."""

from collections.abc import Iterable
from typing import Final

REP: Final = "rep"
LEAD: Final = "lead"
OPS: Final = "ops"
OPS_LEAD: Final = "ops_lead"
FINANCE: Final = "finance"
MANAGER: Final = "manager"
ADMIN: Final = "admin"

ROLES: Final = (REP, LEAD, OPS, OPS_LEAD, FINANCE, MANAGER, ADMIN)


def deciding(roles: Iterable[str]) -> frozenset[str]:
    """The roles that count for an approval: none of an admin's.

    An admin can mint a key of any agent, and would propose with it and approve alone.
    """
    held = frozenset(roles)
    return frozenset() if ADMIN in held else held
