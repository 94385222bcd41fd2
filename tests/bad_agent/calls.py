"""What a bad agent sends, kind by kind, and which answers are right for it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.bad_agent.hostile import BAD_BODIES, HOSTILE_TEXTS, OVERSIZED, WRONG_FIELDS
from tests.bad_agent.wishes import Wish

# (status, code); the code of an answer without a refusal is "".
Answers = frozenset[tuple[int, str]]
REFUNDS = "/api/v1/refunds"


def _answers(*pairs: tuple[int, str]) -> Answers:
    return frozenset(pairs)


# The same refund again: the operation itself, or a pointer to it.
SAME = _answers((201, ""), (200, ""), (409, "equivalent_unresolved"))
# A call may have been used up by another agent's wish for something else.
SAME_CALL = SAME | _answers((409, "tool_call_reused"))
# An amount nobody wants: it may wait for a person who never says yes, or policy refuses it.
NEVER_APPROVED = SAME
REUSED = _answers((409, "tool_call_reused"), (409, "equivalent_unresolved"), (201, ""), (200, ""))
NOT_FOUND = _answers((404, "not_found"))


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `wish` is set where every answer must point to the one operation of it."""

    kind: str
    method: str
    path: str
    key: str
    right: Answers
    content: bytes = b""
    content_type: str = "application/json"
    wish: Wish | None = None
    console: bool = False


@dataclass
class Armoury:
    """Keys by kind, and what became known on the way: operations that can be asked about."""

    keys: dict[str, list[str]]
    draw: random.Random
    operations: dict[int, str] = field(default_factory=dict)
    _next: int = 0

    def key(self) -> str:
        """A living key; each in its turn, so that none goes faster than it may."""
        self._next += 1
        return self.keys["alive"][self._next % len(self.keys["alive"])]

    def any_key(self, kind: str) -> str:
        return self.draw.choice(self.keys[kind])


def first(armoury: Armoury, wish: Wish, first_id: str = "") -> Call:
    """The honest proposal, with the identity that repeats of the same call carry too."""
    more: dict[str, Any] = {"separate_from": first_id} if wish.separate else {}
    return _proposal("first", armoury.key(), wish, SAME, identity(wish) | more)


def identity(wish: Wish) -> dict[str, Any]:
    return {"session_id": f"chat-{wish.number}", "tool_call_id": f"call_{wish.number}"}


def _proposal(
    kind: str, key: str, wish: Wish, right: Answers, changes: dict[str, Any], *, same: bool = True
) -> Call:
    """A proposal of this wish with changes; a change to None leaves the field out."""
    fields = {
        name: value for name, value in (wish.arguments() | changes).items() if value is not None
    }
    return Call(
        kind=kind,
        method="POST",
        path=REFUNDS,
        key=key,
        right=right,
        content=json.dumps(fields).encode(),
        wish=wish if same else None,
    )


def _fresh(armoury: Armoury) -> dict[str, Any]:
    number = armoury.draw.randrange(16**12)
    return {"session_id": f"s-{number:012x}", "tool_call_id": f"call-{number:012x}"}


# Repeats: one wish, one operation, whoever says it and however it is said.


def same_call(armoury: Armoury, wish: Wish) -> Call:
    return _proposal("same call", armoury.key(), wish, SAME_CALL, identity(wish))


def new_call(armoury: Armoury, wish: Wish) -> Call:
    return _proposal("new call", armoury.key(), wish, SAME, _fresh(armoury))


def other_words(armoury: Armoury, wish: Wish) -> Call:
    words = armoury.draw.choice(HOSTILE_TEXTS)
    right = SAME | _answers((422, "text_card_number"), (422, "text_control"))
    changes = _fresh(armoury) | {"reason_text": words, "claims": {"note": words}}
    return _proposal("other words", armoury.key(), wish, right, changes)


