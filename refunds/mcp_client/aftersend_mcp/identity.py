"""Which call a call is, when a host names it and when it does not. Pure.

Calls that carry the same two ids are the same call and stand for one refund. What this cannot
see is caught later: an equal refund that is open or has ended lately is always recognised.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

# Ours first; then those that hosts are known to send.
CALL_KEYS: Final = ("aftersend/tool_call_id", "claudecode/toolUseId")
SESSION_KEYS: Final = ("aftersend/session_id", "openai/session", "vscode.conversationId")
# The session of calls that name none over stateless HTTP.
NO_SESSION: Final = "mcp"
# A refund that ended in one of these left nothing behind, and may be asked for again.
LEFT_NOTHING: Final = frozenset({"denied", "withdrawn", "expired"})
# So often the same words may begin anew. A model that loops on a refusal comes to an end here: it
# gets its last answer again, and every look behind it costs a call. A request_ref begins anew.
ANEW_MAX: Final = 20

_FORM: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_PLAIN_DECIMAL: Final = re.compile(r"([0-9]+)\.([0-9]*?)0*", re.ASCII)
_ARGUMENTS: Final = (
    *("order_ref", "payment_ref", "amount_minor", "currency", "reason_code"),
    *("request_ref", "separate_from"),
)


def call_ids(
    arguments: Mapping[str, Any], meta: Mapping[str, Any] | None, session: str
) -> Iterator[tuple[str, str]]:
    """The (session_id, tool_call_id) to propose under, the likeliest first; never empty.

    The ids in the arguments come first, then those of the host's `_meta`. A call that nobody
    names is known by its arguments: then more ids follow, for when the refund of an earlier id
    has ended and left nothing behind, or so long ago that the wish is a new one; the last of them
    stands whatever became of it.
    `session` is used where neither argument nor host names one.
    """
    named = arguments.get("session_id") or _from(meta, SESSION_KEYS) or session
    call = arguments.get("tool_call_id") or _from(meta, CALL_KEYS)
    if call is not None:
        yield named, call
        return
    digest = _digest(arguments)
    if arguments.get("request_ref") is not None:
        yield named, f"args.{digest}"  # the wish has a name, which stands for one refund for ever
        return
    for number in range(1, ANEW_MAX + 1):
        yield named, f"args.{digest}" if number == 1 else f"args.{digest}.{number}"


def session_of(arguments: Mapping[str, Any], meta: Mapping[str, Any] | None, session: str) -> str:
    """The session that a call belongs to."""
    return str(arguments.get("session_id") or _from(meta, SESSION_KEYS) or session)


def _from(meta: Mapping[str, Any] | None, keys: tuple[str, ...]) -> str | None:
    """The first id that the host sent, in the form that we store."""
    for key in keys:
        value = (meta or {}).get(key)
        if isinstance(value, str) and value:
            return value if _FORM.fullmatch(value) else _sha256(value)
    return None


def _digest(arguments: Mapping[str, Any]) -> str:
    known = {name: arguments.get(name) for name in _ARGUMENTS} | {
        "amount": _shortest(arguments.get("amount"))
    }
    return _sha256(json.dumps(known, sort_keys=True))


def _shortest(amount: Any) -> Any:
    """ "79.00" and "79.0" as "79"; everything else as it is."""
    form = _PLAIN_DECIMAL.fullmatch(amount) if isinstance(amount, str) else None
    if form is None:
        return amount
    return f"{form[1]}.{form[2]}" if form[2] else form[1]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:40]
