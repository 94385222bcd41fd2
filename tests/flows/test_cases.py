"""Working on cases at the console: claims and their races, notes, looks, rests, and signatures."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from reconciliation import case_work, cases, reconciler
from reconciliation.models import Case, CaseEvent, CaseStatement, Ruling, RulingEnd
from refunds import dispatch
from refunds.domain import states
from refunds.ledger import lock
from refunds.models import Evidence, Operation, Order, Payment
from review.models import Draft, Intent, RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.ledger.rulings import (
    PDF,
    REASON,
    attached,
    looked,
    ruled,
    signed,
    unknown_with_case,
)
from tests.outside.steps import by_hand, turn
from tests.page import Page
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def case(provider: SandboxProcess, cast: Cast) -> Case:
    """Paid, and nothing but a person can find out."""
    return unknown_with_case(provider, cast, account="plain-blind", fault="drop_after_commit")


def page(client: Client, case: Case) -> str:
    answer = client.get(f"/cases/{case.pk}", follow=True)
    assert answer.status_code == 200
    return text(answer)


def press(client: Client, case: Case, act: str, **more: Any) -> Any:
    """Open the case's page, fill one form and post it once."""
    url = f"/cases/{case.pk}/{act}"
    return client.post(url, form_on(page(client, case), url) | more)


def fresh(case: Case) -> Case:
    return Case.objects.select_related("owner").get(pk=case.pk)


def kinds(case: Case) -> list[str]:
    return list(CaseEvent.objects.filter(case=case).order_by("pk").values_list("kind", flat=True))


TOLD = {
    "choice": "happened",
    "reason": REASON,
    "told_ref": "rf_seen",
    "told_amount": "40.00",
    "told_currency": "USD",
    "told_status": "succeeded",
    "told_created": "2026-11-29T14:02:11Z",
    "told_where": "dashboard, payments",
}


def test_a_claim_holds_for_half_an_hour_and_the_second_person_hears_who_was_first(
    cast: Cast, case: Case
) -> None:
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    drawn = form_on(page(ines, case), f"/cases/{case.pk}/claim")
    assert press(omar, case, "claim").status_code == 303
    late = ines.post(f"/cases/{case.pk}/claim", drawn)
    assert late.status_code == 409
    assert "omar claimed this" in text(late)
    held = fresh(case)
    assert held.owner == cast.omar
    assert held.owned_until is not None
    assert abs(held.owned_until - timezone.now() - timedelta(seconds=1800)) < timedelta(seconds=30)
    assert kinds(case) == ["claimed"]
    assert CaseEvent.objects.get().intent == Intent.objects.get(form="case_claim").pk


def test_a_claim_whose_time_is_over_holds_nothing(cast: Cast, case: Case) -> None:
    case_work.claim(case.pk, cast.omar)
    Case.objects.update(owned_until=timezone.now() - timedelta(seconds=1))
    ines = signed_in(cast.ines)
    assert "the claim of omar lapsed" in page(ines, case)
    assert press(ines, case, "claim").status_code == 303
    assert fresh(case).owner == cast.ines


def test_typing_a_draft_about_the_case_extends_the_claim(cast: Cast, case: Case) -> None:
    case_work.claim(case.pk, cast.omar)
    soon = timezone.now() + timedelta(seconds=60)
    Case.objects.update(owned_until=soon)
    omar = signed_in(cast.omar)
    drawn = form_on(page(omar, case), f"/cases/{case.pk}/resolve")
    assert omar.post("/drafts", drawn | {"reason": "I looked at the dash"}).status_code == 204
    until = fresh(case).owned_until
    assert until is not None
    assert until > soon


def test_taking_over_needs_a_reason_and_names_who_held_it(cast: Cast, case: Case) -> None:
    case_work.claim(case.pk, cast.omar)
    ines = signed_in(cast.ines)
    short = press(ines, case, "take-over", reason="mine")
    assert (short.status_code, fresh(case).owner) == (422, cast.omar)
    press(ines, case, "take-over", reason="Omar is off from now on.")
    assert fresh(case).owner == cast.ines
    last = CaseEvent.objects.order_by("-pk")[0]
    assert (last.kind, last.detail["before"]) == ("taken_over", "omar")
    back = press(ines, case, "release")
    assert (back.status_code, fresh(case).owner) == (303, None)


def test_notes_stand_in_the_timeline_for_everybody(cast: Cast, case: Case) -> None:
    for person in (cast.ben, cast.fay, cast.mia):
        answer = press(signed_in(person), case, "note", note=f"{person.username} was here.")
        assert answer.status_code == 303
    assert "fay was here." in page(signed_in(cast.omar), case)
    assert press(signed_in(cast.omar), case, "note", note="  ").status_code == 422
    card = press(signed_in(cast.omar), case, "note", note="card 4111 1111 1111 1111")
    assert card.status_code == 422


