"""Who may do what: roles and acts as data, in one place. Rights of several roles add up.

The "never" rules win over this table and stand with the verbs: nobody approves what they or
their agent proposed, signs twice, or ends a stop that they pressed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from refunds.domain.roles import ADMIN, FINANCE, LEAD, MANAGER, OPS, OPS_LEAD, REP

# Whoever decides needs a second factor.
DECIDERS: Final = (LEAD, OPS, OPS_LEAD, FINANCE, ADMIN)


@dataclass(frozen=True, slots=True)
class Act:
    """One thing a person may do; `words` completes "You can read this but not ...".

    `step_up` says that posting it needs a proof of who they are that is not older than 5 minutes.
    """

    name: str
    words: str
    roles: tuple[str, ...]
    step_up: bool = False


_READERS: Final = (LEAD, OPS, OPS_LEAD, FINANCE, MANAGER, ADMIN)

SEE_STATUS: Final = Act(
    "see_status", "read the status page", (REP, LEAD, OPS, OPS_LEAD, FINANCE, MANAGER)
)
SEE: Final = Act("see", "open the queues and operations", _READERS)
SEE_AUDIT: Final = Act("see_audit", "search the audit trail", _READERS)
EXPORT_AUDIT: Final = Act("export_audit", "verify or export the audit trail", (MANAGER,))
PROPOSE: Final = Act("propose", "propose a refund", (REP, LEAD, OPS, OPS_LEAD))
APPROVE: Final = Act("approve", "approve it", (LEAD, FINANCE))
REJECT: Final = Act("reject", "reject it", (LEAD,))
TAKE_BACK: Final = Act("take_back", "take an approval back", (LEAD,))
WITHDRAW: Final = Act("withdraw", "withdraw it", (LEAD, OPS, OPS_LEAD))
NOTE: Final = Act("note", "write a note", (LEAD, OPS, OPS_LEAD, FINANCE, MANAGER))
CLAIM: Final = Act("claim", "claim a case", (OPS, OPS_LEAD))
SNOOZE: Final = Act("snooze", "snooze a case", (OPS, OPS_LEAD))
ESCALATE: Final = Act("escalate", "escalate a case", (OPS, OPS_LEAD))
ASSIGN: Final = Act("assign", "assign a case", (OPS_LEAD,))
ATTACH: Final = Act("attach", "attach a statement", (OPS, OPS_LEAD))
CHECK_NOW: Final = Act("check_now", "ask the provider now", (OPS, OPS_LEAD))
RESOLVE: Final = Act("resolve", "give the first signature", (OPS, OPS_LEAD), step_up=True)
SECOND_SIGN: Final = Act("second_sign", "give the second signature", (OPS_LEAD,), step_up=True)
FREEZE: Final = Act("freeze", "freeze an order", (OPS_LEAD,))
CHOOSE_REMEDY: Final = Act("choose_remedy", "choose a remedy", (LEAD, OPS, OPS_LEAD))
REPLAY: Final = Act("replay", "send a message again", (OPS, OPS_LEAD, ADMIN))
STOP: Final = Act("stop", "stop all sending", (LEAD, OPS, OPS_LEAD, FINANCE, ADMIN))
PAUSE: Final = Act("pause", "pause an account", (OPS_LEAD,))
START: Final = Act("start", "start sending again", (OPS_LEAD, ADMIN), step_up=True)
ACCEPT_FACT: Final = Act("accept_fact", "accept a contract fact", (OPS_LEAD, ADMIN), step_up=True)
LIFT: Final = Act("lift", "lift a quarantine", (OPS_LEAD, ADMIN), step_up=True)
ACKNOWLEDGE: Final = Act("acknowledge", "acknowledge an alarm", (OPS, OPS_LEAD, ADMIN))
ADMINISTER: Final = Act(
    "administer", "change agents, keys, people or roles", (ADMIN,), step_up=True
)

MATRIX: Final = (
    SEE_STATUS,
    SEE,
    SEE_AUDIT,
    EXPORT_AUDIT,
    PROPOSE,
    APPROVE,
    REJECT,
    TAKE_BACK,
    WITHDRAW,
    NOTE,
    CLAIM,
    SNOOZE,
    ESCALATE,
    ASSIGN,
    ATTACH,
    CHECK_NOW,
    RESOLVE,
    SECOND_SIGN,
    FREEZE,
    CHOOSE_REMEDY,
    REPLAY,
    STOP,
    PAUSE,
    START,
    ACCEPT_FACT,
    LIFT,
    ACKNOWLEDGE,
    ADMINISTER,
)

_WORDS: Final = {
    REP: "rep",
    LEAD: "support lead",
    OPS: "ops",
    OPS_LEAD: "ops lead",
    FINANCE: "finance",
    MANAGER: "manager",
    ADMIN: "admin",
}


def words_of(roles: Iterable[str]) -> str:
    """Roles for a sentence: "support lead or finance"; empty for none."""
    return " or ".join(_WORDS[role] for role in _WORDS if role in set(roles))


def may(roles: Iterable[str], act: Act) -> bool:
    """Whether somebody who holds `roles` may do `act`, the "never" rules aside."""
    return not set(act.roles).isdisjoint(roles)
