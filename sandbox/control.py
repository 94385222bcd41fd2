"""The control API: what a test tells the provider to be, to do, and to show."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.book import Payment, Refund
from sandbox.control_requests import Answering, ControlError, guarded, read_fields, required_text
from sandbox.disputes import Disputes
from sandbox.faults import RuleError, read_rule
from sandbox.history import PAYMENT_STATES, History
from sandbox.instants import iso, span
from sandbox.operations import Declined, Twists
from sandbox.profiles import Profile, ProfileError, with_secrets
from sandbox.provider import DIALECTS, Provider
from sandbox.server import Server
from sandbox.snapshot import snapshot
from sandbox.turn import Turn

_DISPUTE_OUTCOMES = {"opened": "disputed", "won": "captured", "lost": "reversed"}
_REFUSE_SECONDS = 1
_REFUSE_SECONDS_MAX = 60


class Control:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._book = provider.book

    async def accounts(self, request: Request) -> Response:
        return JSONResponse(
            {name: profile.as_json() for name, profile in self._book.profiles().items()}
        )

    async def put_account(self, request: Request) -> Response:
        """Overrides for an account; `like` names the account that a new one starts from."""
        account = request.path_params["account"]
        overrides = await read_fields(request)
        like = overrides.pop("like", None)
        profile = self._book.profile(account)
        if like is not None:
            profile = with_secrets(account, self._profile(like))
        if profile is None:
            raise ControlError("account_not_found", f"no account {account!r}; give `like`", 404)
        try:
            profile = profile.changed(overrides)
        except ProfileError as wrong:
            raise ControlError("profile_invalid", str(wrong)) from wrong
        self._book.set_profile(account, profile)
        return JSONResponse(profile.as_json())

    async def put_payment(self, request: Request) -> Response:
        fields = await read_fields(
            request, "account", "ref", "currency", "captured_minor", "customer", "state"
        )
        account, ref = required_text(fields, "account"), required_text(fields, "ref")
        self._profile(account)
        currency = required_text(fields, "currency")
        captured_minor = fields.get("captured_minor")
        state = fields.get("state", "captured")
        if type(captured_minor) is not int or captured_minor < 0:
            raise ControlError("payment_invalid", "captured_minor must be whole minor units")
        if len(currency) != 3 or currency != currency.upper():
            raise ControlError("payment_invalid", "currency must be three capital letters")
        if state not in PAYMENT_STATES:
            raise ControlError("payment_invalid", f"state must be one of {PAYMENT_STATES}")
        payment = Payment(
            account=account,
            ref=ref,
            charge="ch_" + ref.removeprefix("pi_"),
            currency=currency,
            captured_minor=captured_minor,
            customer=fields.get("customer"),
            state=state,
            created_at=self._book.now(),
        )
        self._book.put_payment(payment)
        return JSONResponse(_shown(payment), 201)

    async def history(self, request: Request) -> Response:
        """Payments and refunds of the past; what is known already stays as it is."""
        fields = await read_fields(request, "payments", "refunds")
        payments, refunds = fields.get("payments", []), fields.get("refunds", [])
        if not isinstance(payments, list) or not isinstance(refunds, list):
            raise ControlError("history_invalid", "give lists of `payments` and `refunds`")
        new = History(self._book, DIALECTS).accept(payments, refunds)
        return JSONResponse(new, 201)

    async def add_faults(self, request: Request) -> Response:
        fields = await read_fields(request, "seed", "rules")
        seed, given = fields.get("seed", 0), fields.get("rules")
        if type(seed) is not int or not isinstance(given, list):
            raise ControlError("plan_invalid", "give a whole `seed` and a list of `rules`")
        try:
            rules = [read_rule(one if isinstance(one, dict) else {}) for one in given]
            for rule in rules:
                self._profile(rule.account)
            struck = [rule for rule in rules if rule.fault != "refuse_connect"]
            ids = self._provider.plan.add(struck, seed)
        except RuleError as wrong:
            raise ControlError("rule_invalid", str(wrong)) from wrong
        for rule in rules:
            if rule.fault == "refuse_connect":
                seconds = min(rule.options.get("seconds", _REFUSE_SECONDS), _REFUSE_SECONDS_MAX)
                await _server(request).refuse(seconds)
        return JSONResponse({"rules": ids}, 201)

    async def faults(self, request: Request) -> Response:
        return JSONResponse({"rules": self._provider.plan.rules()})

    async def clear_faults(self, request: Request) -> Response:
        self._provider.plan.clear()
        await _server(request).accept_again()
        return JSONResponse({"rules": []})

    async def holds(self, request: Request) -> Response:
        return JSONResponse({"holds": self._provider.holds.shown()})

    async def release(self, request: Request) -> Response:
        which = (await read_fields(request, "hold")).get("hold")
        if which != "all" and type(which) is not int:
            raise ControlError("hold_invalid", 'give {"hold": "all"} or the id of a hold')
        number = None if which == "all" else which
        count = self._provider.holds.release(number, self._book.now())
        if number is not None and count == 0:
            raise ControlError("hold_not_found", f"no hold {number} waits", 404)
        self._provider.settle()
        self._provider.ring()
        return JSONResponse({"released": count})

    async def clock(self, request: Request) -> Response:
        seconds = (await read_fields(request, "advance_seconds")).get("advance_seconds", 0)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
            raise ControlError("clock_invalid", "advance_seconds must be a number >= 0")
        self._book.advance(span(seconds))
        self._provider.settle()
        self._provider.ring()
        return JSONResponse({"now": iso(self._book.now())})

    async def set_status(self, request: Request) -> Response:
        status = required_text(await read_fields(request, "to"), "to")
        refund = self._refund(request.path_params["refund_id"])
        profile = self._profile(refund.account)
        dialect = DIALECTS[profile.dialect]
        if status not in dialect.statuses:
            raise ControlError("status_invalid", f"to must be one of {dialect.statuses}")
        self._provider.engine.turn_status(refund, profile, status, self._book.now())
        self._provider.ring()
        return JSONResponse(dialect.shown(self._refund(refund.id)))

    async def external_refund(self, request: Request) -> Response:
        fields = await read_fields(request, "account", "payment", "amount_minor")
        account, amount_minor = required_text(fields, "account"), fields.get("amount_minor")
        if type(amount_minor) is not int:
            raise ControlError("amount_invalid", "amount_minor must be whole minor units")
        profile = self._profile(account)
        turn = Turn(
            account=account,
            profile=profile,
            dialect=DIALECTS[profile.dialect],
            at=self._book.now(),
            twists=Twists(),
        )
        try:
            refund = self._provider.engine.refund_by_hand(
                turn, required_text(fields, "payment"), amount_minor
            )
        except Declined as declined:
            raise ControlError(declined.code, declined.message, 409) from declined
        self._provider.ring()
        return JSONResponse(turn.dialect.shown(refund), 201)

    async def dispute(self, request: Request) -> Response:
        """`state` opened (default), won or lost: refunds are refused unless it was won, or lost about
        a part (`amount_minor` of a new one; all of it without)."""
        fields = await read_fields(request, "account", "payment", "state", "amount_minor")
        outcome = fields.get("state", "opened")
        if outcome not in _DISPUTE_OUTCOMES:
            raise ControlError("dispute_invalid", f"state must be one of {[*_DISPUTE_OUTCOMES]}")
        payment = self._book.payment(
            required_text(fields, "account"), required_text(fields, "payment")
        )
        if payment is None:
            raise ControlError("payment_not_found", "no such payment", 404)
        amount_minor = fields.get("amount_minor")
        if amount_minor is not None and (type(amount_minor) is not int or amount_minor < 1):
            raise ControlError("dispute_invalid", "amount_minor must be a whole number above 0")
        with self._book.transaction():
            dispute = Disputes(self._book).turn(payment, outcome, amount_minor)
            partly = outcome == "lost" and dispute.amount_minor < payment.captured_minor
            state = "captured" if partly else _DISPUTE_OUTCOMES[outcome]
            disputed = Payment(**vars(payment) | {"state": state})
            self._book.put_payment(disputed)
        return JSONResponse(_shown(disputed) | {"dispute": dispute.id})

    async def deliver_notices(self, request: Request) -> Response:
        fields = await read_fields(request, "deliver", "order")
        deliver, order = fields.get("deliver"), fields.get("order", "forward")
        if deliver not in ("now", "never") or order not in ("forward", "reversed"):
            raise ControlError(
                "notices_invalid",
                "deliver is now or never, order is forward or reversed",
            )
        self._provider.sender.mute(deliver == "never")
        counts = {"sent": 0, "failed": 0}
        if deliver == "now":
            counts = await self._provider.sender.send_all(reverse=order == "reversed")
            self._provider.ring()
        return JSONResponse(counts)

    async def notices(self, request: Request) -> Response:
        return JSONResponse({"notices": self._provider.notices.shown()})

    async def reset(self, request: Request) -> Response:
        self._provider.holds.abandon()
        self._book.reset()
        await _server(request).accept_again()
        self._provider.ring()
        return JSONResponse({"now": iso(self._book.now())})

    async def calls(self, request: Request) -> Response:
        after = request.query_params.get("after", "0")
        if not after.isascii() or not after.isdigit():
            raise ControlError("calls_invalid", "after must be the number of a call")
        account = request.query_params.get("account")
        return JSONResponse({"calls": self._provider.calls.shown(account, int(after))})

    async def book(self, request: Request) -> Response:
        self._provider.settle()
        return JSONResponse(snapshot(self._book, request.query_params.get("account")))

    def _profile(self, account: str) -> Profile:
        profile = self._book.profile(account)
        if profile is None:
            known = ", ".join(self._book.profiles())
            raise ControlError(
                "account_not_found", f"no account {account!r}; there is {known}", 404
            )
        return profile

    def _refund(self, refund_id: str) -> Refund:
        refund = self._book.refund(refund_id, self._book.now())
        if refund is None:
            raise ControlError("refund_not_found", f"no refund {refund_id!r}", 404)
        return refund


def control_routes(provider: Provider, token: str) -> list[Route]:
    """The routes below `/_control`, each behind the control token."""
    control = Control(provider)
    table: list[tuple[str, str, Answering]] = [
        ("GET", "/accounts", control.accounts),
        ("PUT", "/accounts/{account}", control.put_account),
        ("POST", "/payments", control.put_payment),
        ("POST", "/history", control.history),
        ("GET", "/faults", control.faults),
        ("POST", "/faults", control.add_faults),
        ("DELETE", "/faults", control.clear_faults),
        ("GET", "/holds", control.holds),
        ("POST", "/release", control.release),
        ("POST", "/clock", control.clock),
        ("POST", "/refunds/{refund_id}/status", control.set_status),
        ("POST", "/external_refund", control.external_refund),
        ("POST", "/dispute", control.dispute),
        ("GET", "/notices", control.notices),
        ("POST", "/notices", control.deliver_notices),
        ("POST", "/reset", control.reset),
        ("GET", "/calls", control.calls),
        ("GET", "/book", control.book),
    ]
    return [
        Route(path, guarded(answering, token), methods=[method])
        for method, path, answering in table
    ]


def _server(request: Request) -> Server:
    server = request.app.state.server
    assert isinstance(server, Server)
    return server


def _shown(payment: Payment) -> dict[str, Any]:
    return {name: value for name, value in vars(payment).items() if name != "created_at"}
