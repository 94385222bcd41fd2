"""What a model reads about the tools. Short: hosts cut a description off after some 2,000 letters."""

from __future__ import annotations

from typing import Final

INSTRUCTIONS: Final = (
    "Propose refunds and ask what became of them. You can approve nothing and send nothing: people"
    " do, or the installation's rules. Propose a refund once: proposing it again never makes it"
    " faster and never helps. The outcome `unknown` means that the money may or may not have moved"
    " and that we are finding out: it is not a failure. Tell the customer the words in `say`,"
    " promise nothing else, and do what `next_action` says. You cannot wait: where something comes"
    " later, end your turn and tell the customer `say`."
)

# Everything that a result or an error may advise, as one line for a model each.
NEXT_ACTIONS: Final = {
    "ask_status": "recorded; ask get_refund_status later, do not propose again",
    "stop_and_tell_customer": "you asked often enough; stop, end your turn",
    "ask_customer": "the payment company needs something from the customer",
    "done": "nothing is left to do",
    "tell_a_person": "you cannot solve it; tell a colleague, do not propose again",
    "correct_and_propose": "not accepted; only if a true correction helps propose that, as a new"
    " call, never in parts",
    "propose_again_if_needed": "ended unsent; propose again if still wanted",
    "correct_and_repeat": "nothing recorded; correct what `what_to_do` says, call again",
    "repeat_later": "the same arguments again, after retry_after_seconds",
    "repeat_same_call": "no answer came; the same arguments again, with the two ids of"
    " `what_to_do`",
}
_NEXT: Final = """\
Tell the customer `say`, no guess of yours, and do what `next_action` says. You cannot wait: for
"later", end your turn.
""" + "\n".join(f"- {name}: {asks}" for name, asks in NEXT_ACTIONS.items())

PROPOSE: Final = f"""\
Ask for one refund of one payment of an order, once per refund that is owed.

`outcome` says where that refund stands:
- awaiting_approval, stale: recorded, people decide; minutes or hours
- in_progress, pending: on its way; seconds or days
- unknown: sent, no answer came. The money MAY OR MAY NOT have moved. No failure: do not propose
  again
- succeeded: paid. mismatched, returned: money moved, not as it should
- failed, rejected, denied, expired, withdrawn: not paid; `reasons`
- already_done: nothing new recorded; an equal refund ended lately. Read `state`: paid, or refused
- conflict: this refund exists already; the answer is it. No error, nothing to repeat
After the errors tool_call_reused and request_ref_reused your refund was NOT recorded.

{_NEXT}
`do_not_repeat`: never propose this very refund again. `money_may_have_moved`: yes, no or maybe.
Send the amount once: `amount` as text ("79.00") or `amount_minor` as a whole number (7900)."""

STATUS: Final = f"""\
Ask what became of a refund that was proposed, by its `operation_id`. Changes nothing.

`unknown` means that nobody saw the provider's answer: the money may or may not have moved. It is
being looked up; do not propose the refund again. Ask again only after `ask_again_after_seconds`,
at most a few times.

{_NEXT}"""

LIST: Final = """\
Show an order's payments, what can still be refunded, and every refund of it. Changes nothing.

Use it before proposing, to see whether the refund exists already. A refund in `unknown` counts:
it may have happened."""

WITHDRAW: Final = """\
Take back a refund that you proposed and that has not been sent. Moves no money.

Once sending has begun it cannot be taken back: the answer is then `conflict` with where the
refund stands. Withdrawing is no way to find out what happened; use get_refund_status."""
