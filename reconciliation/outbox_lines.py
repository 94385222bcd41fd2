"""From one thing that happened to the lines that its receivers get. Runs in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from reconciliation import outbox_plan as plan
from reconciliation import outbox_receivers as receivers
from reconciliation.models import Case, Consequence, Delivery, Line, RulingEnd
from reconciliation.outbox_signing import delivery_id
from refunds.domain.roles import OPS, OPS_LEAD
from refunds.domain.say import Said, say
from refunds.models import Event, Operation, Person, PolicyCheck
from refunds.queries import results

# One message per person (or room) in this time, unless it pages.
BUNDLE: Final = timedelta(minutes=5)
GIVE_UP_AFTER: Final = timedelta(days=3)
_PAGES: Final = {"paused": "sending", "alarm": "alerts"}


def add_lines(row: Consequence) -> None:
    """Write every line that follows from it, each once."""
    event = Event.objects.get(operation=row.operation_id, seq=row.seq) if row.seq else None
    if event is not None and event.event not in plan.MOVES:
        return
    read = Operation.objects.select_related("order", "payment", "agent", "proposer").defer("body")
    operation = read.get(pk=row.operation_id) if row.operation_id else None
    for tell in _tells(row, operation, event):
        if tell.kind == plan.TICKET and not (operation and operation.ticket_ref):
            continue
        for receiver in _receivers(tell, operation):
            facts = _facts(row, operation, event, tell)
            _add(row, tell, receiver, facts)


def _tells(
    row: Consequence, operation: Operation | None, event: Event | None
) -> Iterator[plan.Tell]:
    refund = _refund(operation) if operation else None
    if event is not None and refund is not None and operation is not None:
        yield from plan.of_move(refund, event.event, latest=operation.version == event.seq)
    elif row.kind == "approval" and refund is not None and operation is not None:
        if operation.round == row.words["round"]:
            yield from plan.of_approval(refund)
    elif row.kind in ("case", "ruling"):
        yield from _tells_of_case(row, refund)
    elif row.kind == "paused":
        yield from plan.of_pause(row.words["account"], row.words["kind"])
    elif row.kind == "alarm":
        words = row.words
        yield from plan.of_alarm(words["name"], words["level"], words["says"], again=words["again"])
    elif row.kind == "announced":
        yield plan.Tell(
            kind=plan.STAFF,
            audience=row.words["to"],
            about=row.words["about"],
            text=row.words["text"],
            pages=row.words["pages"],
        )


def _tells_of_case(row: Consequence, refund: plan.Refund | None) -> Iterator[plan.Tell]:
    case = Case.objects.select_related("payment__order").get(pk=row.words["case"])
    order = case.payment.order.ref if case.payment else ""
    if row.kind == "case":
        yield from plan.of_case(refund, f"C-{case.pk}", order, row.words["reason"])
    elif not RulingEnd.objects.filter(ruling=row.words["ruling"]).exists():
        yield from plan.of_ruling(refund, f"C-{case.pk}", order)


def _refund(operation: Operation) -> plan.Refund:
    return plan.Refund(
        order_ref=operation.order.ref,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        tier=operation.tier,
        quorum=operation.quorum,
        state=operation.state,
    )


def _receivers(tell: plan.Tell, operation: Operation | None) -> Iterator[str]:
    """The receivers of this installation for an audience; none where nothing is configured."""
    audience = tell.audience
    if audience in (plan.TICKET_DESK, plan.MERCHANT):
        names = [audience]
    elif audience == plan.ITS_AGENT:
        agent = operation.agent if operation else None
        names = [f"{receivers.AGENT}{agent.name}"] if agent else []
    elif audience == plan.ON_CALL:
        names = [
            receivers.ON_CALL if receivers.is_configured(receivers.ON_CALL) else receivers.STAFF
        ]
    elif audience == plan.ASKERS or audience.startswith(receivers.PERSON):
        names = []
    else:
        names = [receivers.STAFF]
    yield from filter(receivers.is_configured, names)
    if receivers.writes_mail():
        for person in _people(audience, operation):
            yield f"{receivers.PERSON}{person}"


def _people(audience: str, operation: Operation | None) -> list[str]:
    """Usernames of those in the audience who can be written to."""
    written = Person.objects.filter(is_active=True).exclude(email="").order_by("username")
    if audience.startswith(receivers.PERSON):
        written = written.filter(username=audience.removeprefix(receivers.PERSON))
    elif audience == plan.ASKERS and operation is not None:
        asked = [operation.proposer.username] if operation.proposer else []
        if operation.requested_by_kind == "person":
            asked.append(operation.requested_by_ref)
        written = written.filter(username__in=asked)
    elif audience in plan.ROLES:
        written = written.filter(groups__name=audience)
    elif audience == plan.ON_CALL and not receivers.is_configured(receivers.ON_CALL):
        written = written.filter(groups__name__in=(OPS, OPS_LEAD)).distinct()
    else:
        return []
    return list(written.values_list("username", flat=True))


def _facts(
    row: Consequence, operation: Operation | None, event: Event | None, tell: plan.Tell
) -> dict[str, Any]:
    """What a machine gets beside the text; nothing of the customer, no free text."""
    facts: dict[str, Any] = {"about": tell.about, "link": _link(row, operation)}
    if operation is not None:
        facts |= {
            "operation_id": str(operation.pk),
            "order_ref": operation.order.ref,
            "payment_ref": operation.payment.ref,
            "request_ref": operation.request_ref,
            "amount_minor": operation.amount_minor,
            "currency": operation.currency,
        }
        if operation.ticket_ref:
            facts["ticket_ref"] = operation.ticket_ref
    if event is not None:
        facts |= {"seq": event.seq, "event": event.event, "state": event.to_state}
    if tell.kind == plan.CUSTOMER and operation is not None and event is not None:
        said = _said(operation, event)
        facts["say"] = {"text": said.text, "place": said.place, "version": said.version}
    return facts


def _said(operation: Operation, event: Event) -> Said:
    """The customer's words for the refund as this event left it."""
    history = list(Event.objects.filter(operation=operation, seq__lte=event.seq).order_by("seq"))
    failed = PolicyCheck.objects.filter(operation=operation, passed=False).order_by("position")
    about = results.about_read(operation, history, tuple(failed.values_list("name", flat=True)))
    return say(replace(about, state=event.to_state), timezone.now())


