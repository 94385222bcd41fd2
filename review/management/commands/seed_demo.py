"""Fill a demo: people, agents with keys, a shop, and a morning of refunds. Safe to run again."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config.demo_secrets import kept_secrets, remember
from review.demo import past, people, scenarios, second_factors, shop, wishes


class Command(BaseCommand):
    help = "Fill the demo with people, agents, orders and refunds, and print how to sign in."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.ENV.env == "production":
            raise CommandError("seed_demo is for the demo only; nothing was stored.")
        run_dir = settings.ENV.run_dir
        kept: dict[str, Any] = dict(kept_secrets(run_dir))
        everybody = people.ensure_people(kept["password"])
        agents = people.ensure_agents(everybody)
        keys = people.ensure_keys(agents, kept.get("keys", {}))
        # The past is counted from one instant, kept so that a start that broke off tells the same.
        began_at = kept.get("past_until") or timezone.now().isoformat()
        if keys != kept.get("keys") or "past_until" not in kept:
            remember(run_dir, kept | {"keys": keys, "past_until": began_at})
        control = shop.Control(
            shop.sandbox_address(), settings.ENV.sandbox_token or kept["sandbox_token"]
        )
        try:
            control.send_notices_to(f"http://127.0.0.1:{settings.ENV.port}")
            told = past.ensure(datetime.fromisoformat(began_at), everybody, agents, control)
            orders = shop.ensure_orders(control) + scenarios.ensure_orders(control)
            asked = wishes.ensure_wishes(agents, everybody, control)
        except shop.SandboxAway as error:
            raise CommandError(f"The sandbox did not take the demo's payments: {error}") from error
        people.ensure_approvers()
        self.stdout.write(
            f"New in the demo: {told} refunds of the past fortnight, {orders} orders,"
            f" {len(asked)} refunds asked for."
        )
        self.stdout.write("\n".join(["", *self._how_to(kept["password"], keys["Echo"])]))
        if settings.SECOND_FACTOR:
            self.stdout.write("\n".join(["", *second_factors.ensure_apps(everybody)]))

    def _how_to(self, password: str, key: str) -> list[str]:
        call = {
            "session_id": "terminal",
            "tool_call_id": "call_1",
            "requested_by": {"kind": "customer", "ref": "cus_203"},
            "order_ref": "4823",
            "amount": "19.00",
            "currency": "USD",
            "reason_code": "damaged_item",
            "reason_text": "one of two bottles leaks",
        }
        return [
            "Who can sign in, once everything has started:",
            *people.who_is_who(password),
            "",
            f"Orders that go wrong by themselves: {', '.join(scenarios.BY_ORDER)}",
            "",
            f"An agent asks like this (all keys: {settings.ENV.run_dir / 'demo.json'}):",
            f"  curl -s {settings.BASE_URL}/api/v1/refunds -H 'Authorization: Bearer {key}' \\",
            f"    -H 'Content-Type: application/json' -d '{json.dumps(call)}'",
            "",
        ]
