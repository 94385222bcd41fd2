"""The pages beside Providers: the accounts' lists, the notices, and settlement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from reconciliation.models import AccountSweep, Case, Notice, SettlementLine
from refunds.models import ProviderRefund
from review import access, found_reads, polled, roles
from review.paging import PAGE_ROWS, signature, whole
from review.presenters import found as words
from review.presenters.then_and_now import stated

POLL_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRow:
    """One notice with what it tells, why it waits, and what would release it or became of it."""

    row: Notice
    tells: str
    why: str
    release: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """One settlement line beside our record of its refund, and the case that asks about it."""

    row: SettlementLine
    amount: str
    ours: ProviderRefund | None
    case: Case | None


@require_GET
def lists(request: HttpRequest) -> HttpResponse:
    """How far each account's own lists were read, and what they showed; `since` is a poll."""
    who = access.require(request, roles.SEE)
    sweeps = found_reads.sweeps()
    marks = [_mark(each) for each in sweeps]
    if "since" in request.GET:
        return polled.answer(request, marks)
    found = found_reads.found(who.clock.now)
    context: dict[str, Any] = {
        "clock": who.clock,
        "sweeps": sweeps,
        "without": found_reads.without_lists(),
        "outside": found.outside,
        "unplaced": [(each, stated(each.amount_minor, each.currency)) for each in found.unplaced],
        "disputes": [(each, stated(each.amount_minor, each.currency)) for each in found.disputes],
        "found_days": found_reads.FOUND_DAYS,
        "poll_seconds": POLL_SECONDS,
        "signature": signature(marks),
    }
    return render(request, "review/lists.html", context)


def _mark(row: AccountSweep) -> tuple[object, int]:
    return (f"{row.pk} {row.completed_at} {row.because}", 0)


@require_GET
def notices(request: HttpRequest) -> HttpResponse:
    """`tab` applied, else those that wait; `after`: where a page begins; `since` is a poll."""
    who = access.require(request, roles.SEE)
    tab = "applied" if request.GET.get("tab") == "applied" else ""
    after = whole(request.GET.get("after"))
    rows = found_reads.applied_notices(after) if tab else found_reads.waiting_notices(after)
    found = list(rows[: PAGE_ROWS + 1])
    shown = found[:PAGE_ROWS]
    marks = [(each.pk, each.tries) for each in shown]
    if "since" in request.GET:
        return polled.answer(request, marks, url=f"{request.path}?tab={tab}" if tab else "")
    context: dict[str, Any] = {
        "clock": who.clock,
        "tab": tab,
        "after": after,
        "rows": [_notice(each) for each in shown],
        "next": shown[-1].pk if len(found) > PAGE_ROWS else None,
        "refused": found_reads.refused(who.clock.now),
        "poll_seconds": POLL_SECONDS,
        "signature": signature(marks),
    }
    return render(request, "review/notices.html", context)


def _notice(row: Notice) -> NoticeRow:
    plain = words.NoticeFacts(
        told=row.facts,
        has_operation=row.operation_id is not None,
        waits_for_lookup=row.lookup_after is not None,
        case_ref=f"C-{row.case_id}" if row.case_id else "",
        tries=row.tries,
        failures=row.failures,
        outcome=row.outcome,
    )
    waits = row.applied_at is None
    return NoticeRow(
        row=row,
        tells=words.tells(plain),
        why=words.why_it_waits(plain) if waits else words.what_became(plain),
        release=words.what_releases_it(plain) if waits else "",
    )


@require_GET
def settlement(request: HttpRequest) -> HttpResponse:
    """`verdict` different, extra, missing or match, else all that a person may have to look at;
    `after`: where a page begins."""
    who = access.require(request, roles.SEE)
    verdict = request.GET.get("verdict", "")
    verdict = verdict if verdict in found_reads.VERDICTS else ""
    after = whole(request.GET.get("after"))
    found = list(found_reads.lines(verdict, after)[: PAGE_ROWS + 1])
    shown = found[:PAGE_ROWS]
    ours = found_reads.booked(shown)
    cases = found_reads.cases_of(ours.values())
    context: dict[str, Any] = {
        "clock": who.clock,
        "verdict": verdict,
        "verdicts": list(found_reads.counts().items()),
        "after": after,
        "rows": [_line(each, ours, cases) for each in shown],
        "next": shown[-1].pk if len(found) > PAGE_ROWS else None,
    }
    return render(request, "review/settlement.html", context)


def _line(
    row: SettlementLine, ours: dict[tuple[str, str], ProviderRefund], cases: dict[int, Case]
) -> LineRow:
    known = ours.get((row.provider_account, row.provider_refund_ref))
    asks = row.verdict != "match" and known is not None
    return LineRow(
        row=row,
        amount=stated(row.amount_minor, row.currency),
        ours=known,
        case=cases.get(known.pk) if known and asks else None,
    )
