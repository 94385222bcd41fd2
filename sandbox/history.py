"""What happened before this book was opened: payments and refunds with their own instants.

A shop that moves to this provider brings its past along. What the book knows already stays as it
is, so the same history may be told again. No notice is sent for it, and its keys are taken.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sandbox.book import Book, Payment, Refund
from sandbox.control_requests import ControlError, required_text
from sandbox.dialects import Dialect
from sandbox.instants import MICROSECONDS
from sandbox.profiles import Profile

PAYMENT_STATES = ("captured", "uncaptured", "disputed", "reversed")
_MADE_BY = ("api", "dashboard")
_PAYMENT_FIELDS = (
    "account",
    "ref",
    "currency",
    "captured_minor",
    "customer",
    "state",
    "created_at",
)
_REFUND_FIELDS = (
    "id",
    "account",
    "payment",
    "amount_minor",
    "marker",
    "key",
    "reason",
    "by",
    "statuses",
)
# A request under a key of the past has another body than any that this book has seen.
_DIGEST_OF_THE_PAST = "history"


class History:
    """Reads one telling of the past and writes it down, all of it or nothing of it."""

    def __init__(self, book: Book, dialects: Mapping[str, Dialect]) -> None:
        self._book = book
        self._dialects = dialects

    def accept(self, payments: list[Any], refunds: list[Any]) -> dict[str, int]:
        """How many of each were new. Raises ControlError history_invalid, account_not_found."""
        with self._book.transaction():
            return {
                "payments": sum(self._payment(_fields(one, _PAYMENT_FIELDS)) for one in payments),
                "refunds": sum(self._refund(_fields(one, _REFUND_FIELDS)) for one in refunds),
            }

    def _payment(self, given: dict[str, Any]) -> bool:
        account, ref = required_text(given, "account"), required_text(given, "ref")
        self._profile(account)
        if self._book.payment(account, ref) is not None:
            return False
        payment = Payment(
            account=account,
            ref=ref,
            charge="ch_" + ref.removeprefix("pi_"),
            currency=required_text(given, "currency"),
            captured_minor=_minor(given, "captured_minor"),
            customer=given.get("customer"),
            state=_one_of(given.get("state", "captured"), PAYMENT_STATES, "state"),
            created_at=_instant(given.get("created_at"), "created_at"),
        )
        self._book.put_payment(payment)
        return True

    def _refund(self, given: dict[str, Any]) -> bool:
        account, refund_id = required_text(given, "account"), required_text(given, "id")
        dialect = self._dialects[self._profile(account).dialect]
        if self._book.refund_number(account, refund_id) is not None:
            return False
        payment_ref = required_text(given, "payment")
        payment = self._book.payment(account, payment_ref)
        if payment is None:
            raise _invalid(f"no payment {payment_ref!r} on {account}; name it under payments")
        course = _course(given.get("statuses"), dialect.statuses)
        marker, key = given.get("marker"), given.get("key")
        refund = Refund(
            id=refund_id,
            account=account,
            payment_ref=payment.ref,
            charge=payment.charge,
            marker=marker,
            key=key,
            amount_minor=_minor(given, "amount_minor"),
            currency=payment.currency,
            reason=given.get("reason"),
            metadata={} if marker is None else {"aftersend_operation": marker},
            created_at=course[0][0],
            by=_one_of(given.get("by", "api"), _MADE_BY, "by"),
            status=course[0][1],
        )
        self._book.add_refund(refund, self._book.mint(), course)
        if key is not None:
            self._take_key(account, key, refund.created_at)
        return True

    def _take_key(self, account: str, key: str, at: int) -> None:
        """Nothing is executed again under a key of the past, for as long as it is kept."""
        self._book.db.execute(
            """INSERT OR IGNORE INTO keys (account, key, digest, first_used_at)
               VALUES (?, ?, ?, ?)""",
            (account, key, _DIGEST_OF_THE_PAST, at),
        )

    def _profile(self, account: str) -> Profile:
        profile = self._book.profile(account)
        if profile is None:
            raise ControlError("account_not_found", f"no account {account!r}", 404)
        return profile


def _invalid(problem: str) -> ControlError:
    return ControlError("history_invalid", problem)


def _fields(given: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise _invalid("payments and refunds are lists of objects")
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise _invalid(f"unknown field {unknown[0]!r}; use {', '.join(known)}")
    return given


def _minor(given: dict[str, Any], name: str) -> int:
    value = given.get(name)
    if type(value) is not int or value < 0:
        raise _invalid(f"{name} must be whole minor units")
    return value


def _one_of(value: Any, words: tuple[str, ...], name: str) -> str:
    if value not in words:
        raise _invalid(f"{name} must be one of {words}")
    return str(value)


def _instant(value: Any, name: str) -> int:
    """Microseconds of an ISO 8601 instant with a zone."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _invalid(f"{name} must be an ISO 8601 instant") from None
    if at.tzinfo is None:
        raise _invalid(f"{name} needs a time zone")
    return round(at.timestamp() * MICROSECONDS)


def _course(given: Any, statuses: tuple[str, ...]) -> list[tuple[int, str]]:
    """The statuses in their order, also those to come; the first is the refund's creation."""
    if not isinstance(given, list) or not given:
        raise _invalid('statuses lists ["instant", "status"], the first one being its creation')
    course = []
    for one in given:
        if not isinstance(one, list) or len(one) != 2:
            raise _invalid('statuses lists ["instant", "status"]')
        course.append((_instant(one[0], "statuses"), _one_of(one[1], statuses, "a status")))
    if course != sorted(course, key=lambda step: step[0]):
        raise _invalid("statuses must be in the order of their instants")
    return course
