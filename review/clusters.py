"""Cases of one account that began together: most likely one cause, worked on together.

Claiming, checking, noting and attaching go for a whole cluster, over the ids and versions that were
on the screen. Ruling never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest

from reconciliation import case_work, statements
from reconciliation.models import Case
from refunds.domain.errors import Refusal
from refunds.models import Person
from refunds.providers import registry
from review import intent, roles
from review.intent import Hidden
from review.paging import whole
from review.presenters.words import amounts
from review.roles import Act

TOGETHER_MAX: Final = 50
# Cases of one account that open within so long of each other.
_APART_MAX = timedelta(minutes=15)
ACTS: Final[dict[str, Act]] = {
    "claim": roles.CLAIM,
    "check": roles.CHECK_NOW,
    "note": roles.NOTE,
    "attach": roles.ATTACH,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cases that began together; `first_at` is when the first was opened."""

    account: str
    cases: tuple[Case, ...]
    first_at: datetime

    @property
    def id(self) -> str:
        return f"cluster-{self.cases[0].pk}"

    @property
    def keys(self) -> list[str]:
        """What its form posts: ids with the versions that were on the screen."""
        return [f"{case.pk}.{case.version}" for case in self.cases[:TOGETHER_MAX]]

    @property
    def looks(self) -> bool:
        """Whether the account can be asked."""
        account = registry.accounts().get(self.account)
        return account is not None and account.contract.lookup != "none"

    @property
    def count(self) -> int:
        return len(self.cases)

    @property
    def total(self) -> str:
        sums: dict[str, int] = {}
        for case in self.cases:
            op = case.operation
            if op is not None:
                sums[op.currency] = sums.get(op.currency, 0) + op.amount_minor
        return amounts(sums)

    @property
    def form(self) -> Hidden:
        return intent.drawn(version=0, shown_digest=intent.digest_of(self.keys))


def grouped(cases: Sequence[Case]) -> list[tuple[Cluster | None, list[Case]]]:
    """The cases in their order, those of a cluster together where its first one stands."""
    clusters = {case.pk: found for found in _clusters(cases) for case in found.cases}
    groups: list[tuple[Cluster | None, list[Case]]] = []
    told: set[str] = set()
    for case in cases:
        found = clusters.get(case.pk)
        if found is None:
            groups.append((None, [case]))
        elif found.id not in told:
            told.add(found.id)
            groups.append((found, list(found.cases)))
    return groups


def _clusters(cases: Sequence[Case]) -> list[Cluster]:
    found: list[Cluster] = []
    by_account: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda each: each.opened_at):
        if case.operation is not None:
            by_account.setdefault(case.account, []).append(case)
    for account, listed in by_account.items():
        near: list[Case] = []
        for case in listed:
            if near and case.opened_at - near[-1].opened_at > _APART_MAX:
                found += _cluster(account, near)
                near = []
            near.append(case)
        found += _cluster(account, near)
    return found


def _cluster(account: str, near: list[Case]) -> list[Cluster]:
    if len(near) < 2:
        return []
    return [Cluster(account=account, cases=tuple(near), first_at=near[0].opened_at)]


def work(request: HttpRequest, person: Person, hidden: Hidden, act: str) -> dict[str, Any]:
    """Do one act for every case that was posted; what moved meanwhile is left out and named.

    Raises Refusal together_none, together_too_many, and those of a note or statement itself.
    """
    keys = request.POST.getlist("case")
    if not keys:
        raise Refusal(
            "together_none",
            "Not recorded. No case was named.",
            what_to_do="Use the form of the cluster on the page.",
        )
    if len(keys) > TOGETHER_MAX:
        raise Refusal(
            "together_too_many",
            f"Not recorded. At most {TOGETHER_MAX} cases at once.",
            what_to_do="Work on the first ones, then on the others.",
        )
    one = _one(request, person, hidden.intent, act)
    done, left_out = [], []
    for key in keys:
        case_id, _, version = key.partition(".")
        number = whole(case_id) or 0
        try:
            with transaction.atomic():
                _require_version(number, whole(version), act)
                one(number)
            done.append(number)
        except Refusal as refusal:
            left_out.append([number, refusal.detail])
        except Case.DoesNotExist:
            left_out.append([number, "There is no such case."])
    return {"act": act, "done": done, "left_out": left_out}


def _require_version(case_id: int, version: int | None, act: str) -> None:
    """Taking a case is bound to what was on the screen; reading and writing a note are not."""
    if act in ("claim", "attach"):
        case_work.open_for_work(case_id, version=version or 0)


def _one(request: HttpRequest, person: Person, press: UUID, act: str) -> Callable[[int], object]:
    match act:
        case "claim":
            return lambda case_id: case_work.claim(case_id, person, intent=press)
        case "check":
            return lambda case_id: case_work.check_now(case_id, person, intent=press)
        case "note":
            text = request.POST.get("note", "")
            if not text.strip():
                raise Refusal(
                    "note_empty",
                    "Not recorded. The note is empty.",
                    what_to_do="Write what the next reader should know.",
                    field="note",
                )
            return lambda case_id: case_work.note(case_id, person, text=text, intent=press)
        case _:
            upload = request.FILES.get("file")
            content = upload.read(statements.STATEMENT_BYTES_MAX + 1) if upload else b""
            paper = statements.stored(content)
            name = upload.name if upload and upload.name else ""
            return lambda case_id: statements.attach(
                case_work.open_for_work(case_id), paper, name=name, by=person, intent=press
            )
