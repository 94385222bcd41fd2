"""What the walkthrough relies on: pages read as a browser reads them, and switches that exist."""

from __future__ import annotations

from tests.page import Page
from tests.walkthrough.__main__ import BROKEN_ELSEWHERE, FOUND_AS
from tests.walkthrough.broken import MODES

PAGE = """
<html><head><title>no</title><script>var hidden = "no";</script></head><body>
<nav>menu<form id="find"><input name="q"></form></nav>
<main id="main"><h1>Refund <b>79.00</b></h1>
<section id="result"><p>Not approved.</p><p>Only 40.00 USD</p></section>
<form id="approval-form" method="post" action="/approvals/1/approve">
  <input type="hidden" name="intent" value="i-1"><input type="hidden" name="shown" value="a&amp;b">
  <input type="checkbox" name="separate" value="on"><textarea name="reason">as typed</textarea>
  <select name="kind"><option value="one">1</option><option value="two" selected>2</option></select>
  <button type="submit" name="act" value="approve">Approve <i>refund</i></button>
  <button type="button">Cancel</button>
</form>
<button form="approval-form" formaction="/elsewhere">Hold</button></main></body></html>
"""


def test_only_the_words_of_the_main_part_are_the_screen() -> None:
    page = Page("http://127.0.0.1/approvals", 200, PAGE)
    assert page.text.startswith("Refund 79.00\n")
    assert "menu" not in page.text
    assert "no" not in page.text.split()
    assert page.part("result") == "Not approved.\nOnly 40.00 USD"
    assert page.part("nothing") == ""


def test_a_form_is_what_a_browser_would_send_for_it() -> None:
    form = Page("http://127.0.0.1/approvals?open=1", 200, PAGE).form("approval-form")
    assert (form.method, form.action) == ("post", "http://127.0.0.1/approvals/1/approve")
    wanted = {"intent": "i-1", "shown": "a&b", "reason": "as typed", "kind": "two"}
    assert form.values == wanted
    assert form.boxes == {"separate": "on"}
    assert [each.words for each in form.buttons] == ["Approve refund", "Hold"]
    assert form.button("approve").value == "approve"
    assert form.button("Hold").action == "http://127.0.0.1/elsewhere"


def test_every_switch_names_the_count_in_which_it_must_be_found() -> None:
    assert {*MODES, *BROKEN_ELSEWHERE} == {*FOUND_AS}
