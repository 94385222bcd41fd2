"""What each answer to a case must rest on: every row of the judge, without a database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciliation import choices, judge
from reconciliation.choices import NotProved, Question, Said, Seen

OURS = Seen(
    ref="rf_1",
    amount_minor=4000,
    currency="USD",
    provider_status="succeeded",
    payment_same=True,
    ours=True,
    paid=True,
    anothers=False,
)
UNMARKED = replace(OURS, ref="rf_2", ours=False)
SMALLER = replace(OURS, ref="rf_3", amount_minor=3999)
TOLD = choices.Testimony(
    ref="rf_9",
    amount_minor=4000,
    currency="USD",
    provider_status="succeeded",
    created="2026-11-29T14:02:11Z",
    where_seen="dashboard, payments",
)
BASE = Question(
    reasons=("unresolved",),
    state="unknown",
    account="plain-main",
    amount_minor=4000,
    currency="USD",
    tier1_max_minor=10000,
    looks=True,
    look_age=30.0,
    absent_because="a complete list begun after 14:05:00 UTC that shows no refund of ours",
)
BLIND = replace(BASE, account="plain-blind", looks=False, look_age=None)


def offer(question: Question, choice: str) -> choices.Offer:
    return next(each for each in judge.offers(question) if each.choice == choice)


def refused(question: Question, said: Said) -> str:
    with pytest.raises(NotProved) as lacks:
        judge.judge(question, said)
    return str(lacks.value)


@pytest.mark.parametrize(
    ("reason", "state", "wanted"),
    [
        ("unresolved", "unknown", choices.FOUR),
        ("overdue_pending", "pending", choices.FOUR),
        ("contradiction", "unknown", choices.FOUR),
        ("contradiction", "succeeded", ("explained",)),
        ("mismatch", "unknown", ("happened", "accept_figure", "correct", "still_unknown")),
        ("mismatch", "succeeded", ("explained",)),
        ("external", "", ("explained", "not_ours")),
        ("duplicate", "succeeded", ("recovered", "written_off", "explained")),
        ("unmatched_notice", "", ("attach", "external", "wrong_account")),
        ("poison", "unknown", ("resume", *choices.FOUR)),
        ("remedy", "failed", ("remedy",)),
    ],
)
def test_the_choices_come_from_the_reason_and_the_state(
    reason: str, state: str, wanted: tuple[str, ...]
) -> None:
    assert choices.choices(replace(BASE, reasons=(reason,), state=state)) == wanted


def test_several_reasons_offer_what_each_offers_once() -> None:
    both = replace(BASE, reasons=("unresolved", "poison"))
    assert choices.choices(both) == (*choices.FOUR, "resume")


def test_a_choice_leaves_the_reasons_that_it_does_not_answer() -> None:
    assert choices.left_open(("unresolved", "duplicate"), "happened") == ("duplicate",)
    assert choices.left_open(("external", "duplicate"), "explained") == ()
    assert choices.left_open(("unresolved",), "still_unknown") == ("unresolved",)


def test_no_remedy_is_chosen_while_the_first_refund_may_have_arrived_after_all() -> None:
    late = replace(BASE, reasons=("remedy", "contradiction"))
    assert choices.choices(late) == choices.FOUR
    assert choices.left_open(late.reasons, "happened") == ()


def test_happened_needs_a_refund_that_our_own_lookup_shows() -> None:
    assert "our own lookup shows as paid" in offer(BASE, "happened").missing[0]
    assert "our own lookup" in refused(BASE, Said(choice="happened", ref="rf_1"))
    by_answer = replace(BASE, seen=(replace(OURS, by_lookup=False),))
    assert not offer(by_answer, "happened").open


def test_happened_by_marker_in_tier_1_needs_one_person() -> None:
    question = replace(BASE, seen=(OURS,))
    judged = judge.judge(question, Said(choice="happened", ref="rf_1"))
    assert (judged.people, judged.amount_minor) == (1, 4000)
    assert offer(question, "happened").people == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seen": (UNMARKED,)},
        {"seen": (OURS,), "tier1_max_minor": 3999},
        {"seen": (OURS,), "tier1_max_minor": None},
    ],
    ids=["unmarked", "above tier 1", "a currency without tiers"],
)
def test_happened_otherwise_needs_two(change: dict[str, object]) -> None:
    question = replace(BASE, **change)  # type: ignore[arg-type]
    ref = question.seen[0].ref
    assert judge.judge(question, Said(choice="happened", ref=ref)).people == 2
    assert offer(question, "happened").people == 2


@pytest.mark.parametrize(
    "change",
    [
        {"amount_minor": 3999},
        {"amount_minor": 4001},
        {"amount_minor": None},
        {"currency": "EUR"},
        {"currency": None},
        {"payment_same": False},
        {"paid": False},
        {"anothers": True},
    ],
    ids=str,
)
def test_happened_is_not_offered_for_a_record_that_is_off_in_anything(
    change: dict[str, object],
) -> None:
    question = replace(BASE, seen=(replace(OURS, **change),))  # type: ignore[arg-type]
    assert not offer(question, "happened").open
    refused(question, Said(choice="happened", ref="rf_1"))


def test_happened_names_one_of_the_refunds_that_are_shown() -> None:
    question = replace(BASE, seen=(OURS, UNMARKED))
    assert "which of the provider" in refused(question, Said(choice="happened", ref="rf_77"))


@pytest.mark.parametrize("age", [None, 900.1])
def test_an_old_check_counts_for_nothing(age: float | None) -> None:
    question = replace(BASE, seen=(OURS,), look_age=age)
    assert "check now" in refused(question, Said(choice="happened", ref="rf_1"))
    assert judge.judge(replace(question, look_age=900.0), Said(choice="happened", ref="rf_1")).seen


def test_different_takes_the_records_own_figure_and_two_people() -> None:
    question = replace(BASE, seen=(SMALLER,))
    judged = judge.judge(question, Said(choice="different", ref="rf_3"))
    assert (judged.people, judged.amount_minor) == (2, 3999)
    typed = Said(choice="different", ref="rf_3", amount_minor=3000)
    assert "the amount of rf_3" in refused(question, typed)
    assert not offer(replace(BASE, seen=(OURS,)), "different").open


def test_different_in_another_currency_needs_the_amount_and_a_statement_of_it() -> None:
    question = replace(BASE, seen=(replace(OURS, currency="EUR"),))
    said = Said(choice="different", ref="rf_1")
    assert "what left the payment, in USD" in refused(question, said)
    typed = replace(said, amount_minor=4310)
    assert "a statement" in refused(question, typed)
    judged = judge.judge(replace(question, statements=1), typed)
    assert judged.amount_minor == 4310


def test_did_not_happen_is_refused_before_the_quiet_period_even_with_a_statement() -> None:
    early = replace(BASE, quiet=False, statements=1)
    assert "begun after" in refused(early, Said(choice="not_happened"))


def test_did_not_happen_needs_the_machines_proof_or_a_statement_and_two_people() -> None:
    assert "or the provider’s statement" in refused(BASE, Said(choice="not_happened"))
    for proof in ({"absent_because": ""}, {"statements": 1}):
        question = replace(BASE, **proof)
        assert judge.judge(question, Said(choice="not_happened")).people == 2
    old = replace(BASE, absent_because="", look_age=901.0)
    assert "check now" in refused(old, Said(choice="not_happened"))


@pytest.mark.parametrize("by_lookup", [True, False])
def test_did_not_happen_is_never_recorded_against_a_refund_of_ours(by_lookup: bool) -> None:
    seen = replace(OURS, by_lookup=by_lookup, provider_status="pending", paid=False)
    question = replace(BASE, absent_because="", statements=1, seen=(seen,))
    assert "nothing can prove it: rf_1" in refused(question, Said(choice="not_happened"))


def test_testimony_supports_happened_and_different_where_nothing_can_be_asked() -> None:
    assert "a statement" in refused(BLIND, Said(choice="happened", testimony=TOLD))
    question = replace(BLIND, statements=1)
    judged = judge.judge(question, Said(choice="happened", testimony=TOLD))
    assert (judged.people, judged.amount_minor) == (2, 4000)
    less = replace(TOLD, amount_minor=1500)
    judged = judge.judge(question, Said(choice="different", testimony=less))
    assert (judged.people, judged.amount_minor) == (2, 1500)
    assert "what you saw" in refused(question, Said(choice="happened"))
    assert "asked for" in refused(question, Said(choice="happened", testimony=less))
    assert "differs" in refused(question, Said(choice="different", testimony=TOLD))
    euros = replace(TOLD, currency="EUR")
    assert "in USD" in refused(question, Said(choice="different", testimony=euros))


def test_testimony_never_supports_an_absence() -> None:
    assert "statement" in refused(BLIND, Said(choice="not_happened", testimony=TOLD))


def test_testimony_is_not_taken_where_the_account_can_be_asked() -> None:
    question = replace(BASE, statements=1)
    assert "our own lookup" in refused(question, Said(choice="happened", testimony=TOLD))


@pytest.mark.parametrize("choice", ["accept_figure", "correct"])
def test_a_mismatch_takes_the_figure_of_a_record_of_ours_only(choice: str) -> None:
    question = replace(BASE, reasons=("mismatch",), seen=(SMALLER,))
    judged = judge.judge(question, Said(choice=choice, ref="rf_3"))
    assert (judged.people, judged.amount_minor) == (2, 3999)
    foreign = replace(question, seen=(replace(SMALLER, ours=False),))
    assert "of ours" in refused(foreign, Said(choice=choice, ref="rf_3"))


def test_a_mismatch_that_no_lookup_shows_is_told_by_a_person() -> None:
    question = replace(BLIND, reasons=("mismatch",), statements=1)
    assert choices.choices(question) == choices.FOUR
    less = replace(TOLD, amount_minor=1500)
    assert judge.judge(question, Said(choice="different", testimony=less)).amount_minor == 1500


def test_a_notice_is_attached_only_to_an_operation_that_it_matches() -> None:
    question = replace(BASE, reasons=("unmatched_notice",), state="")
    assert "are those of the provider" in refused(question, Said(choice="attach", reference="a"))
    question = replace(question, attachable=("a",))
    assert "one of those that match" in refused(question, Said(choice="attach", reference="b"))
    assert judge.judge(question, Said(choice="attach", reference="a")).people == 1


def test_still_not_known_is_always_possible() -> None:
    for question in (BASE, BLIND, replace(BASE, state="pending")):
        assert judge.judge(question, Said(choice="still_unknown")).people == 1


def test_nothing_is_ruled_while_it_is_being_sent() -> None:
    question = replace(BASE, state="submitting", seen=(OURS,))
    assert "being sent" in refused(question, Said(choice="happened", ref="rf_1"))


@pytest.mark.parametrize("choice", ["recovered", "written_off", "explained"])
def test_money_that_left_twice_is_signed_like_money_that_is_asked_for(choice: str) -> None:
    said = Said(choice=choice, ticket="T-1", reference="tr_9")
    question = replace(BASE, reasons=("duplicate",), state="succeeded", surplus_minor=10000)
    assert judge.judge(question, said).people == 1
    assert judge.judge(replace(question, surplus_minor=10001), said).people == 2


@pytest.mark.parametrize(
    ("reason", "said", "lacks"),
    [
        ("external", Said(choice="explained"), "ticket"),
        ("duplicate", Said(choice="recovered"), "reference"),
        ("remedy", Said(choice="remedy", reference="V-1"), "how the customer"),
        ("remedy", Said(choice="remedy", kind="voucher"), "its reference"),
    ],
)
def test_a_choice_without_its_own_words_is_named(reason: str, said: Said, lacks: str) -> None:
    state = "failed" if reason == "remedy" else "succeeded"
    question = replace(BASE, reasons=(reason,), state=state)
    assert lacks in refused(question, said)


def test_an_answer_that_the_case_does_not_offer_is_refused() -> None:
    assert "offers now" in refused(BASE, Said(choice="written_off"))
    assert "offers now" in refused(BASE, Said(choice="send_again"))