def _link(row: Consequence, operation: Operation | None) -> str:
    if row.words.get("path"):
        return f"{settings.BASE_URL}{row.words['path']}"
    if row.kind in ("case", "ruling"):
        # Of a case about an operation the page of the operation, where the case stands.
        return f"{settings.BASE_URL}/cases/{row.words['case']}"
    if operation is not None:
        return f"{settings.BASE_URL}/operations/{operation.pk}"
    return f"{settings.BASE_URL}/{_PAGES.get(row.kind, '')}"


def _add(row: Consequence, tell: plan.Tell, receiver: str, facts: dict[str, Any]) -> None:
    if Line.objects.filter(consequence=row, kind=tell.kind, receiver=receiver).exists():
        return
    text = facts["say"]["text"] if "say" in facts else tell.text
    Line.objects.create(
        delivery=_delivery(row, tell, receiver),
        consequence=row,
        operation_id=row.operation_id,
        kind=tell.kind,
        receiver=receiver,
        about=tell.about,
        text=text[:1000],
        facts=facts,
        at=row.created_at,
    )


def _delivery(row: Consequence, tell: plan.Tell, receiver: str) -> Delivery:
    """The message for a line: one of its own, or the one that still collects for this receiver."""
    now = timezone.now()
    bundled = tell.kind == plan.STAFF and not tell.pages
    due_at = now
    if bundled:
        collecting = (
            Delivery.objects.select_for_update()
            .filter(kind=tell.kind, receiver=receiver, collecting=True)
            .first()
        )
        if collecting:
            return collecting
        last = Delivery.objects.filter(kind=tell.kind, receiver=receiver, pages=False).aggregate(
            at=Max("first_sent_at")
        )["at"]
        due_at = max(now, last + BUNDLE) if last else now
    return Delivery.objects.create(
        pk=delivery_id(str(row), tell.kind, receiver),
        kind=tell.kind,
        receiver=receiver,
        pages=tell.pages,
        collecting=bundled,
        due_at=due_at,
        give_up_at=due_at + GIVE_UP_AFTER,
    )
