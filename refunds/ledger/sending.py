"""What stops sending, and how it starts again: account pauses, the big stop, quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from refunds.domain.errors import Refusal
from refunds.ledger.clock import database_now
from refunds.models import ProviderAccount, Quarantine, SendingStop


def pause(account: str, *, kind: str, reason: str, by: str) -> bool:
    """Pause one account (`credential`, `outage` or `person`); False when it was paused already."""
    ProviderAccount.objects.get_or_create(name=account)
    return bool(
        ProviderAccount.objects.filter(name=account, pause_kind="").update(
            pause_kind=kind,
            pause_reason=reason[:300],
            paused_at=timezone.now(),
            paused_by=by,
            probe_at=None,
        )
    )


def stop_for_cause(
    account: str, *, kind: Literal["verifier", "duplicate"], reason: str, by: str
) -> bool:
    """Pause one account because its books contradict each other (`verifier`), or because it paid
    one request twice (`duplicate`); a person ends it. It takes the place of a pause that would end
    by itself; False beside any other."""
    ProviderAccount.objects.get_or_create(name=account)
    return bool(
        ProviderAccount.objects.filter(
            name=account, pause_kind__in=["", "outage", "no_credential"]
        ).update(
            pause_kind=kind,
            pause_reason=reason[:300],
            paused_at=timezone.now(),
            paused_by=by,
            probe_at=None,
        )
    )


def resume(account: str, *, by: str) -> None:
    """End an account's pause. Raises Refusal when it is not paused, or a person's pause is ended
    by the same person."""
    with transaction.atomic():
        row = ProviderAccount.objects.select_for_update().filter(name=account).first()
        if row is None or not row.pause_kind:
            raise Refusal(
                "not_paused", f"{account} is not paused.", status=409, what_to_do="Nothing to do."
            )
        if row.pause_kind == "person" and row.paused_by == by:
            raise Refusal(
                "resumed_by_the_same_person",
                f"{by} paused {account}; another person must resume it.",
                status=403,
                what_to_do="Ask another ops lead or admin.",
            )
        row.pause_kind, row.pause_reason, row.paused_by = "", "", ""
        row.paused_at = row.probe_at = None
        row.not_executed_in_row = 0
        row.save()


def end_pause(account: str, *, kind: str) -> bool:
    """End a pause of this kind, and of no other: `outage` after an answered probe,
    `no_credential` once one is set."""
    return bool(
        ProviderAccount.objects.filter(name=account, pause_kind=kind).update(
            pause_kind="",
            pause_reason="",
            paused_by="",
            paused_at=None,
            probe_at=None,
            not_executed_in_row=0,
        )
    )


def stop_everything(*, by: str, reason: str) -> SendingStop:
    """The big stop; pressing it twice is the same stop."""
    with transaction.atomic():
        existing = SendingStop.objects.select_for_update().filter(ended_at=None).first()
        return existing or SendingStop.objects.create(stopped_by=by, reason=reason)


def start_again(*, by: str) -> None:
    """End the big stop. Raises Refusal when there is none, or `by` is who pressed it."""
    with transaction.atomic():
        stop = SendingStop.objects.select_for_update().filter(ended_at=None).first()
        if stop is None:
            raise Refusal(
                "not_stopped", "Sending is not stopped.", status=409, what_to_do="Nothing to do."
            )
        if stop.stopped_by == by:
            raise Refusal(
                "started_by_the_same_person",
                f"{by} stopped sending; another person must start it again.",
                status=403,
                what_to_do="Ask another ops lead or admin.",
            )
        stop.ended_by, stop.ended_at = by, timezone.now()
        stop.save()


def begin_quarantine(reason: str, detail: dict[str, Any]) -> Quarantine:
    """Stop every claim until two people lift it; one open quarantine at a time."""
    with transaction.atomic():
        existing = Quarantine.objects.select_for_update().filter(lifted_at=None).first()
        return existing or Quarantine.objects.create(reason=reason, detail=detail)


def open_quarantine() -> Quarantine | None:
    """The quarantine that stops every claim now, if there is one."""
    return Quarantine.objects.filter(lifted_at=None).first()


def ask_to_lift(*, by: str, by_hand: Sequence[str]) -> Quarantine:
    """Store that one person asks to lift it, and which accounts they compared by hand.

    Asking anew takes the place of what was asked before. Raises Refusal when there is none.
    """
    with transaction.atomic():
        quarantine = Quarantine.objects.select_for_update().filter(lifted_at=None).first()
        if quarantine is None:
            raise _no_quarantine()
        quarantine.asked_by, quarantine.asked_at = by, timezone.now()
        quarantine.by_hand = sorted(by_hand)
        quarantine.save(update_fields=["asked_by", "asked_at", "by_hand"])
        return quarantine


def _no_quarantine() -> Refusal:
    return Refusal(
        "no_quarantine", "There is no quarantine.", status=409, what_to_do="Nothing to do."
    )


def lift_quarantine(*, by: str, with_: str) -> None:
    """Lift the quarantine; two different people. Raises Refusal otherwise."""
    with transaction.atomic():
        quarantine = Quarantine.objects.select_for_update().filter(lifted_at=None).first()
        if quarantine is None:
            raise _no_quarantine()
        if not by or not with_ or by == with_:
            raise Refusal(
                "two_people_needed",
                "Lifting a quarantine takes two different people.",
                status=403,
                what_to_do="Name two people: an ops lead and an admin.",
            )
        quarantine.lifted_by, quarantine.lifted_with = by, with_
        quarantine.lifted_at = database_now()
        quarantine.save()
