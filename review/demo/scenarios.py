"""Orders that always go wrong in the same way, like test cards; they exist in the demo only.

The misbehaviour is the sandbox's own: it knows the payments of these orders. Here is only what our
side feeds about them, and what is to be expected, as data.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from refunds import feed
from refunds.models import Order
from review.demo.shop import FED_BY, Control

CURRENCY: Final = "USD"
CAPTURED_MINOR: Final = 50_000_000
REJECTION: Final = "Not owed: this order is there to be rejected."


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One order. `decides_after_seconds` None: nobody is asked; else the demo's approvers decide.

    `happens`, `agent_sees` and `ends` are sentences for the documentation.
    """

    name: str
    account: str
    happens: str
    agent_sees: str
    ends: str
    decides_after_seconds: float | None = 1
    captured_days_ago: int = 9

    @property
    def payment_ref(self) -> str:
        """The sandbox knows its own payments by this form."""
        return f"pi_{self.name}"


SCENARIOS: Final = (
    Scenario(
        name="demo-answer-lost",
        account="plain-main",
        happens="The provider makes the refund, and its answer never arrives.",
        agent_sees="`unknown` for about a second, then `succeeded`",
        ends="A lookup finds the refund by its marker.",
    ),
    Scenario(
        name="demo-500-after-commit",
        account="plain-main",
        happens="The provider makes the refund and answers HTTP 500.",
        agent_sees="`unknown` for about a second, then `succeeded`",
        ends="A 500 proves nothing; a lookup finds the refund.",
    ),
    Scenario(
        name="demo-lookup-lags",
        account="plain-lagged",
        happens="The answer is lost, and lookups show a refund only three seconds later.",
        agent_sees="`unknown` for about four seconds, then `succeeded`",
        ends="The first lookups find no record, which proves nothing yet; a later one finds it.",
    ),
    Scenario(
        name="demo-no-lookup",
        account="plain-blind",
        happens="The answer is lost, and this provider has neither lookups nor notices.",
        agent_sees="`unknown`, and it stays",
        ends="A case for a person; nothing is sent again.",
    ),
    Scenario(
        name="demo-turned-away",
        account="plain-weak",
        happens="The provider's rate limit turns the first try away, before it executes anything.",
        agent_sees="`in_progress` for some ten seconds, then `succeeded`",
        ends="The second try passes under the same key. Three such first tries in a row pause the"
        " account `plain-weak`, which only this order uses, for about a minute.",
    ),
    Scenario(
        name="demo-stale",
        account="plain-main",
        happens="The order changes in the shop between the approval and the send.",
        agent_sees="`in_progress`, then `stale`",
        ends="Nothing was sent. The demo's approvers let it rest: sign in as `cleo` and approve it,"
        " and it is sent.",
    ),
    Scenario(
        name="demo-denied",
        account="plain-main",
        happens="The payment was captured 200 days ago; the policy allows 180.",
        agent_sees="`denied` at once, with the failed check `refund_age`",
        ends="Recorded and ended; nobody is asked.",
        decides_after_seconds=None,
        captured_days_ago=200,
    ),
    Scenario(
        name="demo-rejected",
        account="plain-main",
        happens="A lead says no, with a reason.",
        agent_sees="`rejected` after about a second, with the reason",
        ends="Ended; nothing was sent.",
    ),
    Scenario(
        name="demo-approved-after-5s",
        account="plain-main",
        happens="A lead says yes after five seconds, and nothing goes wrong.",
        agent_sees="`awaiting_approval`, `in_progress`, `succeeded`",
        ends="Sent once and confirmed by the provider's own answer.",
        decides_after_seconds=5,
    ),
    Scenario(
        name="demo-needs-customer",
        account="stripe-main",
        happens="The provider needs the customer, who answers it after a minute.",
        agent_sees="`pending` with `next_action: ask_customer`, then `succeeded`",
        ends="Lookups see the refund turn from `requires_action` to `succeeded`.",
    ),
)
BY_ORDER: Final = {each.name: each for each in SCENARIOS}


def _payments(now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "account": each.account,
            "ref": each.payment_ref,
            "currency": CURRENCY,
            "captured_minor": CAPTURED_MINOR,
            "created_at": (now - timedelta(days=each.captured_days_ago)).isoformat(),
        }
        for each in SCENARIOS
    ]


def ensure_orders(control: Control) -> int:
    """Feed every scenario order that is not there, and tell the sandbox of its payment; how many
    are new."""
    control.tell_history(_payments(timezone.now()))
    known = set(Order.objects.filter(ref__in=BY_ORDER).values_list("ref", flat=True))
    missing = [each for each in SCENARIOS if each.name not in known]
    for each in missing:
        feed.upsert(_snapshot(each, timezone.now()), by=FED_BY)
    return len(missing)


def _snapshot(scenario: Scenario, now: datetime) -> feed.OrderSnapshot:
    captured_at = now - timedelta(days=scenario.captured_days_ago)
    return feed.OrderSnapshot(
        ref=scenario.name,
        currency=CURRENCY,
        feed_seq=1,
        facts_as_of=now,
        customer_ref=f"cus_{scenario.name}",
        return_state="requested",
        fulfilment_state="delivered",
        placed_at=captured_at - timedelta(hours=1),
        lines=[{"name": "Scenario", "quantity": 1, "amount_minor": CAPTURED_MINOR}],
        facts=[
            {
                "label": "Scenario",
                "value": scenario.happens,
                "source": "demo",
                "at": now.isoformat(timespec="seconds"),
            }
        ],
        payments=(
            feed.PaymentSnapshot(
                ref=scenario.payment_ref,
                provider_account=scenario.account,
                state="captured",
                captured_minor=CAPTURED_MINOR,
                captured_at=captured_at,
            ),
        ),
    )


def markdown_table() -> str:
    """The table of the scenario orders for the documentation, with what holds for all of them."""
    lines = [
        "| order | account | what happens | what the agent sees | how it ends |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{each.name}` | `{each.account}` | {each.happens} | {each.agent_sees} | {each.ends} |"
        for each in SCENARIOS
    ]
    return "\n".join([*lines, "", *_NOTES]) + "\n"


_NOTES = (
    "Each has one payment in USD, and each amount up to 200.00 is another refund of it: to repeat a",
    "scenario, ask for another amount, or for the same one with `separate_from` once the first has",
    "ended. Two approvers that exist only in the demo (`demo-approver`, `demo-approver-two`) decide",
    "about these orders a second after the proposal, and about no others; the ten seconds in which",
    "an approval can be taken back stay, so a refund is sent some ten to sixteen seconds later.",
)
