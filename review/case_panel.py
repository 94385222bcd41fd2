"""The panel of one case: who has it, its statements, its choices, and a ruling that waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from reconciliation import case_work, rulings
from reconciliation.choices import EVENTS, Judged, Offer, Said, Testimony
from reconciliation.judge import offers
from reconciliation.models import Case, CaseStatement, Ruling
from reconciliation.ruling_room import Opened, planned, seen
from refunds.domain.errors import Refusal
from refunds.domain.money import parse_amount
from refunds.domain.roles import OPS, OPS_LEAD, deciding
from refunds.models import Operation, Person
from refunds.providers import registry
from review import case_screen, facts, intent, remedying, roles
from review.access import Viewer
from review.intent import Hidden
from review.presenters import case as words
from review.presenters import consequence, then_and_now
from review.presenters.facts import CaseFacts, OperationFacts

SNOOZE_HOURS = (1, 4, 12, 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """One statement beside the case."""

    pk: int
    name: str
    media_type: str
    by: str
    at: datetime
    hash_start: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A first signature that waits. `moved`: its evidence is no longer what there is now."""

    ruling: Ruling
    title: str
    told: list[tuple[str, str]]
    consequence: str
    rows: list[then_and_now.Row]
    moved: bool
    why_not: str


@dataclass(slots=True, kw_only=True)
class Panel:
    """Everything the case's part of a page shows. Every drawing of `form` is a press of its own."""

    case: Case
    facts: CaseFacts
    held: str
    flags: list[str]
    mine: bool
    free: bool
    works: bool
    may: Mapping[str, bool]
    assignees: list[str]
    looks: bool
    statements: list[Paper]
    choices: list[words.Choice]
    waiting: Waiting | None
    why_not_sign: str
    currency: str
    attachable: tuple[str, ...]
    remedy: remedying.Remedy | None
    version: int
    shown_digest: str
    screen: dict[str, Any]

    @property
    def form(self) -> Hidden:
        return intent.drawn(version=self.version, shown_digest=self.shown_digest)

    @property
    def seen(self) -> str:
        """What the form posts back, for the difference to be shown if it moved."""
        return case_screen.sealed(self.screen)

    @property
    def owed(self) -> bool:
        """Whether the case only asks how the customer gets the money."""
        return self.facts.reasons == ("remedy",)

    @property
    def testimony(self) -> bool:
        return any(each.offer.needs_testimony and each.offer.open for each in self.choices)

    @property
    def two(self) -> bool:
        """Whether any choice that is open needs a second person."""
        return any(each.offer.people == 2 and each.offer.open for each in self.choices)


def context(request: HttpRequest, found: Panel | None) -> dict[str, Any]:
    """What the panel's templates read besides the panel: what was typed, and their lists."""
    here = request.resolver_match.url_name if request.resolver_match else ""
    return {
        "panel": found,
        "typed": request.POST,
        "posted": request.POST if here == "case_resolve" else {},
        "snooze_hours": SNOOZE_HOURS,
        "remedies": list(words.REMEDIES.items()),
        "since_seen": _since_seen(request, found) if here == "case_resolve" else [],
    }


def _since_seen(request: HttpRequest, found: Panel | None) -> list[then_and_now.Row]:
    """What moved between the drawing of the posted form and now."""
    then = case_screen.opened(request.POST.get("seen", ""))
    if found is None or then is None:
        return []
    rows = [
        *then_and_now.evidence_rows(then["shown"], found.screen["shown"]),
        *then_and_now.money_rows(then["money"], found.screen["money"], found.currency),
    ]
    return [each for each in rows if each.moved]


def panel(case: Case, who: Viewer) -> Panel:
    """For an open case; needs its owner, payment, order and operation to be loaded."""
    now = who.clock.now
    found = seen(case, now)
    about = facts.operation(case.operation) if case.operation else None
    plain = facts.case(case)
    held_by = case_work.holder(case, now)
    account = registry.accounts().get(case.account)
    looks = case.operation is not None and account is not None and account.contract.lookup != "none"
    may = {
        "claim": who.may(roles.CLAIM),
        "note": who.may(roles.NOTE),
        "assign": who.may(roles.ASSIGN),
        "attach": who.may(roles.ATTACH),
        "resolve": who.may(roles.RESOLVE),
        "sign": who.may(roles.SECOND_SIGN),
        "remedy": who.may(roles.CHOOSE_REMEDY),
    }
    return Panel(
        case=case,
        facts=plain,
        held=words.held_words(plain, who.clock),
        flags=words.flags(plain, who.clock),
        mine=held_by is not None and held_by.pk == who.person.pk,
        free=held_by is None,
        works=may["claim"],
        may=may,
        assignees=_assignees() if may["assign"] else [],
        looks=looks,
        statements=_papers(case),
        choices=[_choice(found, offer, about, who) for offer in offers(found.gathered.question)],
        waiting=_waiting(found, about, who),
        why_not_sign=_why_not_sign(case, who),
        currency=found.gathered.question.currency,
        attachable=found.gathered.question.attachable,
        remedy=_remedy(case, who),
        version=case.version,
        shown_digest=found.screen_digest,
        screen=case_screen.screen(found),
    )


