"""Why a lead may say no to a proposal: a closed list, beside the words they write. Pure."""

from __future__ import annotations

from typing import Final

OTHER: Final = "other"

REJECTION_CODES: Final = {
    OTHER: "another reason",
    "not_owed": "it is not owed",
    "already_refunded": "it was refunded already",
    "amount_wrong": "the amount is wrong",
    "order_wrong": "it belongs to another order or payment",
    "proof_missing": "proof is missing",
    "against_policy": "it is against the refund policy",
}
