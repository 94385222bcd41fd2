"""Faults that answer with an error, whether or not the request was executed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.dialects import Dialect
from sandbox.operations import Answer, Declined, Twists
from sandbox.profiles import Profile

_GATEWAY_PAGE = b"<html><body><h1>The gateway could not serve this request</h1></body></html>"


@dataclass(frozen=True, kw_only=True)
class ErrorFault:
    """`foreign`: a hop in front answers, not in the provider's envelope, and stores nothing."""

    code: str
    executed: bool = False
    stored: bool = False
    foreign: bool = False
    status: int | None = None
    retry_after: str | None = None

    def answer(self, dialect: Dialect) -> Answer:
        own = dialect.declined(Declined(self.code, "the sandbox was told to answer this"))
        status = self.status or own.status
        headers = own.headers
        if self.retry_after is not None:
            headers = (*headers, ("Retry-After", self.retry_after))
        if self.foreign:
            return Answer(
                status=status,
                body=_GATEWAY_PAGE,
                headers=headers[-1:],
                content_type="text/html",
            )
        return Answer(status=status, body=own.body, headers=headers)

    def kept_by(self, profile: Profile) -> bool:
        """Whether the provider stores this error under the key in place of the true answer."""
        return self.stored or (profile.stores_5xx and self.code == "server_error")


ERROR_FAULTS: Mapping[str, ErrorFault] = {
    "busy_409": ErrorFault(code="key_in_use"),
    "rate_429": ErrorFault(code="rate_limited"),
    "duplicate_429": ErrorFault(code="duplicate_request"),
    "auth_401": ErrorFault(code="unauthorized"),
    "auth_403": ErrorFault(code="forbidden"),
    "lookup_503": ErrorFault(code="unavailable"),
    "error_after_commit": ErrorFault(code="server_error", executed=True),
    "stored_500": ErrorFault(code="server_error", executed=True, stored=True),
}


def error_fault(twists: Twists) -> ErrorFault | None:
    """The error fault of this request, with the rule's options applied."""
    for fired in twists.fired:
        fault = ERROR_FAULTS.get(fired.fault)
        if fault is not None:
            return _with_options(fault, fired.options)
    return None


def _with_options(fault: ErrorFault, options: Mapping[str, Any]) -> ErrorFault:
    retry_after = options.get("retry_after")
    return ErrorFault(
        code=fault.code,
        executed=options.get("executed", fault.executed),
        stored=options.get("stored", fault.stored),
        foreign=options.get("envelope") == "foreign",
        status=options.get("status"),
        retry_after=None if retry_after is None else str(retry_after),
    )
