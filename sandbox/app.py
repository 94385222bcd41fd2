"""The provider's door: every request is written down, judged, executed and answered here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hmac import compare_digest

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from sandbox.connection import CONTROL_PREFIX, Connection
from sandbox.control import control_routes
from sandbox.dialects import Dialect, Stamp
from sandbox.errors import error_fault
from sandbox.faults import Subject
from sandbox.holds import Hold, terms_for
from sandbox.instants import span
from sandbox.operations import (
    Answer,
    Call,
    Cancel,
    Create,
    Declined,
    ListDisputes,
    ListRefunds,
    Operation,
    Retrieve,
    Twists,
)
from sandbox.profiles import Profile
from sandbox.provider import DIALECTS, Provider
from sandbox.scenarios import scenario
from sandbox.turn import Turn
from sandbox.wire import Pieces, Silence, given

_BODY_BYTES_MAX = 1024 * 1024
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_WAITING_FAULTS = ("hold", "land_late", "land_past_flight")
_DELAY_SECONDS = 1
_NO_ACCOUNT = Profile(dialect="none")
# In the record of calls, beside the faults of rules.
RECEIVED_TOO_LATE = "received_too_late"

Given = Response | Silence | Pieces


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One request that is being served."""

    number: int
    path: str
    received_at: int
    age_seconds: float
    connection: Connection
    stamp: Stamp


class Door:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def ask(self, request: Request) -> Given:
        """Serve one request to `/{dialect}/{account}/...`."""
        try:
            body = await request.body()
        except ClientDisconnect:
            return Silence(request.scope["state"]["connection"])
        provider = self._provider
        provider.settle()
        dialect = DIALECTS.get(request.path_params["dialect"])
        if dialect is None:
            problem = {"code": "dialect_not_found", "message": f"use one of {[*DIALECTS]}"}
            return JSONResponse({"error": problem}, 404)
        call = Call(
            method=request.method,
            path="/" + request.path_params["path"],
            query=tuple(request.query_params.multi_items()),
            headers=request.headers,
            body=body,
        )
        profile = provider.book.profile(request.path_params["account"]) or _NO_ACCOUNT
        read = _read(dialect, call)
        arrival = self._write_down(request, call, read, profile)
        asked = _turned_away(profile, dialect, call) or read
        if isinstance(asked, Declined):
            return self._answered(arrival, dialect, dialect.declined(asked), Twists())
        flight_seconds_max = profile.flight_seconds_max
        if flight_seconds_max is not None and arrival.age_seconds > flight_seconds_max:
            # This process was stopped since the request came in: too late to execute it.
            provider.calls.note_faults(arrival.number, [RECEIVED_TOO_LATE])
            return self._dropped(arrival)
        return await self._serve(arrival, profile, dialect, asked)

    def _write_down(
        self, request: Request, call: Call, read: Operation | Declined, profile: Profile
    ) -> Arrival:
        book, calls = self._provider.book, self._provider.calls
        connection: Connection = request.scope["state"]["connection"]
        account, age_seconds = request.path_params["account"], connection.request_age_seconds()
        received_at = book.now() - span(age_seconds)
        url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        operation = None if isinstance(read, Declined) else read
        number = calls.record(account, call, url, operation, received_at)
        return Arrival(
            number=number,
            path=request.url.path,
            received_at=received_at,
            age_seconds=age_seconds,
            connection=connection,
            stamp=Stamp(
                account=account,
                mode=profile.mode,
                call_number=number,
                key=call.key,
                api_version=call.headers.get("stripe-version"),
            ),
        )

    async def _serve(
        self, arrival: Arrival, profile: Profile, dialect: Dialect, operation: Operation
    ) -> Given:
        provider = self._provider
        twists = self._twists(arrival.stamp.account, operation)
        provider.calls.note_faults(arrival.number, twists.names)
        if "reset_before" in twists:
            return self._dropped(arrival, reset=True)
        if "drop_before_commit" in twists:
            return self._dropped(arrival)
        turn = Turn(
            account=arrival.stamp.account,
            profile=profile,
            dialect=dialect,
            at=provider.book.now(),
            twists=twists,
        )
        waiting = next((fault for fault in _WAITING_FAULTS if fault in twists), None)
        if waiting is not None:
            return await self._wait(arrival, turn, operation, waiting)
        answer = provider.engine.perform(turn, operation)
        if profile.webhook_url is not None:
            provider.ring()
        if "delay" in twists:
            await asyncio.sleep(twists.seconds("delay", _DELAY_SECONDS))
        return self._answered(arrival, dialect, answer, twists)

    async def _wait(self, arrival: Arrival, turn: Turn, operation: Operation, fault: str) -> Given:
        """Hold the answer back, or the execution too; the caller may be gone by then."""
        provider, options = self._provider, turn.twists.options(fault) or {}
        answer: Answer | None = None
        create = operation if isinstance(operation, Create) else None
        if fault == "hold":
            if create is None or options.get("execute", "at_once") == "at_once":
                answer, create = provider.engine.perform(turn, operation), None
            else:
                answer = provider.engine.claim(turn, create)
                if answer is not None:
                    return self._answered(arrival, turn.dialect, answer, turn.twists)
        waiter = provider.holds.put(
            Hold(
                id=provider.book.mint(),
                account=turn.account,
                fault=fault,
                on=operation.on,
                marker=operation.marker if isinstance(operation, Create) else None,
                create=create,
                twists=turn.twists,
                received_at=arrival.received_at,
                terms=terms_for(fault, turn.twists, turn.profile, arrival.received_at),
            )
        )
        provider.ring()
        if fault != "hold" and options.get("connection", "drop") == "drop":
            return self._dropped(arrival)
        await asyncio.wait([waiter])
        if waiter.cancelled():
            return self._dropped(arrival)
        answer = answer or waiter.result()
        if answer is None:
            return self._dropped(arrival)
        return self._answered(arrival, turn.dialect, answer, turn.twists)

    def _twists(self, account: str, operation: Operation) -> Twists:
        """What the plan lets loose on this request, or else what its payment always does."""
        provider, subject = self._provider, self._subject(account, operation)
        planned = provider.plan.draw(subject)
        if planned.fired:
            return planned
        return scenario(subject, provider.calls.create_count(account, subject.marker))

    def _subject(self, account: str, operation: Operation) -> Subject:
        book = self._provider.book
        match operation:
            case Create():
                payment = book.payment(account, operation.payment_ref, operation.charge)
                return Subject(
                    account=account,
                    on=operation.on,
                    marker=operation.marker,
                    key=operation.key,
                    payment=payment.ref if payment else operation.payment_ref,
                    known=book.seen_before(account, operation.marker, operation.key),
                )
            case ListRefunds() | ListDisputes():
                payment = book.payment(account, operation.payment_ref, operation.charge)
                return Subject(
                    account=account,
                    on=operation.on,
                    payment=payment.ref if payment else None,
                )
            case Retrieve() | Cancel():
                refund = book.refund(operation.refund_id, book.now())
                return Subject(
                    account=account,
                    on=operation.on,
                    refund=operation.refund_id,
                    marker=refund.marker if refund else None,
                    payment=refund.payment_ref if refund else None,
                )
        return Subject(account=account, on=operation.on)

    def _answered(
        self, arrival: Arrival, dialect: Dialect, answer: Answer, twists: Twists
    ) -> Given:
        error = error_fault(twists)
        if error is None or not error.foreign:
            answer = dialect.stamp(answer, _stamp_under(twists, arrival.stamp))
        outcome = given(answer, twists, dialect, arrival.connection, arrival.path)
        if isinstance(outcome, Silence):
            return self._dropped(arrival)
        status = outcome.status_code if isinstance(outcome, Response) else answer.status
        self._provider.calls.note_answer(arrival.number, status)
        return outcome

    def _dropped(self, arrival: Arrival, *, reset: bool = False) -> Silence:
        self._provider.calls.note_answer(arrival.number, "dropped")
        return Silence(arrival.connection, reset=reset)