def other_reason(armoury: Armoury, wish: Wish) -> Call:
    changes = _fresh(armoury) | {"reason_code": "other"}
    return _proposal("other reason", armoury.key(), wish, SAME, changes)


def as_decimal(armoury: Armoury, wish: Wish) -> Call:
    changes = _fresh(armoury) | {"amount_minor": None, "amount": wish.decimal()}
    return _proposal("decimal amount", armoury.key(), wish, SAME, changes)


def other_key_order(armoury: Armoury, wish: Wish) -> Call:
    fields = list((wish.arguments() | _fresh(armoury)).items())
    armoury.draw.shuffle(fields)
    call = _proposal("other key order", armoury.key(), wish, SAME, {})
    content = json.dumps(dict(fields), indent=1).encode()
    return Call(call.kind, call.method, call.path, call.key, SAME, content, wish=wish)


# Mutations: other wishes, which no lead will ever say yes to.


def other_amount(armoury: Armoury, wish: Wish) -> Call:
    amount = wish.amount_minor + armoury.draw.choice([-400, -1, 1, 2, 300, 5_000, 60_000])
    changes = _fresh(armoury) | {"amount_minor": amount}
    return _proposal("other amount", armoury.key(), wish, NEVER_APPROVED, changes, same=False)


def reused_call(armoury: Armoury, wish: Wish) -> Call:
    changes = identity(wish) | {"amount_minor": wish.amount_minor + armoury.draw.randrange(1, 400)}
    return _proposal("reused call", armoury.key(), wish, REUSED, changes, same=False)


def wrong_field(armoury: Armoury, wish: Wish) -> Call:
    changes, code = armoury.draw.choice(WRONG_FIELDS)
    right = _answers((422, code), (409, "equivalent_unresolved"))
    return _proposal(
        "wrong field", armoury.key(), wish, right, _fresh(armoury) | changes, same=False
    )


def unknown_order(armoury: Armoury, wish: Wish) -> Call:
    ref = armoury.draw.choice([*HOSTILE_TEXTS, wish.order_ref.upper(), wish.order_ref + " "])
    changes = _fresh(armoury) | {"order_ref": ref[:128]}
    right = _answers(
        *((422, code) for code in ("order_unknown", "field_format", "text_control")),
        (422, "text_card_number"),
    )
    return _proposal("unknown order", armoury.key(), wish, right, changes, same=False)


def foreign_payment(armoury: Armoury, wish: Wish) -> Call:
    changes = _fresh(armoury) | {"payment_ref": f"{wish.payment_ref}0"}
    right = _answers((422, "payment_unknown"))
    return _proposal("foreign payment", armoury.key(), wish, right, changes, same=False)


# Doors that are not theirs.


def foreign_order(armoury: Armoury, wish: Wish) -> Call:
    right = _answers((422, "order_unknown"))
    key = armoury.any_key("foreign")
    return _proposal("foreign order", key, wish, right, _fresh(armoury), same=False)


def foreign_operation(armoury: Armoury, wish: Wish) -> Call:
    known = armoury.operations.get(wish.number)
    path = f"{REFUNDS}/{known or '0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a'}"
    return Call("foreign operation", "GET", path, armoury.any_key("foreign"), NOT_FOUND)


def foreign_withdrawal(armoury: Armoury, wish: Wish) -> Call:
    known = armoury.operations.get(wish.number)
    path = f"{REFUNDS}/{known or '0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a'}/withdraw"
    key = armoury.any_key("foreign")
    return Call("foreign withdrawal", "POST", path, key, NOT_FOUND, b"{}")


def feeds_facts(armoury: Armoury, wish: Wish) -> Call:
    facts = {"currency": wish.currency, "payments": [], "customer_ref": "cus_mallory"}
    path = f"/api/v1/orders/{wish.order_ref}"
    right = _answers((403, "scope_missing"))
    return Call("feeds facts", "PUT", path, armoury.key(), right, json.dumps(facts).encode())


