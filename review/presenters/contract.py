"""A provider's contract in words: each fact with its value, how we know it, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from refunds.domain.contract import Fact, ProviderContract, Source
from review.presenters.words import span

_KEYS = {
    "none": "none: the same request twice is two refunds",
    "weak": "stored on success only: after an error the same key runs anew",
    "window": "kept for a time",
    "forever": "kept for ever",
}
_LOOKUPS = {
    "none": "none",
    "now": "the refunds of a payment, listed without delay",
    "lagged": "the refunds of a payment, listed with a delay",
}
_NOTICES = {
    "none": "none",
    "hint": "a hint: a lookup follows each",
    "proof": "a proof: signed over the body, and there is no lookup",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """One line: `known` is documented, measured or unknown; `on` the day it was read, or empty."""

    fact: str
    value: str
    known: str
    source: str
    on: str
    used_for: str


def fact_rows(contract: ProviderContract) -> list[FactRow]:
    """What the provider promises, in the order in which the engine needs it."""
    terms = contract.terms
    return [
        _kind("Keys", _KEYS[contract.keys], terms, "sending again"),
        _duration("Life of a key, K", contract.key_window, "sending again: never after it")
        if contract.keys == "window"
        else _kind("Life of a key, K", "does not apply", terms, ""),
        _kind(
            "Refusals under the key",
            "kept" if contract.rejections_stored else "not kept",
            terms,
            "ending beside a lost answer",
        ),
        _kind(
            "Server errors under the key",
            "replayed for good" if contract.server_errors_replayed else "heal",
            terms,
            "sending again",
        ),
        _kind("Lookup", _LOOKUPS[contract.lookup], terms, "finding a lost refund"),
        _kind(
            "Our marker",
            "given back with each refund"
            if contract.markers_returned
            else "not given back: an equal refund may be ours",
            terms,
            "telling ours from others",
        ),
        _kind(
            "List of the account",
            "none" if contract.account_list == "none" else "by time of creation",
            terms,
            "refunds made elsewhere, take-backs, quarantine",
        ),
        _duration("Latest execution, D", contract.flight_max, "absence, and sending again"),
        _duration("Delay of lookups, V", contract.lookup_lag, "absence"),
        _duration(
            "Silent connections are closed after, I", contract.idle_close, "the last possible write"
        ),
        _kind("Notices", _NOTICES[contract.notice], terms, "finding out sooner"),
        _kind(
            "Totals",
            "refuses more than was captured" if contract.polices_totals else "not policed",
            terms,
            "",
        ),
        _kind(
            "May be taken back for",
            f"{contract.watch_after_success_days} days",
            terms,
            "watching after success",
        ),
    ]


def _kind(fact: str, value: str, terms: Source, used_for: str) -> FactRow:
    return FactRow(
        fact=fact,
        value=value,
        known=terms.basis,
        source=terms.source,
        on=terms.on,
        used_for=used_for,
    )


def _duration(fact: str, value: Fact, used_for: str) -> FactRow:
    shown = "unknown" if value.seconds is None else span(timedelta(seconds=value.seconds))
    return FactRow(
        fact=fact,
        value=shown,
        known=value.basis,
        source=value.source,
        on=value.on,
        used_for=used_for,
    )


def patience(contract: ProviderContract) -> str:
    """Our own figures, which are no facts of the provider."""
    person = contract.normal_window_seconds + contract.escalation_grace_seconds
    return (
        f"We look after {', '.join(f'{each} s' for each in contract.lookup_schedule[:3])} and then"
        f" less often; a person is asked after {span(timedelta(seconds=person))} in doubt, and an"
        f" alarm fires after {span(timedelta(seconds=contract.unknown_target_seconds))}."
    )
