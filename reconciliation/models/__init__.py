"""What we learn afterwards, and what waits for a person because of it."""

from reconciliation.models.alarms import Acknowledgement, Alarm, SignalRun, VerifierRound
from reconciliation.models.budgets import LookupBudget, LookupMinute
from reconciliation.models.case_work import (
    CaseEvent,
    CaseStatement,
    Ruling,
    RulingEnd,
    Statement,
)
from reconciliation.models.cases import Case
from reconciliation.models.notices import Notice, NoticeRefused
from reconciliation.models.outbox import Consequence, Delivery, DeliveryTry, Line
from reconciliation.models.settlement import SettlementCover, SettlementLine
from reconciliation.models.sweeps import AccountSweep

__all__ = [
    "AccountSweep",
    "Acknowledgement",
    "Alarm",
    "Case",
    "CaseEvent",
    "CaseStatement",
    "Consequence",
    "Delivery",
    "DeliveryTry",
    "Line",
    "LookupBudget",
    "LookupMinute",
    "Notice",
    "NoticeRefused",
    "Ruling",
    "SettlementCover",
    "SettlementLine",
    "RulingEnd",
    "SignalRun",
    "Statement",
    "VerifierRound",
]
