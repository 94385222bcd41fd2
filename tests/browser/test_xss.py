"""Every string of the corpus in every field that a page shows, on every page, in a real browser:
no script runs, no dialog opens, nothing is loaded or posted, and the text is there as text."""

from __future__ import annotations

from itertools import batched
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Dialog, Page, expect

from reconciliation import reconciler
from refunds import dispatch
from refunds.ledger import sending
from refunds.models import Agent, Operation, Person
from review.models import AgentAct, Draft, Preference
from tests import build
from tests.browser.corpus import CORPUS
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors

pytestmark = pytest.mark.django_db(transaction=True)
# What a page of ours never holds, however it came there.
_FOREIGN = (
    "main img, main iframe, main script, main object, main embed, main video, main style, main math,"
    " main base, main meta, main marquee, main dialog, [onerror], [onload], [onfocus], [ontoggle],"
    " [onmouseover], [srcdoc], a[href^='javascript:' i], a[href^='data:' i], [hx-on\\:\\:load],"
    " main [autofocus]:not([data-focus])"
)


class _Watched:
    """A page that may only ask our own server, and on which nothing of the corpus may run."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self._base = page, base
        self.dialogs: list[str] = []
        self.strangers: list[str] = []
        page.on("dialog", self._opened)
        page.on("request", lambda request: self._asked(request.url))

    def _opened(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _asked(self, url: str) -> None:
        if not url.startswith((self._base, "data:,")):
            self.strangers.append(url)

    def look(self, path: str, *words: str) -> None:
        self.page.goto(path)
        found = self.page.evaluate(
            "foreign => [window.ran ?? '', document.querySelectorAll(foreign).length,"
            " document.querySelector('main').textContent.replace(/\\s+/g, ' '),"
            " location.pathname + location.search]",
            _FOREIGN,
        )
        ran, foreign, text, here = found
        assert (ran, foreign, self.dialogs, self.strangers) == ("", 0, [], []), path
        assert here == path.partition("#")[0], f"{path} moved to {here}"
        for each in words:
            assert " ".join(each.split()) in text, (path, each)


def _operation(stage: Stage, number: int, text: str) -> Operation:
    """An order, a refund elsewhere, an agent with an owner, and a proposal: all called `text`."""
    owner = Person.objects.create_user(f"{text} owner")
    agent = Agent.objects.create(name=text[:64], owner=owner, accounts=["plain-main"])
    AgentAct.objects.create(agent=agent, person=owner, act=text[:32], detail={text: text})
    build.order(
        text,
        payment_ref=f"pi {text}",
        customer_ref=text,
        return_state=text[:64],
        fulfilment_state=text[:64],
        lines=[{"name": text, "quantity": 1, "amount_minor": 100}],
        facts=[{"label": text, "value": text, "source": text}],
        links={text[:64]: f"https://localhost/{text}", "ticket": f"https://localhost/?{text}"},
    )
    build.external_refund(text, 100, ref=f"rf {text}", payment_ref=f"pi {text}")
    operation = build.proposed(
        agent,
        text,
        1_000 + number,
        reason_text=text,
        ticket_ref=text,
        run_ref=text,
        step_ref=text,
        request_ref=text,
        requested_by_ref=text,
        claims={text: text, "order_total_minor": text, "return_state": text},
        read_links=(text,),
    )
    Draft.objects.create(
        person=stage.cast.cleo,
        form="reject",
        object_ref=str(operation.pk),
        fields={"reason": text, "reason_code": text},
    )
    return operation


def test_nothing_of_the_corpus_is_more_than_text_on_any_page(
    visitors: Visitors, stage: Stage
) -> None:
    operations = {text: _operation(stage, number, text) for number, text in enumerate(CORPUS)}
    lead = _Watched(visitors.sign_in("cleo"), visitors.base)
    for text, operation in operations.items():
        order = quote(text, safe="")
        lead.look(f"/approvals?open={operation.pk}", text)
        expect(lead.page.locator("#reason")).to_have_value(text)
        lead.look(f"/operations/{operation.pk}", text)
        lead.look(f"/orders/{order}", text)
        lead.look(f"/status/{order}", text)
    for path in ("/", "/approvals", "/approvals?tab=all", "/unknown", "/orders", "/search?q=%3C"):
        lead.look(path)
    admin = _Watched(visitors.sign_in("adam"), visitors.base)
    admin.look("/agents", *[text[:64] for text in CORPUS])
    for agent in Agent.objects.filter(name__in=[text[:64] for text in CORPUS]):
        admin.look(f"/agents/{agent.pk}", agent.name)
    admin.look("/people")


def test_what_a_reader_types_into_an_address_is_text_too(visitors: Visitors) -> None:
    lead = _Watched(visitors.sign_in("cleo"), visitors.base)
    for text in CORPUS:
        lead.look(f"/search?{urlencode({'q': text})}")
        lead.look(f"/approvals?{urlencode({'tab': text, 'after': '', 'open': text})}")
    lead.look(f"/operations/{quote(CORPUS[0], safe='')}")


def test_reasons_that_everybody_reads_and_a_providers_words_are_text(
    visitors: Visitors, stage: Stage
) -> None:
    stage.provider.payment("pi <img src=x onerror=window.ran=1>", 12900)
    build.order("A-1", payment_ref="pi <img src=x onerror=window.ran=1>")
    stage.provider.fault("drop_after_commit", times=1)
    operation = build.authorized(
        stage.cast.foxtrot, stage.cast.cleo, order_ref="A-1", amount_minor=900
    )
    dispatch.send(str(operation.pk))
    reconciler.look_up(operation.pk)
    lead = _Watched(visitors.sign_in("cleo"), visitors.base)
    lead.look(f"/operations/{operation.pk}", "pi <img src=x onerror=window.ran=1>")
    for several in batched(CORPUS, 3, strict=False):
        reason = " ".join(several)
        sending.stop_everything(by="olga", reason=reason)
        sending.pause("plain-blind", kind="person", reason=reason, by=several[0])
        lead.look("/sending", *several)
        sending.start_again(by="ines")
        sending.resume("plain-blind", by="ines")


def test_hostile_preferences_change_nothing(visitors: Visitors, stage: Stage) -> None:
    Preference.objects.create(person=stage.cast.cleo, theme='"><b')
    Person.objects.filter(pk=stage.cast.cleo.pk).update(time_zone=CORPUS[0])
    lead = _Watched(visitors.sign_in("cleo"), visitors.base)
    lead.look("/profile", "cleo")
    assert lead.page.locator("html").get_attribute("data-theme") is None
