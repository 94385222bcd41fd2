"""The open quarantine as a reader of the page Providers sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciliation import quarantine as verbs
from reconciliation.quarantine import Missing
from refunds.ledger.sending import open_quarantine
from refunds.models import Quarantine
from review import intent, roles
from review.access import Viewer
from review.intent import Hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An open quarantine as one reader sees it: what is missing, and which of the acts is theirs."""

    row: Quarantine
    since: datetime
    missing: list[Missing]
    form: Hidden
    may_ask: bool
    may_lift: bool

    @property
    def waits(self) -> bool:
        """Whether something is missing that comes by itself."""
        return any(not each.by_hand for each in self.missing)


def standing(who: Viewer) -> Standing | None:
    """The open quarantine, if there is one."""
    row = open_quarantine()
    if row is None:
        return None
    may = who.may(roles.LIFT)
    missing = verbs.missing(row)
    return Standing(
        row=row,
        since=verbs.known_until(row),
        missing=missing,
        form=intent.drawn(version=row.pk, shown_digest=digest(row)),
        may_ask=may,
        may_lift=may and bool(row.asked_by) and row.asked_by != who.person.username,
    )


def digest(row: Quarantine) -> str:
    """What the second person signs: who asked, when, and what they compared by hand."""
    asked = row.asked_at.isoformat() if row.asked_at else ""
    return intent.digest_of("quarantine", row.asked_by, asked, *row.by_hand)
