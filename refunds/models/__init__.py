"""The tables of the ledger. Guards live in the migration; only `refunds.ledger` moves state."""

from refunds.models.evidence import Evidence, ProviderRefund
from refunds.models.facts import AcceptedFact, KnownContract
from refunds.models.operations import (
    Approval,
    Attempt,
    Event,
    Operation,
    PolicyCheck,
    Proposal,
    Reservation,
)
from refunds.models.orders import Order, OrderMove, OverRefunded, Payment
from refunds.models.outside import Dispute, UnplacedRefund
from refunds.models.people import Agent, Credential, Person
from refunds.models.sending import ProviderAccount, Quarantine, SendingStop

__all__ = [
    "AcceptedFact",
    "Agent",
    "Approval",
    "Attempt",
    "Credential",
    "Dispute",
    "Event",
    "Evidence",
    "KnownContract",
    "Operation",
    "Order",
    "OrderMove",
    "OverRefunded",
    "Payment",
    "Person",
    "PolicyCheck",
    "Proposal",
    "ProviderAccount",
    "ProviderRefund",
    "Quarantine",
    "Reservation",
    "SendingStop",
    "UnplacedRefund",
]
