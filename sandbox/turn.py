"""The circumstances of one execution."""

from dataclasses import dataclass

from sandbox.dialects import Dialect
from sandbox.operations import Twists
from sandbox.profiles import Profile


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One execution: for whom, at which instant, under which faults.

    `owns_claim`: this request itself has marked its key as in use.
    """

    account: str
    profile: Profile
    dialect: Dialect
    at: int
    twists: Twists
    owns_claim: bool = False