def only_reads(armoury: Armoury, wish: Wish) -> Call:
    key, right = armoury.any_key("reading"), _answers((403, "scope_missing"))
    return _proposal("only reads", key, wish, right, _fresh(armoury), same=False)


def approves(armoury: Armoury, wish: Wish) -> Call:
    """Every door that an agent might take for an approval."""
    known = armoury.operations.get(wish.number, "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a")
    path = armoury.draw.choice(
        [
            f"{REFUNDS}/{known}/approve",
            f"{REFUNDS}/{known}/resolve",
            f"{REFUNDS}/{known}/send",
            f"/api/v1/operations/{known}",
            f"/approvals/{known}/approve",
            "/sending/start",
        ]
    )
    console = not path.startswith("/api/")
    right = (
        frozenset((status, "") for status in (302, 303, 401, 403))
        if console
        else _answers((404, "not_found"), (405, "method_not_allowed"))
    )
    return Call("approves", "POST", path, armoury.key(), right, b"{}", console=console)


# Keys that are none.


def dead_key(armoury: Armoury, wish: Wish) -> Call:
    kind = armoury.draw.choice(["revoked", "expired"])
    right = _answers((401, f"credential_{kind}"))
    return _proposal(f"{kind} key", armoury.any_key(kind), wish, right, _fresh(armoury), same=False)


def no_key(armoury: Armoury, wish: Wish) -> Call:
    key = armoury.draw.choice(["", "as_wrong", armoury.key()[:-1] + "!", "' OR 1=1 --"])
    right = _answers((401, "credential_missing"), (401, "credential_invalid"))
    return _proposal("no key", key, wish, right, _fresh(armoury), same=False)


def hasty(armoury: Armoury) -> Call:
    """With the one key that goes far faster than it may."""
    right = _answers((200, ""), (429, "rate_limited"))
    path = f"{REFUNDS}?limit=1"
    return Call("hasty", "GET", path, armoury.any_key("hasty"), right)


# Bodies that are none.


def bad_body(armoury: Armoury, wish: Wish) -> Call:
    content, right = armoury.draw.choice(BAD_BODIES)
    return Call("bad body", "POST", REFUNDS, armoury.key(), frozenset(right), content)


def oversized(armoury: Armoury, wish: Wish) -> Call:
    right = _answers((413, "body_too_large"))
    return Call("oversized", "POST", REFUNDS, armoury.key(), right, OVERSIZED)


def no_json(armoury: Armoury, wish: Wish) -> Call:
    form = b"order_ref=4821&amount=79.00"
    kind = "application/x-www-form-urlencoded"
    right = _answers((415, "not_json"))
    return Call("no json", "POST", REFUNDS, armoury.key(), right, form, kind)


def asks(armoury: Armoury, wish: Wish) -> Call:
    known = armoury.operations.get(wish.number)
    if known is None:
        return same_call(armoury, wish)
    right = _answers((200, ""))
    return Call("asks", "GET", f"{REFUNDS}/{known}", armoury.key(), right, wish=wish)


KINDS: dict[Callable[[Armoury, Wish], Call], int] = {
    same_call: 10,
    new_call: 10,
    other_words: 8,
    other_reason: 5,
    as_decimal: 6,
    other_key_order: 5,
    other_amount: 5,
    reused_call: 5,
    wrong_field: 9,
    unknown_order: 4,
    foreign_payment: 3,
    foreign_order: 4,
    foreign_operation: 4,
    foreign_withdrawal: 4,
    feeds_facts: 3,
    only_reads: 2,
    approves: 5,
    dead_key: 4,
    no_key: 3,
    bad_body: 6,
    oversized: 1,
    no_json: 1,
    asks: 6,
}


def any_call(armoury: Armoury, wish: Wish) -> Call:
    """One call of a drawn kind about this wish."""
    kind = armoury.draw.choices(list(KINDS), weights=list(KINDS.values()))[0]
    return kind(armoury, wish)