def _read(dialect: Dialect, call: Call) -> Operation | Declined:
    """What is asked for, or why it cannot be read."""
    if len(call.body) > _BODY_BYTES_MAX:
        return Declined("body_too_large", f"a body may have {_BODY_BYTES_MAX} bytes")
    try:
        return dialect.read(call)
    except Declined as declined:
        return declined


def _turned_away(profile: Profile, dialect: Dialect, call: Call) -> Declined | None:
    if DIALECTS.get(profile.dialect) is not dialect:
        return Declined("account_not_found", "no such account speaks this dialect")
    if not _admitted(profile, dialect.credential(call.headers)):
        return Declined("unauthorized", "no such API key")
    return None


def _stamp_under(twists: Twists, stamp: Stamp) -> Stamp:
    if "wrong_mode" not in twists:
        return stamp
    return replace(stamp, mode="test" if stamp.mode == "live" else "live")


def _admitted(profile: Profile, credential: str | None) -> bool:
    if profile.api_key is None or credential is None:
        return False
    return compare_digest(profile.api_key.encode(), credential.encode())


async def _health(request: Request) -> Response:
    return JSONResponse({"ok": True})


def create_app(provider: Provider, control_token: str) -> Starlette:
    """The ASGI application: both dialects, the control API and `/_health`."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with provider.running():
            yield

    door = Door(provider)
    return Starlette(
        routes=[
            Route("/_health", _health),
            Mount(CONTROL_PREFIX, routes=control_routes(provider, control_token)),
            Route("/{dialect}/{account}/{path:path}", door.ask, methods=_METHODS),
        ],
        lifespan=lifespan,
    )
