"""People and roles: one admin proposes, another one confirms, and the sessions of before end."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client

from refunds.checks import require_trustworthy_database
from refunds.domain.errors import Refusal
from refunds.models import Person
from review import checks
from review import people as verbs
from review.models import RefusedAct, RoleChange, RoleDecision
from tests.cast import PASSWORD, Cast
from tests.flows.console import form_on, has_form, signed_in, text, try_password

pytestmark = pytest.mark.django_db
REASON = "Moves to the support team in May."


def _propose(client: Client, person: Person, **more: Any) -> Any:
    address = f"/people/{person.pk}/change"
    fields = form_on(text(client.get("/people")), address)
    return client.post(address, fields | {"reason": REASON, "active": "on"} | more)


def _decide(client: Client, answer: str = "confirm") -> Any:
    address = f"/people/changes/{RoleChange.objects.latest('pk').pk}/decide"
    return client.post(address, form_on(text(client.get("/people")), address) | {"answer": answer})


def _roles(person: Person) -> set[str]:
    return set(person.groups.values_list("name", flat=True))


def test_a_person_is_added_with_a_password_that_is_shown_once(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    fields = form_on(text(adam.get("/people")), "/people/add") | {"username": "nora"}
    shown = text(adam.post("/people/add", fields))
    found = re.search(r'First password.*?<code class="id">([^<]+)<', shown)
    assert found
    again = text(adam.post("/people/add", fields))
    assert "This second press changed nothing" in again
    assert found[1] not in again
    nora = Client()
    assert try_password(nora, "nora", found[1]).status_code == 302
    assert "you have no role here" in text(nora.get("/"))
    change = RoleChange.objects.get(person__username="nora")
    assert (change.kind, change.proposed_by) == ("added", cast.adam)


@pytest.mark.parametrize("name", ["ada", "ADA", "", "no spaces", "<b>"])
def test_a_name_that_cannot_be_is_refused_and_kept(cast: Cast, name: str) -> None:
    adam = signed_in(cast.adam)
    before = Person.objects.count()
    fields = form_on(text(adam.get("/people")), "/people/add") | {"username": name}
    answer = adam.post("/people/add", fields)
    assert answer.status_code == 422
    assert "Nobody was added" in text(answer)
    assert Person.objects.count() == before


def test_a_role_holds_once_another_admin_confirms_it(cast: Cast) -> None:
    dora = signed_in(cast.dora)
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    assert _propose(adam, cast.dora, roles=["lead", "rep"]).status_code == 303
    assert _roles(cast.dora) == set()
    assert dora.get("/").status_code == 200
    assert REASON in text(ava.get("/people"))
    assert _decide(ava).status_code == 303
    assert _roles(cast.dora) == {"lead", "rep"}
    assert dora.get("/").status_code == 302, "the session from before has ended"
    change = RoleChange.objects.get(person=cast.dora)
    assert (change.proposed_by, change.decision.by) == (cast.adam, cast.ava)
    assert (change.before["roles"], change.after["roles"]) == ([], ["lead", "rep"])


def test_who_proposed_it_cannot_confirm_it_but_may_take_it_back(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    _propose(adam, cast.dora, roles=["lead"])
    refused = _decide(adam)
    assert refused.status_code == 403
    assert "You cannot confirm this" in text(refused)
    assert RefusedAct.objects.get().code == "own_roles"
    assert _roles(cast.dora) == set()
    assert _decide(adam, "decline").status_code == 303
    assert _roles(cast.dora) == set()


def test_nobody_changes_their_own_roles(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    page = text(adam.get("/people"))
    assert not has_form(page, f"/people/{cast.adam.pk}/change")
    fields = form_on(page, f"/people/{cast.dora.pk}/change")
    answer = adam.post(
        f"/people/{cast.adam.pk}/change",
        fields | {"roles": ["admin", "lead"], "active": "on", "reason": REASON},
    )
    assert answer.status_code == 403
    assert not RoleChange.objects.exists()


def test_nobody_confirms_a_change_about_themselves(cast: Cast) -> None:
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    _propose(adam, cast.ava, roles=["admin", "lead"])
    assert _decide(ava).status_code == 403
    assert _roles(cast.ava) == {"admin"}


def test_nobody_keeps_their_roles_by_declining_the_change_about_them(cast: Cast) -> None:
    cast.ben.groups.set(cast.adam.groups.all())
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    _propose(adam, cast.ava, roles=["manager"])
    page = text(ava.get("/people"))
    assert "It is about you: another admin decides it." in page
    assert "Decline" not in page
    assert _decide(ava, "decline").status_code == 403
    assert _decide(signed_in(cast.ben)).status_code == 303
    assert _roles(cast.ava) == {"manager"}


def test_whoever_lost_the_role_while_they_pressed_confirms_nothing(cast: Cast) -> None:
    cast.ben.groups.set(cast.adam.groups.all())
    adam = signed_in(cast.adam)
    _propose(adam, cast.ava, roles=["manager"])
    _decide(signed_in(cast.ben))
    _propose(adam, cast.dora, roles=["admin"])
    with pytest.raises(Refusal, match="no admin any more"):
        verbs.decide(RoleChange.objects.latest("pk").pk, confirmed=True, by=cast.ava)
    assert _roles(cast.dora) == set()


def test_a_change_about_a_person_who_moved_is_refused(cast: Cast) -> None:
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    _propose(adam, cast.dora, roles=["lead"])
    cast.dora.groups.set(cast.rosa.groups.all())
    answer = _decide(ava)
    assert answer.status_code == 409
    assert "changed after this was proposed" in text(answer)
    assert _roles(cast.dora) == {"rep"}


def test_switching_somebody_off_ends_their_sessions_and_their_sign_in(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    address = f"/people/{cast.ben.pk}/change"
    fields = form_on(text(adam.get("/people")), address) | {"roles": "lead", "reason": REASON}
    assert adam.post(address, fields).status_code == 303
    _decide(ava)
    assert ben.get("/").status_code == 302
    assert try_password(Client(), "ben", PASSWORD).status_code == 422


def test_two_admins_are_always_left(cast: Cast) -> None:
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    _propose(adam, cast.dora, roles=["admin"])
    _decide(ava)
    dora = signed_in(cast.dora)
    _propose(adam, cast.ava, roles=[])
    assert _decide(dora).status_code == 303
    _propose(dora, cast.adam, roles=[])
    cast.ava.groups.set(cast.dora.groups.all())
    ava = signed_in(cast.ava)
    cast.dora.is_active = False
    cast.dora.save()
    answer = _decide(ava)
    assert answer.status_code == 409
    assert "fewer than 2 admins" in text(answer)


def test_the_reason_is_asked_for_and_the_ticks_are_kept(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    answer = _propose(adam, cast.dora, roles=["finance"], reason="short")
    assert answer.status_code == 422
    assert 'value="finance" checked' in text(answer)
    assert 'value="short"' in text(answer)


def test_the_history_of_roles_cannot_be_rewritten(cast: Cast) -> None:
    _propose(signed_in(cast.adam), cast.dora, roles=["lead"])
    change = RoleChange.objects.get()
    for statement in (
        "UPDATE role_change SET reason = 'x'",
        "DELETE FROM role_change",
        f"INSERT INTO role_decision (change_id, by_id, confirmed) VALUES ({change.pk}, {cast.adam.pk}, true)",
        f"INSERT INTO role_decision (change_id, by_id, confirmed) VALUES ({change.pk}, {cast.dora.pk}, true)",
    ):
        with (
            pytest.raises(IntegrityError),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert not RoleDecision.objects.exists()


def test_a_changed_password_ends_the_other_sessions(cast: Cast) -> None:
    here, there = signed_in(cast.ada), signed_in(cast.ada)
    fields = form_on(text(here.get("/account")), "/account/password") | {
        "old_password": PASSWORD,
        "new_password1": "another-long-password",
        "new_password2": "another-long-password",
    }
    wrong = here.post("/account/password", fields | {"old_password": "guess"})
    assert wrong.status_code == 422
    assert there.get("/").status_code == 200
    done = here.post("/account/password", fields)
    assert "1 other session" in text(done)
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 302


# The first two


def test_found_stores_two_admins_and_prints_their_passwords_once() -> None:
    out = StringIO()
    call_command("found", "nora", "otto", stdout=out)
    for name in ("nora", "otto"):
        found = re.search(rf"{name} is an admin\. .*once: (\S+)", out.getvalue())
        assert found
        assert try_password(Client(), name, found[1]).status_code == 302
        assert _roles(Person.objects.get(username=name)) == {"admin"}
        assert not Person.objects.get(username=name).is_superuser
    assert set(RoleChange.objects.values_list("kind", flat=True)) == {"found"}


@pytest.mark.parametrize("names", [("nora",), ("nora", "nora"), ("nora", "Nora")])
def test_found_refuses_fewer_than_two_people(names: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="two or more different people"):
        call_command("found", *names)
    assert not Person.objects.exists()


def test_found_refuses_where_an_admin_is(cast: Cast) -> None:
    before = Person.objects.count()
    with pytest.raises(CommandError, match="adam is an admin here already"):
        call_command("found", "nora", "otto")
    assert Person.objects.count() == before


def test_found_stores_nobody_when_one_name_cannot_be(db: None) -> None:
    with pytest.raises(CommandError, match="cannot be used"):
        call_command("found", "nora", "no spaces")
    assert not Person.objects.exists()


# What production refuses


def test_production_does_not_start_with_a_superuser(cast: Cast, settings: Any) -> None:
    settings.PRODUCTION = True
    assert checks.nobody_is_superuser(databases=["default"]) == []
    cast.adam.is_superuser = True
    cast.adam.save()
    (found,) = checks.nobody_is_superuser(databases=["default"])
    assert found.id == "aftersend.E023"
    assert found.hint
    with pytest.raises(Exception, match="superuser"):
        require_trustworthy_database()


def test_production_does_not_go_without_second_factors(settings: Any) -> None:
    settings.PRODUCTION = True
    assert [found.id for found in checks.second_factor_is_on()] == ["aftersend.E020"]


def test_a_change_to_confirm_is_on_the_first_page_and_in_the_menu_of_who_may(cast: Cast) -> None:
    adam, ava = signed_in(cast.adam), signed_in(cast.ava)
    assert "Nothing needs you." in text(ava.get("/"))
    _propose(adam, cast.dora, roles="rep")
    page = text(ava.get("/"))
    assert "1 change of roles waits for your confirmation." in page
    assert "Nothing needs you." not in page
    assert re.search(r"People</span> <span class=.n.>1<", page)
    own = text(adam.get("/"))
    assert "for your confirmation" not in own
    assert "for your confirmation" not in text(signed_in(cast.cleo).get("/"))
    _decide(ava)
    assert "for your confirmation" not in text(ava.get("/"))