def _remedy(case: Case, who: Viewer) -> remedying.Remedy | None:
    asks = case.operation is not None and "remedy" in case.reasons
    return remedying.of(case.operation, who) if asks and case.operation else None


def _papers(case: Case) -> list[Paper]:
    found = CaseStatement.objects.filter(case=case).select_related("statement", "person")
    return [
        Paper(
            pk=each.pk,
            name=each.name,
            media_type=each.statement.media_type,
            by=each.person.username,
            at=each.at,
            hash_start=bytes(each.statement.sha256).hex()[:16],
        )
        for each in found.defer("statement__content").order_by("pk")
    ]


def _assignees() -> list[str]:
    found = Person.objects.filter(is_active=True, groups__name__in=[OPS, OPS_LEAD])
    return list(found.order_by("username").values_list("username", flat=True).distinct())


def _choice(found: Opened, offer: Offer, about: OperationFacts | None, who: Viewer) -> words.Choice:
    """The plan is that of the one refund the choice can name, where it is one."""
    one = offer.refs[0] if len(offer.refs) == 1 else None
    amount = one.amount_minor if one else None
    if offer.choice == "happened" and about is not None:
        amount = about.amount_minor
    said = Said(choice=offer.choice, ref=one.ref if one else "", amount_minor=amount)
    plan = planned(found, said, Judged(people=offer.people, amount_minor=amount))
    return words.choice(offer, plan, about, who.clock, said_seen=said.ref)


def _waiting(found: Opened, about: OperationFacts | None, who: Viewer) -> Waiting | None:
    ruling = rulings.waiting(found.case)
    if ruling is None:
        return None
    moved = bytes(ruling.evidence_digest) != found.gathered.digest
    return Waiting(
        ruling=ruling,
        title=consequence.title(ruling.choice),
        told=words.told_rows(ruling.said, found.gathered.question.currency),
        consequence=consequence.stored_consequence(
            ruling.choice, ruling.shown["plan"], ruling.said, about, who.clock
        ),
        rows=then_and_now.evidence_rows(ruling.shown, found.gathered.shown),
        moved=moved,
        why_not="You gave the first signature. The second must come from someone else."
        if ruling.first_by_id == who.person.pk
        else "",
    )


def _why_not_sign(case: Case, who: Viewer) -> str:
    op = case.operation
    if op is not None and who.person.pk in (op.proposer_id, op.agent_owner_id):
        return (
            "You cannot sign this: it was proposed by you or your agent. Anybody else who works on"
            " cases can."
        )
    if not deciding(who.roles) and who.may(roles.RESOLVE):
        return "You cannot sign this: an admin can mint agents’ keys."
    return ""


def said(post: Mapping[str, str], operation: Operation | None) -> Said:
    """What a resolution form posts. Raises Refusal for an amount or a testimony that is none."""
    name = post.get("choice", "")
    currency = operation.currency if operation else ""
    told = None
    if post.get("told_ref", "").strip() and name in EVENTS:
        told_currency = post.get("told_currency", "").strip().upper() or currency
        told = Testimony(
            ref=post["told_ref"].strip()[:128],
            amount_minor=_amount(post.get("told_amount", ""), told_currency, "told_amount"),
            currency=told_currency,
            provider_status=post.get("told_status", "").strip()[:32],
            created=post.get("told_created", "").strip()[:64],
            where_seen=post.get("told_where", "").strip()[:200],
        )
    typed = post.get(f"amount_{name}", "").strip()
    return Said(
        choice=name,
        ref=post.get(f"ref_{name}", "").strip()[:128],
        amount_minor=_amount(typed, currency, f"amount_{name}") if typed else None,
        testimony=told,
        ticket=post.get(f"ticket_{name}", "").strip()[:128],
        kind=post.get("kind", ""),
        reference=post.get(f"reference_{name}", "").strip()[:128],
    )


def confirmed_minor(post: Mapping[str, str], operation: Operation | None) -> int | None:
    """The amount as typed once more for the chosen answer; None where none was."""
    typed = post.get(f"confirmed_{post.get('choice', '')}", "").strip()
    if not typed or operation is None:
        return None
    return _amount(typed, operation.currency, "confirmed")


def _amount(text: str, currency: str, field: str) -> int:
    bare = text.strip().upper().removesuffix(currency).strip().replace("\u202f", "")
    try:
        return parse_amount(bare, currency)
    except Refusal as refusal:
        raise Refusal(
            refusal.code,
            f"Not recorded. {refusal.detail}",
            what_to_do=refusal.what_to_do,
            field=field,
        ) from refusal
