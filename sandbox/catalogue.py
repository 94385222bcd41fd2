"""Every fault the sandbox knows: where it may strike and which options it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANY_REQUEST = frozenset({"create", "retrieve", "list", "cancel"})
CREATE = frozenset({"create"})
WRITES = frozenset({"create", "cancel"})
LOOKUPS = frozenset({"retrieve", "list"})
LIST = frozenset({"list"})
RETRIEVE = frozenset({"retrieve"})
NOTICE = frozenset({"notice"})

_TEXT = (str,)
_WHOLE = (int,)
_NUMBER = (int, float)
_FLAG = (bool,)
_OBJECT = (dict,)
_RETRY_AFTER = (int, str)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`exclusive`: only one such fault strikes a request, the first whose rule fires."""

    on: frozenset[str]
    exclusive: bool = False
    options: Mapping[str, tuple[type, ...]]


def _error(on: frozenset[str], **more: tuple[type, ...]) -> Kind:
    options = {"executed": _FLAG, "stored": _FLAG, "envelope": _TEXT, **more}
    return Kind(on=on, exclusive=True, options=options)


def _answer(**options: tuple[type, ...]) -> Kind:
    return Kind(on=ANY_REQUEST, exclusive=True, options=options)


def _also(on: frozenset[str], **options: tuple[type, ...]) -> Kind:
    return Kind(on=on, options=options)


CATALOGUE: Mapping[str, Kind] = {
    "refuse_connect": _answer(seconds=_NUMBER),
    "reset_before": _answer(),
    "drop_before_commit": _answer(),
    "drop_after_commit": _answer(),
    "hold": _answer(execute=_TEXT, seconds=_NUMBER),
    "land_late": Kind(on=CREATE, exclusive=True, options={"seconds": _NUMBER, "connection": _TEXT}),
    "land_past_flight": Kind(
        on=CREATE, exclusive=True, options={"seconds": _NUMBER, "connection": _TEXT}
    ),
    "delay": _also(ANY_REQUEST, seconds=_NUMBER),
    "drip": _answer(seconds=_NUMBER, part=_TEXT),
    "busy_409": _error(WRITES),
    "rate_429": _error(ANY_REQUEST, retry_after=_RETRY_AFTER),
    "duplicate_429": _error(WRITES, retry_after=_RETRY_AFTER),
    "auth_401": _error(ANY_REQUEST),
    "auth_403": _error(ANY_REQUEST),
    "error_after_commit": _error(WRITES, status=_WHOLE),
    "stored_500": _error(WRITES, status=_WHOLE),
    "lookup_503": _error(LOOKUPS, status=_WHOLE, retry_after=_RETRY_AFTER),
    "truncated": _answer(),
    "html_200": _answer(),
    "huge_body": _answer(bytes=_WHOLE),
    "bad_json": _answer(),
    "wrong_amount": _answer(amount_minor=_WHOLE),
    "wrong_currency": _answer(currency=_TEXT),
    "redirect": _answer(status=_WHOLE, location=_TEXT),
    "execute_twice": _also(CREATE),
    "forget_key": _also(WRITES),
    "fail_later": _also(CREATE, seconds=_NUMBER),
    "cancel_later": _also(CREATE, seconds=_NUMBER),
    "ask_customer": _also(CREATE, seconds=_NUMBER),
    "take_back": _also(CREATE, seconds=_NUMBER),
    "already_refunded": _also(CREATE),
    "list_lag": _also(LOOKUPS, seconds=_NUMBER),
    "list_missing_page": _also(LIST),
    "list_cursor_loop": _also(LIST),
    "list_ignores_filter": _also(LIST),
    "wrong_mode": _also(LOOKUPS),
    "retrieve_404": _also(RETRIEVE),
    "notice_lost": _also(NOTICE),
    "notice_duplicated": _also(NOTICE, copies=_WHOLE),
    "notice_reversed": _also(NOTICE),
    "notice_late": _also(NOTICE, seconds=_NUMBER),
    "notice_forged": _also(NOTICE, refund=_OBJECT),
    "notice_old": _also(NOTICE, seconds=_NUMBER),
    "notice_future": _also(NOTICE, seconds=_NUMBER),
    "notice_no_amount": _also(NOTICE),
}

# Options that are one of a few words; the first is the default.
WORDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("hold", "execute"): ("at_once", "on_release"),
    ("land_late", "connection"): ("drop", "hold"),
    ("land_past_flight", "connection"): ("drop", "hold"),
    ("drip", "part"): ("body", "all"),
}


def option_problem(fault: str, options: Mapping[str, Any]) -> str | None:
    """What is wrong with a rule's `with`, or None."""
    known = CATALOGUE[fault].options
    for name, value in options.items():
        if name not in known:
            return f"{fault} takes no option {name!r}; it takes {sorted(known) or 'none'}"
        if not isinstance(value, known[name]) or (
            isinstance(value, bool) and known[name] is not _FLAG
        ):
            return f"option {name!r} of {fault} must be {known[name][0].__name__}"
        words = WORDS.get((fault, name)) or (("own", "foreign") if name == "envelope" else None)
        if words is not None and value not in words:
            return f"option {name!r} of {fault} must be one of {words}"
        if isinstance(value, int | float) and value < 0:
            return f"option {name!r} of {fault} must not be negative"
    return None
