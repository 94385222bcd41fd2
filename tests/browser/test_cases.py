"""Cases at two screens: races, evidence that moves, missing proof, and what began together."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from reconciliation import reconciler
from reconciliation.models import Case, CaseEvent, Ruling, RulingEnd
from refunds.domain import states
from refunds.models import Evidence, Operation
from tests.browser.case_stage import CaseStage
from tests.browser.looking import NARROW, WIDE, look
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors

REASON = "I read it line by line in the provider's dashboard."
BEAT = "document.body.dispatchEvent(new CustomEvent('heartbeat'))"


@pytest.fixture
def cases(stage: Stage) -> CaseStage:
    return CaseStage(stage)


def _open(page: Page, case: Case) -> None:
    page.goto(f"/cases/{case.pk}")
    expect(page.locator("#ruling")).to_be_visible()


def _state(case: Case) -> str:
    return Operation.objects.values_list("state", flat=True).get(cases=case)


def _testify(page: Page) -> None:
    page.get_by_label("The refund happened").check()
    page.get_by_label("Why you are sure").fill(REASON)
    page.get_by_label("The provider’s reference of the refund").fill("rf_seen")
    page.get_by_label("Amount as it stands there").fill("48.00")
    page.get_by_label("Status their word").fill("succeeded")
    page.get_by_label("Created as it stands there").fill("29 Nov, 14:02")
    page.get_by_label("Where you saw it").fill("dashboard, payments")


def _record(page: Page) -> None:
    page.get_by_role("button", name="Record: refund happened").click()


def test_two_people_resolve_at_once_and_the_second_keeps_the_text(
    visitors: Visitors, cases: CaseStage
) -> None:
    case = cases.blind("one", "C-1", 4800)
    omar, ines = visitors.sign_in("omar"), visitors.sign_in("ines")
    for page in (omar, ines):
        _open(page, case)
        _testify(page)
    _record(omar)
    expect(omar.locator("#result")).to_contain_text("not yet in force")
    _record(ines)
    expect(ines.locator("#result")).to_contain_text("omar signed first")
    expect(ines.locator("#result")).to_contain_text(f"kept as a draft: “{REASON}”")
    expect(ines.locator("#ruling")).to_contain_text("The refund happened, says omar")
    assert Ruling.objects.count() == 1
    assert _state(case) == states.UNKNOWN
    # Her text is kept: what she typed stands there again when omar's is not signed.
    RulingEnd.objects.create(ruling=Ruling.objects.get(), outcome="declined", by=None)
    _open(ines, case)
    ines.get_by_label("The refund happened").check()
    expect(ines.get_by_label("Why you are sure")).to_have_value(REASON)


def test_the_second_person_signs_what_the_first_one_saw(
    visitors: Visitors, cases: CaseStage
) -> None:
    case = cases.waiting("one", "C-1", 4800)
    ines = visitors.sign_in("ines")
    _open(ines, case)
    expect(ines.locator("#ruling")).to_contain_text("If you sign: the refund of 48.00 USD becomes")
    ines.get_by_role("button", name="Sign: the refund happened").click()
    expect(ines.locator("#result")).to_contain_text("in force")
    expect(ines.locator("#status-panel")).to_contain_text("succeeded")
    assert _state(case) == states.SUCCEEDED


def test_evidence_that_moves_between_the_signatures_voids_the_first(
    visitors: Visitors, cases: CaseStage
) -> None:
    case = cases.waiting("one", "C-1", 4800)
    ines = visitors.sign_in("ines")
    _open(ines, case)
    Evidence.objects.create(
        operation=case.operation,
        kind="notice",
        started_at=case.opened_at,
        body=b"{}",
        facts={"because": "A notice came in between."},
    )
    ines.get_by_role("button", name="Sign: the refund happened").click()
    expect(ines.locator("#result")).to_contain_text("New evidence arrived")
    expect(ines.get_by_role("button", name="Sign: the refund happened")).to_have_count(0)
    assert RulingEnd.objects.get().outcome == "voided"
    assert _state(case) == states.UNKNOWN


@pytest.mark.parametrize("scripts", [True, False])
def test_what_lacks_its_proof_has_no_button_and_a_refusal_names_it(
    visitors: Visitors, cases: CaseStage, scripts: bool
) -> None:
    case = cases.lost("one", "C-1", 4800)
    omar = visitors.sign_in("omar", scripts=scripts)
    _open(omar, case)
    expect(omar.locator("#resolution-form")).to_contain_text("Missing: a complete list begun after")
    omar.get_by_label("The refund did not happen").check(force=True)
    expect(omar.locator(".o-not_happened")).to_contain_text("Cannot be recorded yet")
    expect(omar.get_by_role("button", name="Record: refund did not happen")).to_have_count(0)
    omar.get_by_label("Still not known").check()
    omar.get_by_label("Why you are sure").fill("short")
    omar.get_by_role("button", name="Record: still not known").click()
    expect(omar.locator("#result")).to_contain_text("needs 20 characters or more")
    expect(omar.get_by_label("Why you are sure")).to_have_value("short")
    assert not Ruling.objects.exists()


def test_the_machine_settles_it_while_somebody_writes(visitors: Visitors, cases: CaseStage) -> None:
    case = cases.lost("one", "C-1", 4800, account="plain-lagged", fault="drop_after_commit")
    omar = visitors.sign_in("omar")
    _open(omar, case)
    omar.get_by_label("Still not known").check()
    omar.get_by_label("Why you are sure").fill(REASON)
    cases.provider.advance(4)
    reconciler.look_up(cases.stage.by_name["one"].pk)
    with omar.expect_response(lambda answer: "since=" in answer.url, timeout=15000):
        omar.evaluate(BEAT)
    expect(omar.locator("#slot")).to_contain_text("No decision is needed")
    expect(omar.get_by_label("Why you are sure")).to_have_value(REASON)
    expect(omar.get_by_role("button", name="Record: still not known")).to_be_disabled()
    assert _state(case) == states.SUCCEEDED
    assert not Ruling.objects.exists()


def test_of_two_who_claim_one_is_first(visitors: Visitors, cases: CaseStage) -> None:
    case = cases.lost("one", "C-1", 4800)
    omar, ines = visitors.sign_in("omar"), visitors.sign_in("ines")
    for page in (omar, ines):
        _open(page, case)
    omar.get_by_role("button", name="Claim this case").click()
    expect(omar.locator("#case")).to_contain_text("omar, holds")
    ines.get_by_role("button", name="Claim this case").click()
    expect(ines.locator("#result")).to_contain_text("omar claimed this")
    ines.locator("summary", has_text="Take it over").click()
    ines.get_by_label("Reason").fill("Omar has gone home, the customer waits.")
    ines.get_by_role("button", name="Take the case over").click()
    expect(ines.locator("#case")).to_contain_text("ines, holds")


def test_a_statement_is_attached_and_can_be_saved(visitors: Visitors, cases: CaseStage) -> None:
    case = cases.blind("one", "C-1", 4800, paper=False)
    omar = visitors.sign_in("omar")
    _open(omar, case)
    omar.locator("summary", has_text="Attach a statement").click()
    file = {"name": "nov.pdf", "mimeType": "text/plain", "buffer": b"%PDF-1.7 nothing paid"}
    omar.locator("#case-file").set_input_files(file)  # type: ignore[arg-type]
    omar.get_by_role("button", name="Attach it to the case").click()
    expect(omar.locator("#case")).to_contain_text("nov.pdf")
    with omar.expect_download() as saved:
        omar.get_by_role("link", name="nov.pdf").click()
    assert saved.value.suggested_filename.endswith(".pdf")


def test_what_began_together_is_claimed_and_noted_together(
    visitors: Visitors, cases: CaseStage
) -> None:
    for number in (1, 2, 3):
        cases.lost(f"n{number}", f"C-{number}", 4800 + number)
    omar = visitors.sign_in("omar")
    omar.goto("/unknown")
    omar.get_by_role("button", name="Claim these 3").click()
    expect(omar.locator("#result")).to_contain_text("3 of the cluster claimed")
    omar.locator("summary", has_text="for all").click()
    omar.get_by_label("Note for each of them").fill("One outage, the provider knows.")
    omar.get_by_role("button", name="Keep the note on 3 cases").click()
    expect(omar.locator("#result")).to_contain_text("3 of the cluster noted")
    assert CaseEvent.objects.filter(kind="noted").count() == 3
    omar.goto("/unknown?tab=mine")
    expect(omar.locator("#queue-rows tr")).to_have_count(3)


def test_a_ruling_by_the_keyboard_alone(visitors: Visitors, cases: CaseStage) -> None:
    case = cases.lost("one", "C-1", 4800)
    omar = visitors.sign_in("omar")
    _open(omar, case)
    omar.keyboard.press("c")
    assert "Claim this case" in omar.evaluate("document.activeElement.textContent")
    omar.keyboard.press("Enter")
    expect(omar.locator("#case")).to_contain_text("omar, holds")
    omar.locator("#c-happened").focus()
    for _ in range(3):
        omar.keyboard.press("ArrowDown")
    expect(omar.get_by_label("Still not known")).to_be_checked()
    omar.keyboard.press("Tab")
    omar.keyboard.type(REASON)
    omar.keyboard.press("Tab")
    omar.keyboard.press("Enter")
    expect(omar.locator("#timeline")).to_contain_text("Still not known")
    assert Ruling.objects.get().choice == "still_unknown"


def test_an_operation_opens_as_it_was_seen_and_takes_nothing(
    visitors: Visitors, cases: CaseStage
) -> None:
    cases.owed("one", "C-1", 4800)
    operation = cases.stage.by_name["one"]
    operation.refresh_from_db()
    mia = visitors.sign_in("mia")
    mia.goto(f"/operations/{operation.pk}?at={operation.version - 1}")
    expect(mia.locator("#as-seen")).to_contain_text("with what was known then")
    expect(mia.locator(".status")).to_contain_text("unknown")
    expect(mia.locator("main form")).to_have_count(0)
    expect(mia.locator("#timeline")).not_to_contain_text("People ruled")
    mia.get_by_role("link", name="Back to now").click()
    expect(mia.locator("#timeline")).to_contain_text("People ruled: it did not happen")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_page_of_a_case_is_accessible(
    visitors: Visitors, cases: CaseStage, width: int
) -> None:
    cases.full()
    ids = {name: operation.pk for name, operation in cases.stage.by_name.items()}
    assert cases.payment_case is not None
    omar, ines = visitors.sign_in("omar", width=width), visitors.sign_in("ines", width=width)
    for page, url, subject in (
        (omar, "/unknown", "they began together"),
        (omar, "/unknown?tab=owed", "The customer still expects"),
        (ines, "/unknown?tab=second", "Waiting for a second signature"),
        (omar, f"/operations/{ids['equal']}", "The customer wrote twice."),
        (omar, f"/operations/{ids['smaller']}", "What happened?"),
        (omar, f"/operations/{ids['blind_case']}", "What happened?"),
        (ines, f"/operations/{ids['waiting']}", "What the first signer saw"),
        (ines, f"/operations/{ids['owed']}", "How does the customer get the money?"),
        (ines, f"/orders/C-20015?remedy_of={ids['owed']}", "Propose a refund that makes good"),
        (ines, f"/operations/{ids['made_good']}", "is proposed for it already"),
        (omar, f"/cases/{cases.payment_case.pk}", "Refunds of the payment"),
        (omar, f"/operations/{ids['owed']}?at=6", "Timeline until then"),
    ):
        page.goto(url)
        for name in ("#c-happened", "#c-different", "#c-remedy", "#c-explained"):
            box = page.locator(name)
            if box.count() and box.is_visible():
                box.check(force=True)
        for fold in page.locator(".folds details, .clus details").all():
            fold.evaluate("fold => { fold.open = true }")
        look(page, subject)
