"""The page of one account, and the way out of a quarantine on the page Providers."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reconciliation.models import AccountSweep
from refunds import accepting
from refunds.ledger import sending
from refunds.models import AcceptedFact, Person, Quarantine
from refunds.providers import registry
from review.models import RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.monitors.stage import attempt, evidence, in_state

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", sorted(registry.accounts()))
def test_each_fact_is_shown_with_how_we_know_it_and_since_when(cast: Cast, name: str) -> None:
    page = text(signed_in(cast.mia).get(f"/sending/{name}"))
    for words in ("Life of a key, K", "Latest execution, D", "Delay of lookups, V", "Notices"):
        assert words in page, words
    assert "2026-11-29<small>" in page
    assert ("<b>unknown</b>" in page) == (name in UNKNOWN)


UNKNOWN = {"plain-blind", "plain-hooks", "plain-stored500", "plain-unbounded", "stripe-main"}


def test_no_fact_of_a_contract_is_without_a_source_and_a_day() -> None:
    for account in registry.accounts().values():
        contract = account.contract
        facts = (contract.key_window, contract.flight_max, contract.lookup_lag, contract.idle_close)
        for each in (*facts, contract.terms):
            assert each.source, account.name
            assert (each.on == "") == (each.basis == "unknown"), account.name


def test_an_account_that_nothing_was_sent_to_is_not_called_well(cast: Cast) -> None:
    page = text(signed_in(cast.omar).get("/sending/plain-main"))
    assert "nothing was sent, so nothing is known about it" in page
    assert "none ever came" in page


def test_an_account_says_how_it_answered_and_when_its_lists_were_read(cast: Cast) -> None:
    operation = in_state(cast, "unknown", seconds_ago=60)
    for no in (2, 3, 4):
        attempt(operation, no, seconds_ago=30, outcome="confirmed")
    evidence(operation, "lookup")
    evidence(operation, "lookup", verdict="cannot_tell")
    now = timezone.now()
    AccountSweep.objects.create(
        provider_account="plain-main",
        kind="recent",
        due_at=now,
        completed_at=now,
        covered_from=now,
        covered_until=now,
        because="the provider answered HTTP 503",
    )
    page = text(signed_in(cast.omar).get("/sending/plain-main"))
    for words in (
        "4; 3 with an answer to trust, 1 without (25 %), 0 not executed",
        "2, 1 could tell",
        "read to its end",
        "the provider answered HTTP 503",
        "unanswered",
    ):
        assert words in page, words


def test_the_list_of_accounts_leads_to_each_and_one_that_is_not_ours_is_a_404(cast: Cast) -> None:
    client = signed_in(cast.ines)
    sending.pause("plain-main", kind="outage", reason="gone away", by="dispatcher")
    assert 'href="/sending/plain-main"' in text(client.get("/sending"))
    assert "gone away" in text(client.get("/sending/plain-main"))
    assert client.get("/sending/nobody").status_code == 404


# Accepted figures


def proposed_fact(by: Person) -> AcceptedFact:
    return accepting.propose(
        "stripe-main", "flight_max", 3600, "resend", reason="Measured in May.", days=90, by=by
    )


def _propose(client: Client, **more: str) -> Any:
    address = "/sending/stripe-main/accept"
    typed = {"fact": "flight_max", "seconds": "3600", "scope": "resend", "days": "90"}
    fields = form_on(text(client.get("/sending/stripe-main")), address)
    return client.post(address, fields | typed | {"reason": "Measured in May."} | more)


def test_a_figure_is_proposed_by_one_and_counts_when_another_has_read_the_risk(cast: Cast) -> None:
    ines, adam = signed_in(cast.ines), signed_in(cast.adam)
    assert "never sends again by itself" in text(ines.get("/sending/stripe-main"))
    assert _propose(ines).status_code == 303
    fact = AcceptedFact.objects.get()
    page = text(ines.get("/sending/stripe-main"))
    assert "You proposed it: another person confirms it." in page
    assert "one refund can be paid twice" in page
    address = f"/sending/facts/{fact.pk}/confirm"
    assert not has_form(page, address)
    answer = adam.post(address, form_on(text(adam.get("/sending/stripe-main")), address))
    assert answer.status_code == 303
    page = text(adam.get("/sending/stripe-main"))
    assert "confirmed by adam" in page
    assert "by what two people accepted" in page
    fact.refresh_from_db()
    assert (fact.seconds, fact.confirmed_by) == (3600, cast.adam)


def test_one_person_withdraws_a_figure_at_once(cast: Cast) -> None:
    fact = proposed_fact(cast.ines)
    accepting.confirm(fact.pk, by=cast.adam)
    olga, address = signed_in(cast.olga), f"/sending/facts/{fact.pk}/withdraw"
    fields = form_on(text(olga.get("/sending/stripe-main")), address)
    assert olga.post(address, fields | {"reason": ""}).status_code == 422
    assert olga.post(address, fields | {"reason": "They were later."}).status_code == 303
    page = text(olga.get("/sending/stripe-main"))
    assert "Withdrawn by olga" in page
    assert "never sends again by itself" in page


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"seconds": "3,600"}, "no duration"),
        ({"seconds": "-1"}, "no duration"),
        ({"days": "181"}, "1 to 180 days"),
        ({"fact": "key_window"}, "cannot be accepted"),
        ({"reason": "Feels so."}, "A reason has 10"),
        ({"seconds": "90000"}, "outlives the key"),
    ],
)
def test_a_figure_that_cannot_be_is_refused_and_what_was_typed_stays(
    cast: Cast, typed: dict[str, str], says: str
) -> None:
    answer = _propose(signed_in(cast.ines), **typed)
    assert answer.status_code == 422
    assert says in text(answer)
    assert not AcceptedFact.objects.exists()


def test_a_stated_fact_is_not_offered_and_a_reader_accepts_nothing(cast: Cast) -> None:
    assert not has_form(
        text(signed_in(cast.ines).get("/sending/plain-main")), "/sending/plain-main/accept"
    )
    ben = signed_in(cast.ben)
    assert not has_form(text(ben.get("/sending/stripe-main")), "/sending/stripe-main/accept")


# Quarantine


def _begun() -> Quarantine:
    return sending.begin_quarantine("The database does not know a send that it permitted.", {})


def _press(person: Person, act: str, **more: Any) -> Any:
    client = signed_in(person)
    return _with(client, act, **more)


def _with(client: Client, act: str, **more: Any) -> Any:
    address = f"/sending/quarantine/{act}"
    return client.post(address, form_on(text(client.get("/sending")), address) | more)


def test_one_asks_another_lifts_and_every_page_says_so_until_then(cast: Cast) -> None:
    _begun()
    page = text(signed_in(cast.ben).get("/sending"))
    assert "Everything is known again." in page
    assert not has_form(page, "/sending/quarantine/ask")
    assert _press(cast.ines, "ask").status_code == 303
    ines = text(signed_in(cast.ines).get("/sending"))
    assert "ines asked to lift it" in ines
    assert not has_form(ines, "/sending/quarantine/lift")
    assert _press(cast.adam, "lift").status_code == 303
    lifted = Quarantine.objects.get()
    assert (lifted.lifted_by, lifted.lifted_with) == ("ines", "adam")
    assert "Quarantine" not in text(signed_in(cast.ben).get("/sending"))


def test_two_ops_leads_are_not_two_roles(cast: Cast) -> None:
    _begun()
    _press(cast.ines, "ask")
    answer = _press(cast.olga, "lift")
    assert answer.status_code == 403
    assert "an ops lead and an admin" in text(answer)
    assert RefusedAct.objects.get().code == "two_people_needed"
    assert Quarantine.objects.get().lifted_at is None


def test_what_is_missing_is_said_and_lifts_nothing(cast: Cast) -> None:
    build.order()
    _begun()
    client = signed_in(cast.ines)
    assert "The refunds of plain-main since" in text(client.get("/sending"))
    answer = _with(client, "ask")
    assert answer.status_code == 422
    assert "Not lifted. The refunds of plain-main since" in text(answer)
    assert Quarantine.objects.get().asked_by == ""


def test_an_account_without_a_list_is_ticked_by_whoever_compared_it(cast: Cast) -> None:
    build.order(account="plain-blind")
    _begun()
    assert _press(cast.adam, "ask").status_code == 422
    assert _press(cast.adam, "ask", by_hand=["plain-blind"]).status_code == 303
    assert "having compared plain-blind by hand" in text(signed_in(cast.ines).get("/sending"))
    assert _press(cast.ines, "lift").status_code == 303


def test_whoever_asked_anew_meanwhile_is_looked_at_first(cast: Cast) -> None:
    _begun()
    _press(cast.ines, "ask")
    adam = signed_in(cast.adam)
    fields = form_on(text(adam.get("/sending")), "/sending/quarantine/lift")
    sending.ask_to_lift(by="olga", by_hand=["plain-main"])
    answer = adam.post("/sending/quarantine/lift", fields)
    assert answer.status_code == 409
    assert "Somebody else has acted on the quarantine" in text(answer)