def test_check_now_makes_a_lookup_due_and_rests_for_ten_seconds(
    provider: SandboxProcess, cast: Cast, rung: list[tuple[str, str]]
) -> None:
    case = unknown_with_case(provider, cast)
    Operation.objects.update(due_at=timezone.now() + timedelta(hours=1))
    rung.clear()
    omar = signed_in(cast.omar)
    too_soon = press(omar, case, "check")  # the case's own lookup is seconds old
    assert too_soon.status_code == 409
    as_a_minute_ago()
    assert press(omar, case, "check").status_code == 303
    assert rung == [("reconciliation.tasks.look_up", str(case.operation_id))]
    due_at = Operation.objects.get().due_at
    assert due_at is not None
    assert due_at <= timezone.now()
    assert press(omar, case, "check").status_code == 409


def as_a_minute_ago() -> None:
    """What was looked up stands as if it had been a minute ago; history is set aside for that."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE evidence SET started_at = started_at - interval '1 minute'")
        cursor.execute("SET session_replication_role = DEFAULT")


def test_an_account_without_a_lookup_is_not_asked(cast: Cast, case: Case) -> None:
    omar = signed_in(cast.omar)
    assert not has_form(page(omar, case), f"/cases/{case.pk}/check")
    drawn = form_on(page(omar, case), f"/cases/{case.pk}/claim")
    assert omar.post(f"/cases/{case.pk}/check", drawn).status_code == 409


def test_a_case_rests_for_a_day_at_most_and_past_its_due_time_for_ops_leads_only(
    cast: Cast, case: Case
) -> None:
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    why = {"reason": "The provider answers tomorrow."}
    assert press(omar, case, "snooze", hours="25", **why).status_code == 422
    assert press(omar, case, "snooze", hours="12", **why).status_code == 403
    assert RefusedAct.objects.get().act == "case_snooze"
    assert press(omar, case, "snooze", hours="1", **why).status_code == 303
    listed = text(omar.get("/unknown?tab=person"))
    assert "Nothing needs a person." in listed
    assert f"case C-{case.pk}" in text(omar.get("/unknown?tab=snoozed"))
    assert press(ines, case, "snooze", hours="24", **why).status_code == 303


def test_something_new_wakes_a_snoozed_case(cast: Cast, case: Case) -> None:
    case_work.snooze(case.pk, cast.omar, seconds=600, reason="Waiting for mail.", version=1)
    assert case.operation_id is not None
    with transaction.atomic():
        cases.open_case(lock(case.operation_id), "contradiction", "Money moved after all.")
    assert fresh(case).snoozed_until is None


def test_escalating_and_assigning(cast: Cast, case: Case) -> None:
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    answer = press(omar, case, "escalate", to="provider", reason="They must answer by noon.")
    assert answer.status_code == 303
    assert "Escalated to the provider’s support." in page(omar, case)
    assert press(omar, case, "escalate", to="nobody", reason="x" * 12).status_code == 422
    assert press(ines, case, "assign", to="olga").status_code == 303
    assert fresh(case).owner == cast.olga
    assert press(ines, case, "assign", to="ben").status_code == 422
    assert not has_form(page(omar, case), f"/cases/{case.pk}/assign")


def test_two_signatures_through_the_pages(provider: SandboxProcess, cast: Cast, case: Case) -> None:
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    refused = press(omar, case, "resolve", **TOLD)
    assert refused.status_code == 422
    assert "Missing" in text(refused)
    assert REASON.replace("'", "&#x27;") in text(refused)
    upload = SimpleUploadedFile("november.pdf", PDF, content_type="text/html")
    assert press(omar, case, "statements", file=upload).status_code == 303
    first = press(omar, case, "resolve", **TOLD)
    assert first.status_code == 303
    told_after = text(omar.get(first["Location"]))
    assert "not yet in force" in told_after
    assert not has_form(told_after, f"/cases/{case.pk}/sign")
    assert "40.00 USD" in page(ines, case)
    assert press(ines, case, "sign").status_code == 303
    operation = Operation.objects.get()
    assert operation.state == states.SUCCEEDED
    assert operation.provider_refunds.get().ref == "rf_seen"
    assert "People ruled: it happened" in text(ines.get(f"/operations/{operation.pk}"))


def test_a_crafted_choice_is_refused_and_nothing_is_recorded(cast: Cast, case: Case) -> None:
    omar = signed_in(cast.omar)
    for choice in ("not_happened", "written_off", "send_again", "", "accept_figure"):
        answer = press(omar, case, "resolve", choice=choice, reason=REASON)
        assert answer.status_code == 422, choice
    assert not Ruling.objects.exists()
    assert Operation.objects.get().state == states.UNKNOWN


def test_the_second_of_two_people_keeps_the_text_and_sees_who_was_first(
    cast: Cast, case: Case
) -> None:
    attached(case, cast.omar)
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    url = f"/cases/{case.pk}/resolve"
    drawn = form_on(page(ines, case), url)
    assert press(omar, case, "resolve", **TOLD).status_code == 303
    mine = TOLD | {"reason": "A text that ines had typed, and that stays."}
    late = ines.post(url, drawn | mine)
    assert late.status_code == 409
    assert "omar signed first" in text(late)
    assert mine["reason"] in text(late)
    assert Draft.objects.get(person=cast.ines, form="resolve").fields["reason"] == mine["reason"]
    assert Ruling.objects.count() == 1


def test_one_form_pressed_twice_is_one_ruling(cast: Cast, case: Case) -> None:
    attached(case, cast.omar)
    omar = signed_in(cast.omar)
    url = f"/cases/{case.pk}/resolve"
    drawn = form_on(page(omar, case), url) | TOLD
    assert omar.post(url, drawn).status_code == 303
    again = omar.post(url, drawn)
    assert again.status_code == 200
    assert "Already recorded" in text(again)
    assert Ruling.objects.count() == 1


def test_what_moved_while_somebody_wrote_is_named_field_by_field_and_the_text_is_kept(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast, account="plain-unbounded")
    assert case.operation is not None
    first = by_hand(provider, 4000, account="plain-unbounded")
    looked(case.operation)
    omar = signed_in(cast.omar)
    drawn = form_on(page(omar, case), f"/cases/{case.pk}/resolve")
    second = by_hand(provider, 1000, account="plain-unbounded")
    turn(provider, first, "failed")
    looked(case.operation)
    typed = {"choice": "still_unknown", "reason": REASON}
    answer = omar.post(f"/cases/{case.pk}/resolve", drawn | typed)
    shown = Page("", answer.status_code, text(answer))
    assert (shown.status, Ruling.objects.exists()) == (409, False)
    moved = " ".join(shown.part("since-seen").split())
    assert f"status of {first} succeeded failed" in moved
    assert f"refund {second} not shown 10.00 USD, succeeded" in moved
    assert "reasons of the case" not in moved  # only what moved
    assert shown.form("resolution-form").values["reason"] == REASON
    forged = omar.post(f"/cases/{case.pk}/resolve", drawn | typed | {"seen": "x"})
    assert (forged.status_code, "since-seen" in text(forged)) == (409, False)


def test_evidence_between_the_signatures_voids_the_first_for_good(
    provider: SandboxProcess, cast: Cast, case: Case
) -> None:
    attached(case, cast.omar)
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    press(omar, case, "resolve", **TOLD)
    drawn = form_on(page(ines, case), f"/cases/{case.pk}/sign")
    Evidence.objects.create(
        operation_id=case.operation_id,
        kind="notice",
        started_at=timezone.now(),
        body=b"{}",
        facts={"because": "A notice came."},
    )
    assert "no longer counts" in page(ines, case)
    answer = ines.post(f"/cases/{case.pk}/sign", drawn)
    assert answer.status_code == 409
    assert RulingEnd.objects.get().outcome == "voided"
    assert Operation.objects.get().state == states.UNKNOWN


def test_who_proposed_it_reads_and_does_not_sign(provider: SandboxProcess, cast: Cast) -> None:
    provider.payment(account="plain-blind")
    build.order(account="plain-blind")
    operation = build.authorized(cast.omar, cast.ben, amount_minor=4000)
    provider.fault("drop_after_commit", account="plain-blind")
    dispatch.send(str(operation.pk))
    reconciler.look_up(operation.pk)
    case = Case.objects.get()
    omar = signed_in(cast.omar)
    shown = page(omar, case)
    assert "You cannot sign this: it was proposed by you" in shown
    assert not has_form(shown, f"/cases/{case.pk}/resolve")
    drawn = form_on(shown, f"/cases/{case.pk}/claim")
    answer = omar.post(f"/cases/{case.pk}/resolve", drawn | TOLD)
    assert answer.status_code == 403
    assert RefusedAct.objects.get().code == "own_proposal"


def test_a_statement_is_given_out_as_a_file_to_those_who_may_see(cast: Cast, case: Case) -> None:
    attached(case, cast.omar)
    url = f"/cases/{case.pk}/statements/{CaseStatement.objects.get().pk}"
    answer = signed_in(cast.mia).get(url)
    assert answer.content == PDF
    assert answer["Content-Type"] == "application/pdf"
    assert answer["Content-Disposition"].startswith("attachment;")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert signed_in(cast.rosa).get(url).status_code == 404
    assert signed_in(cast.dora).get(url).status_code == 404
    other = Case.objects.create(
        payment=Payment.objects.get(), reasons=["external"], because="x", due_at=timezone.now()
    )
    moved = f"/cases/{other.pk}/statements/{CaseStatement.objects.get().pk}"
    assert signed_in(cast.mia).get(moved).status_code == 404


def test_a_case_about_a_payment_has_a_page_and_freezes_the_order_that_nobody_knows(
    cast: Cast, case: Case
) -> None:
    order = build.order("4899")
    with transaction.atomic():
        found = cases.open_payment_case(
            Payment.objects.select_for_update().get(order=order), "external", "rf_9 is not ours."
        )
    assert found is not None
    omar = signed_in(cast.omar)
    shown = page(omar, found)
    assert "rf_9 is not ours." in shown
    no_ticket = press(omar, found, "resolve", choice="explained", reason=REASON)
    assert no_ticket.status_code == 422
    answer = press(omar, found, "resolve", choice="not_ours", reason=REASON)
    assert answer.status_code == 303
    order = Order.objects.get(ref="4899")
    assert (order.frozen, order.payments.get().halted) == (True, False)
    assert Case.objects.get(pk=found.pk).closed_at is not None
    assert "Closed" in page(omar, found)


@pytest.fixture
def cluster(provider: SandboxProcess, cast: Cast) -> list[Case]:
    """Three refunds of one account that were lost together."""
    return [
        unknown_with_case(provider, cast, ref=f"48{number}", amount_minor=1000 + number)
        for number in (30, 31, 32)
    ]


def test_a_cluster_is_claimed_together_and_who_was_faster_is_named(
    cast: Cast, cluster: list[Case]
) -> None:
    omar = signed_in(cast.omar)
    shown = text(omar.get("/unknown"))
    assert "3 refunds, 30.93 USD" in shown
    drawn = cluster_form(omar)
    case_work.claim(cluster[1].pk, cast.ines)
    answer = omar.post("/unknown/together", drawn | {"act": "claim"})
    result = text(omar.get(answer["Location"]))
    assert "2 of the cluster claimed" in result
    assert "Left out" in result
    assert "ines claimed" in result
    owners = [fresh(case).owner for case in cluster]
    assert owners == [cast.omar, cast.ines, cast.omar]


def test_a_cluster_gets_one_note_and_one_statement_and_is_never_ruled_together(
    cast: Cast, cluster: list[Case]
) -> None:
    omar = signed_in(cast.omar)
    omar.post("/unknown/together", cluster_form(omar) | {"act": "note", "note": "One outage."})
    assert CaseEvent.objects.filter(kind="noted").count() == 3
    upload = SimpleUploadedFile("outage.pdf", PDF)
    omar.post("/unknown/together", cluster_form(omar) | {"act": "attach", "file": upload})
    assert CaseStatement.objects.values("statement").distinct().count() == 1
    assert CaseStatement.objects.count() == 3
    for act in ("resolve", "sign", ""):
        assert omar.post("/unknown/together", cluster_form(omar) | {"act": act}).status_code == 422
    assert not Ruling.objects.exists()
    many = cluster_form(omar) | {"case": ["1.1"] * 51, "act": "note", "note": "x"}
    assert omar.post("/unknown/together", many).status_code == 422


def cluster_form(client: Client) -> dict[str, Any]:
    """The cluster's form, with every case in it."""
    html = text(client.get("/unknown"))
    fields: dict[str, Any] = dict(form_on(html, "/unknown/together"))
    fields.pop("file", None)
    fields["case"] = re.findall(r'name="case" value="([0-9.]+)"', html)
    return fields


def test_money_still_owed_is_a_list_and_a_lead_may_choose_the_remedy(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast, account="plain-unbounded")
    attached(case, cast.omar)
    signed(ruled(case, cast.omar, "not_happened"), cast.ines)
    owed = Case.objects.get(closed_at=None)
    ben = signed_in(cast.ben)
    assert "The customer still expects 40.00 USD" in text(ben.get("/unknown?tab=owed"))
    assert "Nothing needs a person." in text(ben.get("/unknown?tab=person"))
    remedy = {"choice": "remedy", "reason": "The customer asked for a voucher."}
    assert press(ben, owed, "resolve", **remedy, kind="voucher").status_code == 422
    answer = press(ben, owed, "resolve", **remedy, kind="voucher", reference_remedy="V-2210")
    assert answer.status_code == 303
    assert Ruling.objects.get(choice="remedy").said == {"kind": "voucher", "reference": "V-2210"}
    assert "No customer waits" in text(ben.get("/unknown?tab=owed"))
    assert provider.refunds("plain-unbounded") == []
