"""Roles of people, as names of groups. A person may hold several; rights add up."""

from typing import Final

REP: Final = "rep"
LEAD: Final = "lead"
OPS: Final = "ops"
OPS_LEAD: Final = "ops_lead"
FINANCE: Final = "finance"
MANAGER: Final = "manager"
ADMIN: Final = "admin"

ROLES: Final = (REP, LEAD, OPS, OPS_LEAD, FINANCE, MANAGER, ADMIN)
