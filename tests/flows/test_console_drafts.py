"""Drafts: kept for their writer alone, through a refusal, an ended session and no script."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import signing
from django.test import Client
from django.utils import timezone

from refunds.domain import states
from refunds.models import Operation
from review import drafts
from review.models import Draft, Intent
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, form_on, opened, signed_in, text, try_password, url

pytestmark = pytest.mark.django_db
REASON = "The parcel came back to us unopened, and the customer kept the shoes."
LONG = (REASON + " ") * 7  # more than 490 characters


def _waiting(cast: Cast) -> Operation:
    build.order()
    return build.proposed(cast.echo)


def _save(client: Client, fields: dict[str, str], **more: str) -> Any:
    return client.post("/drafts", fields | more)


def test_a_typed_text_is_there_again_with_its_time_and_was_not_submitted(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    assert _save(ben, drawn(ben, operation, "reject"), reason=LONG).status_code == 204
    page = opened(ben, operation)
    assert f">{LONG}</textarea>" in page
    assert "restored. It was not submitted." in page
    assert not Intent.objects.exists()
    assert Operation.objects.get(pk=operation.pk).state == states.AWAITING_APPROVAL


def test_only_its_writer_reads_a_draft_and_nobody_writes_anothers(cast: Cast) -> None:
    operation = _waiting(cast)
    ben, cleo = signed_in(cast.ben), signed_in(cast.cleo)
    fields = drawn(ben, operation, "reject")
    _save(ben, fields, reason=LONG)
    assert REASON not in opened(cleo, operation)
    mine = drawn(cleo, operation, "reject")
    assert _save(cleo, mine, draft_of=fields["draft_of"], reason="x" * 40).status_code == 204
    assert Draft.objects.get().fields["reason"] == LONG
    forged = signing.dumps([cast.ben.pk, "reject", str(operation.pk)], salt="something else")
    _save(cleo, mine, draft_of=forged, reason="x" * 40)
    assert Draft.objects.get().fields["reason"] == LONG


def test_a_draft_is_discarded_by_a_plain_button_and_by_emptying_the_field(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    _save(ben, drawn(ben, operation, "reject"), reason=REASON)
    fields = drawn(ben, operation, "reject")
    page = f"http://testserver/approvals?open={operation.pk}"
    answer = ben.post("/drafts/discard", fields, headers={"Referer": page})
    assert (answer.status_code, answer["Location"]) == (303, page)
    assert REASON not in opened(ben, operation)
    _save(ben, drawn(ben, operation, "reject"), reason=REASON)
    _save(ben, drawn(ben, operation, "reject"), reason="  ")
    assert not Draft.objects.exists()


def test_a_press_that_is_taken_ends_the_draft_and_a_late_save_does_not_bring_it_back(
    cast: Cast,
) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "reject")
    _save(ben, fields, reason=REASON)
    answer = ben.post(
        url(operation, "reject"), fields | {"reason": REASON, "reason_code": "not_owed"}
    )
    assert answer.status_code == 303, text(answer)
    assert not Draft.objects.exists()
    _save(ben, fields, reason=REASON)
    assert not Draft.objects.exists()


def test_a_conflict_keeps_the_text_on_the_page(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "reject")
    _save(ben, fields, reason=LONG)
    build.external_refund("4821", 2000)
    answer = ben.post(url(operation, "reject"), fields | {"reason": LONG.strip()})
    assert answer.status_code == 409
    assert LONG.strip() in text(answer)
    assert Draft.objects.exists()


def test_a_form_that_comes_after_its_session_is_kept_for_whom_it_was_drawn(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "reject") | {"reason": LONG.strip()}
    ben.session.flush()
    page = f"http://testserver/approvals?open={operation.pk}"
    answer = ben.post(url(operation, "reject"), fields, headers={"Referer": page})
    assert answer.status_code == 302
    assert Operation.objects.get(pk=operation.pk).state == states.AWAITING_APPROVAL
    sign_in = text(ben.get(answer["Location"]))
    assert "What you typed is kept" in sign_in
    assert REASON not in sign_in
    assert REASON not in opened(signed_in(cast.cleo), operation)
    assert try_password(ben, "ben", "a-long-test-password").status_code == 302
    again = opened(ben, operation)
    assert LONG.strip() in again
    assert "It was not submitted" in again
    assert form_on(again, url(operation, "reject"))["intent"] != fields["intent"]
    assert not Intent.objects.exists()


def test_a_form_that_could_not_be_verified_keeps_its_text(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "reject") | {"csrfmiddlewaretoken": "x" * 64, "reason": REASON}
    answer = ben.post(url(operation, "reject"), fields)
    assert (answer.status_code, "kept as a draft" in text(answer)) == (403, True)
    assert REASON in opened(ben, operation)


def test_a_card_number_is_never_kept(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    answer = _save(ben, drawn(ben, operation, "reject"), reason="Card 4111 1111 1111 1111 again")
    assert answer.status_code == 422
    assert "card" in text(answer).lower()
    assert not Draft.objects.exists()


def test_ticks_passwords_and_unknown_forms_are_never_kept(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    _waiting(cast)
    fields = form_on(text(ben.get("/sending")), "/sending/stop")
    _save(ben, fields, reason=REASON, password="secret", separate_refund_confirmed="on")
    assert Draft.objects.get().fields == {"reason": REASON}
    unknown = signing.dumps([cast.ben.pk, "approve", "x"], salt="review.drafts")
    _save(ben, fields, draft_of=unknown, reason=REASON)
    assert Draft.objects.count() == 1


def test_a_draft_is_forgotten_after_seven_days(cast: Cast) -> None:
    operation = _waiting(cast)
    ben = signed_in(cast.ben)
    _save(ben, drawn(ben, operation, "reject"), reason=REASON)
    Draft.objects.update(at=timezone.now() - timedelta(days=7, seconds=1))
    assert REASON not in opened(ben, operation)
    assert drafts.sweep(timezone.now()) == 1
    assert not Draft.objects.exists()
