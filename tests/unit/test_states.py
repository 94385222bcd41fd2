"""The state table: every move, nothing else, and the same in the four places that show it."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from refunds.domain import states
from refunds.domain.states import RULES, IllegalMove, Rule, moves, rule_for

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = sorted({kind for rule in RULES for kind in rule.by})
SOURCES = (states.NONE, *states.STATES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.event)
def test_every_line_of_the_table_is_a_move(rule: Rule) -> None:
    for source, kind in itertools.product(rule.sources, rule.by):
        assert rule_for(rule.event, source, kind) is rule
    assert rule.target in states.STATES
    assert set(rule.sources) <= set(SOURCES)
    assert rule.requires


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.event)
def test_no_other_move_exists_under_that_name(rule: Rule) -> None:
    legal = set(itertools.product(rule.sources, rule.by))
    for source, kind in set(itertools.product(SOURCES, KINDS)) - legal:
        with pytest.raises(IllegalMove):
            rule_for(rule.event, source, kind)


def test_an_unknown_event_moves_nothing() -> None:
    with pytest.raises(IllegalMove, match="does not leave"):
        rule_for("requeued", states.SUBMITTING, states.DISPATCHER)


def test_events_have_one_line_each() -> None:
    names = [rule.event for rule in RULES]
    assert len(names) == len(set(names))


def test_no_move_leads_from_maybe_sent_to_sendable_but_on_proof() -> None:
    """submitting or unknown -> authorized: the sender's own word, or a proof (rules 14 and 29)."""
    back = {
        (rule.event, rule.by)
        for rule in RULES
        if rule.target == states.AUTHORIZED and set(rule.sources) & states.UNCERTAIN
    }
    assert back == {
        ("not_executed", (states.DISPATCHER,)),
        ("proved_absent", (states.RECONCILER,)),
    }


def test_nothing_is_taken_back_after_the_claim() -> None:
    for event in ("approval_revoked", "withdrawn", "approval_lapsed", "expired"):
        [rule] = [each for each in RULES if each.event == event]
        assert not set(rule.sources) & states.UNCERTAIN, event


def test_an_ended_operation_moves_only_by_evidence() -> None:
    events = {rule.event for rule in RULES if set(rule.sources) & states.ENDED}
    assert events == {"taken_back", "contradicted", "ruling_contradicted"}
    for rule in RULES:
        if set(rule.sources) & states.ENDED:
            assert rule.by == (states.RECONCILER,)


def test_every_state_can_be_reached() -> None:
    reached = {states.NONE}
    while True:
        more = {rule.target for rule in RULES if set(rule.sources) & reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(SOURCES)


def test_the_sets_of_states_follow_from_what_money_may_have_done() -> None:
    maybe = {state for state, money in states.MONEY.items() if money == "maybe"}
    assert maybe == states.UNCERTAIN == states.HOLDING
    yes = {state for state, money in states.MONEY.items() if money == "yes"}
    assert yes == {states.SUCCEEDED, states.MISMATCHED, states.RETURNED}
    before = {states.PROPOSED, states.AWAITING_APPROVAL, states.AUTHORIZED}
    assert set(states.STATES) - before - states.UNCERTAIN == states.ENDED


@pytest.mark.django_db
def test_the_check_of_the_database_is_the_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(c.oid), c.convalidated, f.prosrc"
            " FROM pg_constraint c, pg_proc f"
            " WHERE c.conname = 'event_is_legal' AND f.proname = 'aftersend_move_is_legal'"
        )
        [(check, validated, function)] = cursor.fetchall()
    names = re.findall(r"\(?(\w+)\)?::text", check)
    assert "aftersend_move_is_legal(" in check
    assert (names, validated) == (["event", "from_state", "to_state", "actor_kind"], True)
    found = [tuple(each.split("/")) for each in re.findall(r"'([a-z_]+/[a-z_/]+)'", function)]
    assert sorted(found) == sorted(moves())


def _shown() -> str:
    out = io.StringIO()
    call_command("show_machine", stdout=out)
    return out.getvalue()


def test_show_machine_prints_the_table() -> None:
    lines = _shown().splitlines()
    spoken = {rule.event: _words_of(lines, rule.event) for rule in RULES}
    known = set(SOURCES) | set(KINDS)
    for rule in RULES:
        expected = {*rule.sources, rule.target, *rule.by}
        assert spoken[rule.event] & known == expected, rule.event
    events = {line.split("|")[1].strip(" `") for line in lines if line.count("|") > 1}
    assert {rule.event for rule in RULES} <= events
    assert all(rule.requires in "\n".join(lines) for rule in RULES)


def _words_of(lines: list[str], event: str) -> set[str]:
    cells = [line.strip("| ").split("|") for line in lines]
    rows = [row for row in cells if row[0].strip(" `") == event]
    assert rows, f"no line for {event}"
    return {word for row in rows for cell in row[1:4] for word in re.findall("[a-z_]+", cell)}


def test_readme_shows_what_show_machine_prints() -> None:
    readme = (ROOT / "README.md").read_text()
    begin, end = "<!-- machine -->\n", "<!-- /machine -->"
    assert readme.count(begin) == readme.count(end) == 1
    table = readme.partition(begin)[2].partition(end)[0]
    assert table.strip("\n") == _shown().strip("\n")
