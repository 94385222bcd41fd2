"""The afternoon, part five: two people rule, and the provider goes on surprising them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tests.drive_console import Console
from tests.page import Page
from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import Step, Walk, require

ACCOUNT = "plain-unbounded"  # it says of no request when it can no longer land
BOUND_SECONDS = 600
PATIENCE_SECONDS_MAX = 40
REASON = "Nothing of it stands in the provider's own statement."
PDF = b"%PDF-1.7\nThe provider's statement of November.\n%%EOF\n"
# Long enough for nobody to wait for it: such a request lands when it is released.
NEVER_SECONDS = 30 * 86_400


def lost(walk: Walk, fault: str, **options: Any) -> str:
    """A refund of an account without a flight bound, whose answer nobody heard; its id."""
    amount_minor = walk.amount()
    order = walk.order(ACCOUNT, 3 * amount_minor)
    operation_id = walk.propose(order, amount_minor)
    walk.provider.fault(fault, account=ACCOUNT, match={"payment": order.payment_ref}, **options)
    walk.person("ben").approve(operation_id)
    return operation_id


def wait_for_case(walk: Walk, operation_id: str) -> None:
    """Until the machine has asked a person what became of it."""
    wait_until(
        lambda: walk.trail.open_reasons(operation_id) == ["unresolved"] or None,
        seconds=PATIENCE_SECONDS_MAX,
        what="a case",
    )


def attach_statement(walk: Walk, person: Console, operation_id: str) -> None:
    """Put the provider's statement beside the case."""
    page = person.get(f"/cases/{walk.trail.case(operation_id)}")
    form = page.form_to("/statements")
    said = person.send(form, files={"file": ("november.pdf", PDF, "application/pdf")})
    require(said.status == 200, f"the statement: {said.status} {said.text[:600]}")


def say_not_happened(walk: Walk, person: Console, operation_id: str) -> Page:
    """Open the case and press "the refund did not happen"; what is answered."""
    minor = int(walk.trail.operation(operation_id)["amount_minor"])
    page = person.get(f"/cases/{walk.trail.case(operation_id)}")
    told = {
        "choice": "not_happened",
        "reason": REASON,
        "confirmed_not_happened": f"{minor // 100}.{minor % 100:02}",
    }
    return person.send(page.form("resolution-form"), told)


def first_signature(walk: Walk, person: Console, operation_id: str) -> None:
    said = say_not_happened(walk, person, operation_id)
    require(
        said.status == 200 and "not yet in force" in said.part("result"),
        f"the first signature: {said.status} {said.part('result') or said.text[:1500]}",
    )


def second_signature(walk: Walk, person: Console, operation_id: str) -> None:
    page = person.get(f"/cases/{walk.trail.case(operation_id)}")
    said = person.send(page.form("sign-form"))
    require(said.status == 200, f"the second signature: {said.status} {said.text[:1500]}")


def u_two_sign_that_it_did_not_happen(walk: Walk, step: Step) -> None:
    """Too early it is refused to everybody; later two different people say so, and no third thing.

    Two refunds of an account without a flight bound, for which two people accept one. The first
    never arrives. The second lands between the two signatures, past the bound that was accepted:
    the first signature is void, the refund succeeded, and the bound is withdrawn.
    """
    never, late = (
        lost(walk, "drop_before_commit"),
        lost(walk, "land_past_flight", seconds=NEVER_SECONDS),
    )
    step.operation_id, step.more = never, [late]
    for each in (never, late):
        wait_for_case(walk, each)
    _accept_a_bound(walk)
    omar, ines = walk.person_at_hand("omar"), walk.person_at_hand("ines")
    for each in (never, late):
        attach_statement(walk, omar, each)
    _refused_too_early(walk, omar, never)
    walk.time_passes(BOUND_SECONDS + 20)
    first_signature(walk, omar, never)
    page = step.look_at(omar.get(f"/cases/{walk.trail.case(never)}"), "ruling")
    require("sign-form" not in page.forms, "who signed first may sign second")
    require(walk.trail.state(never) == "unknown", "one signature was enough")
    second_signature(walk, ines, never)
    ruled = walk.trail.events(never)[-1]
    signed = (ruled["event"], ruled["to_state"], ruled["actor"])
    wanted = ("ruled_not_happened", "failed", "person:omar, person:ines")
    require(signed == wanted, f"the last event is {signed}")
    require(not walk.refunds(never), "a refund that never arrived is in the book")
    _void_by_a_landing(walk, omar, ines, late)


def _accept_a_bound(walk: Walk) -> None:
    of = ("manage.py", "accept_fact", ACCOUNT)
    reason = "Their support wrote on Monday that nothing lands after ten minutes."
    figure = ("flight_max", f"{BOUND_SECONDS}", "--for", "absence")
    said = walk.here.run(*of, *figure, "--reason", reason, "--by", "ines")
    number = said.partition("Proposed as ")[2].partition(".")[0]
    walk.here.run(*of, "--confirm", number, "--by", "adam")


