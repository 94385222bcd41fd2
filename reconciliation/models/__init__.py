"""What we learn afterwards, and what waits for a person because of it."""

from reconciliation.models.alarms import Acknowledgement, Alarm, SignalRun, VerifierRound
from reconciliation.models.case_work import (
    CaseEvent,
    CaseStatement,
    Ruling,
    RulingEnd,
    Statement,
)
from reconciliation.models.cases import Case

__all__ = [
    "Acknowledgement",
    "Alarm",
    "Case",
    "CaseEvent",
    "CaseStatement",
    "Ruling",
    "RulingEnd",
    "SignalRun",
    "Statement",
    "VerifierRound",
]