def _refused_too_early(walk: Walk, person: Console, operation_id: str) -> None:
    """With the statement beside it: the page and the door both say until when it can still land."""
    until = f"{ACCOUNT} can still show it until then"
    page = person.get(f"/cases/{walk.trail.case(operation_id)}")
    drawn = page.part("w-not_happened")
    require("Missing" in drawn and until in drawn, f"under the choice stands {drawn!r}")
    said = say_not_happened(walk, person, operation_id)
    told = said.part("result")
    require(said.status == 422 and until in told, f"too early: {said.status} {told}")
    given = walk.trail.rows(
        "SELECT r.id FROM case_ruling r JOIN review_case c ON c.id = r.case_id WHERE c.operation_id = %s",
        operation_id,
    )
    require(not given, "a refused signature was recorded")


def _check_now(person: Console, drawn: Page) -> None:
    """Ask the provider; the account's own list may have shown it by then, and the press is late."""
    said = person.send(drawn.form_to("/check"))
    require(said.status in (200, 409), f"check now: {said.status} {said.text[:600]}")


def _void_by_a_landing(walk: Walk, omar: Console, ines: Console, operation_id: str) -> None:
    first_signature(walk, omar, operation_id)
    case_id = walk.trail.case(operation_id)
    drawn = ines.get(f"/cases/{case_id}")
    walk.provider.release()
    _check_now(ines, drawn)
    walk.trail.wait_for(operation_id, "succeeded", seconds=20)
    said = ines.send(drawn.form("sign-form"))
    require(said.status == 409, f"signed on evidence that moved: {said.status} {said.text[:900]}")
    ended = walk.trail.rows(
        "SELECT e.outcome FROM case_ruling r JOIN case_ruling_end e ON e.ruling_id = r.id WHERE r.case_id = %s",
        case_id,
    )
    require(ended == [{"outcome": "voided"}], f"the first signature ended as {ended}")
    walk.require_one_refund(operation_id, int(walk.trail.operation(operation_id)["amount_minor"]))
    [fact] = walk.trail.rows(
        "SELECT withdrawn_because FROM accepted_fact WHERE account = %s", ACCOUNT
    )
    require(fact["withdrawn_because"], "the bound that did not hold is still accepted")


def v_remedy_and_then_the_first_lands(walk: Walk, step: Step) -> None:
    """Ruled "did not happen", made good for by another refund, and then the first turns up.

    The remedy is approved and waits for a worker: it is stopped, and never leaves. Two people and
    their statement were wrong in good faith, which a person is told.
    """
    first = lost(walk, "land_past_flight", seconds=NEVER_SECONDS)
    step.operation_id = first
    wait_for_case(walk, first)
    omar, ines = walk.person_at_hand("omar"), walk.person_at_hand("ines")
    attach_statement(walk, omar, first)
    first_signature(walk, omar, first)
    second_signature(walk, ines, first)
    wait_until(lambda: walk.trail.open_reasons(first) == ["remedy"], what="the money that is owed")
    walk.time_passes(20)  # a look that old may be asked for again
    with walk.here.money.asleep():
        remedy = _propose_remedy(walk, walk.person("cleo"), first)
        step.more = [remedy]
        walk.person("ben").approve(remedy, separate_refund_confirmed="on")
        require(walk.trail.state(remedy) == "authorized", "the remedy is not approved")
        drawn = omar.get(f"/cases/{walk.trail.case(first)}")
        walk.provider.release()
        _check_now(omar, drawn)
        wait_until(
            lambda: "contradiction" in walk.trail.open_reasons(remedy),
            seconds=20,
            what="the remedy, stopped",
        )
    senders = walk.senders()
    for each in senders:
        each.tell(remedy)
    said = [each.answer() for each in senders]
    require("confirmed" not in said, f"a sender that is told to send the remedy says {said}")
    step.look_at(walk.person("ben").read_operation_page(remedy))
    events = [each["event"] for each in walk.trail.events(first)]
    # A lookup that comes before we read on settles it.
    since = events[events.index("ruled_not_happened") :]
    told = since[:2] == ["ruled_not_happened", "contradicted"] and since[2:] in _SETTLED
    require(told, f"it went {events}")
    require("contradiction" in walk.trail.open_reasons(first), "nobody is told of the first")
    walk.at_the_end[step.name] = partial(_one_of_the_two, walk, first, remedy)
    _one_of_the_two(walk, first, remedy)


_SETTLED: Final[tuple[list[str], ...]] = ([], ["found_succeeded"])


def _propose_remedy(walk: Walk, person: Console, first: str) -> str:
    """Propose what is owed for `first` on the page of its order; the new operation's id."""
    [order] = walk.trail.rows(
        "SELECT r.ref FROM orders r JOIN operation o ON o.order_id = r.id WHERE o.id = %s", first
    )
    drawn = person.get(f"/orders/{order['ref']}", remedy_of=first)
    said = person.send(drawn.form("propose-form"))
    require(said.status == 200, f"the remedy: {said.status} {said.text[:900]}")
    [made] = walk.trail.rows("SELECT id FROM operation WHERE remedy_of_id = %s", first)
    return str(made["id"])


def _one_of_the_two(walk: Walk, first: str, remedy: str) -> None:
    walk.require_one_refund(first, int(walk.trail.operation(first)["amount_minor"]))
    require(not walk.sends(remedy), "the remedy was sent although the first refund is there")
