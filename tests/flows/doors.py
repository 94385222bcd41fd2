"""Every address of the installation, and who may do what there, written down from the role matrix.

This is the test's own table: it knows nothing of review/roles.py. A new page must be added here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REP, LEAD, OPS, OPS_LEAD = "rep", "lead", "ops", "ops_lead"
FINANCE, MANAGER, ADMIN, STRANGER = "finance", "manager", "admin", "stranger"
PEOPLE: Final = {
    REP: "rosa",
    LEAD: "cleo",  # owns no agent
    OPS: "omar",
    OPS_LEAD: "ines",
    FINANCE: "fay",
    MANAGER: "mia",
    ADMIN: "adam",
    STRANGER: "dora",
}
ALL: Final = frozenset(PEOPLE)
READERS: Final = frozenset({LEAD, OPS, OPS_LEAD, FINANCE, MANAGER, ADMIN})
STATUS: Final = frozenset({REP, LEAD, OPS, OPS_LEAD, FINANCE, MANAGER})
PROPOSERS: Final = frozenset({REP, LEAD, OPS, OPS_LEAD})
NOBODY: Final = frozenset[str]()

# What an empty form is answered where it may be posted.
_INCOMPLETE: Final = 422
_ELSEWHERE: Final = "/sign-in?next="


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One address. `path` names what stands in it: {operation}, {order}, {agent} and so on.

    `get` and `post` are the answers to those who may; None where there is no such method. `sees`
    may know that it is there, `acts` may post. `an_object`: who may not see gets 404, not 403.
    `open_get` and `open_post` are the answers without a session, where that is not to sign in.
    `reads`, where it differs from `sees`, are those who may open what the others know of.
    `missing` is the same address of something that does not exist, or is somebody else's own.
    """

    path: str
    get: int | None = None
    post: int | None = None
    sees: frozenset[str] = ALL
    reads: frozenset[str] | None = None
    acts: frozenset[str] = ALL
    an_object: bool = False
    open_get: int | None = None
    open_post: int | None = None
    missing: str = ""
    get_of: tuple[tuple[str, int], ...] = ()

    def get_answer(self, role: str) -> int:
        if self.get is None:
            return 405
        if role not in self.sees:
            return 404 if self.an_object else 403
        if self.reads is not None and role not in self.reads:
            return 403
        return dict(self.get_of).get(role, self.get)

    def post_answer(self, role: str) -> int:
        if self.post is None:
            return 405
        if role in self.acts:
            return self.post
        return 404 if self.an_object and role not in self.sees else 403

    def missing_answer(self, role: str, method: str) -> int:
        """To somebody who may, that it is not there; to the others what they get anyway."""
        reads = self.sees if self.reads is None else self.reads
        may = role in (reads if method == "get" else self.acts)
        here = self.get if method == "get" else self.post
        if here is None:
            return 405
        return 404 if may or (self.an_object and not self.asks_first(role)) else 403

    def asks_first(self, role: str) -> bool:
        """Whether the page looks at the role before it looks whether the thing is there."""
        return self.reads is not None and role in self.sees


def _page(path: str, sees: frozenset[str] = ALL, *, get: int = 200) -> Door:
    return Door(path=path, get=get, sees=sees)


def _own(path: str, *, post: int = _INCOMPLETE, missing: str = "") -> Door:
    """A form about oneself."""
    return Door(path=path, post=post, missing=missing)


def _act(path: str, *acts: str, missing: str, post: int = _INCOMPLETE) -> Door:
    """A form about an object that every reader sees."""
    return Door(
        path=path, post=post, sees=READERS, acts=frozenset(acts), an_object=True, missing=missing
    )


def _press(path: str, *acts: str, missing: str = "") -> Door:
    """A form that stands on a page, about no object one could not see."""
    return Door(path=path, post=_INCOMPLETE, sees=NOBODY, acts=frozenset(acts), missing=missing)


def _machine(path: str, get: int | None, post: int | None, *, missing: str = "") -> Door:
    """A door of agents: a person's session is nothing there, nor is no session."""
    return Door(path=path, get=get, post=post, open_get=get or 405, open_post=post or 405)


_NO_ID = "01900000-0000-7000-8000-000000000000"
DOORS: Final[dict[str, Door]] = {
    # Coming in
    "sign-in": Door(path="/sign-in", get=302, post=302, open_get=200, open_post=422),
    "sign-in/second": Door(path="/sign-in/second", get=302, post=302, open_get=302, open_post=302),
    "sign-in/cancelled": Door(path="/sign-in/cancelled", get=302, open_get=302, open_post=405),
    "oidc/<slug:provider_id>/login/": Door(
        path="/oidc/shop/login/", post=404, open_get=405, open_post=404
    ),
    "oidc/<slug:provider_id>/login/callback/": Door(
        path="/oidc/shop/login/callback/", get=404, open_get=404, open_post=405
    ),
    "confirm": Door(path="/confirm", get=200, post=422),
    "sign-out": Door(path="/sign-out", post=302),
    "still-here": _page("/still-here", get=204),
    # One's own
    "": _page("/"),
    "account": _page("/account"),
    "account/password": _own("/account/password"),
    "account/second-factor": _page("/account/second-factor"),
    "account/second-factor/app": _own("/account/second-factor/app"),
    "account/second-factor/passkey": _own("/account/second-factor/passkey"),
    "account/second-factor/codes": _own("/account/second-factor/codes", post=200),
    "account/second-factor/<int:factor>/remove": _own(
        "/account/second-factor/{own_factor}/remove",
        post=200,
        missing="/account/second-factor/{foreign_factor}/remove",
    ),
    "profile": _page("/profile"),
    "profile/change": _own("/profile/change"),
    "drafts": _own("/drafts", post=204),
    "drafts/discard": _own("/drafts/discard", post=303),
    "recorded/<uuid:press>": Door(
        path="/recorded/{no_id}", get=200, missing="/recorded/{foreign_press}"
    ),
    # Reading
    "search": Door(path="/search", get=200, sees=READERS | {REP}, get_of=((REP, 302),)),
    "approvals": _page("/approvals", READERS),
    "unknown": _page("/unknown", READERS),
    "unknown/by-hand": _page("/unknown/by-hand", READERS),
    "sending": _page("/sending", READERS),
    "sending/<slug:account>": Door(
        path="/sending/plain-main", get=200, sees=READERS, missing="/sending/nothing"
    ),
    "alerts": _page("/alerts", READERS),
    "deliveries": _page("/deliveries", READERS),
    "lists": _page("/lists", READERS),
    "notices": _page("/notices", READERS),
    "settlement": _page("/settlement", READERS),
    "orders": _page("/orders", READERS),
    "status": _page("/status", STATUS),
    "status/<order:order_ref>": Door(
        path="/status/{order}",
        get=200,
        sees=READERS | {REP},
        reads=STATUS,
        an_object=True,
        missing="/status/nothing",
    ),
    "operations/<uuid:operation_id>": Door(
        path="/operations/{operation}",
        get=200,
        sees=READERS,
        an_object=True,
        missing=f"/operations/{_NO_ID}",
    ),
    "orders/<order:order_ref>": Door(
        path="/orders/{order}",
        get=200,
        sees=READERS | {REP},
        an_object=True,
        missing="/orders/nothing",
    ),
    # Deciding
    "approvals/<uuid:operation_id>/approve": _act(
        "/approvals/{operation}/approve", LEAD, FINANCE, missing=f"/approvals/{_NO_ID}/approve"
    ),
    "approvals/<uuid:operation_id>/reject": _act(
        "/approvals/{operation}/reject", LEAD, missing=f"/approvals/{_NO_ID}/reject"
    ),
    "operations/<uuid:operation_id>/take-back": _act(
        "/operations/{operation}/take-back", LEAD, missing=f"/operations/{_NO_ID}/take-back"
    ),
    "approvals/review": Door(
        path="/approvals/review",
        get=302,
        post=_INCOMPLETE,
        sees=frozenset({LEAD, FINANCE}),
        acts=frozenset({LEAD, FINANCE}),
    ),
    "approvals/ticked": _press("/approvals/ticked", LEAD, FINANCE),
    "approvals/pressed/<uuid:press>": _page("/approvals/pressed/{foreign_press}", READERS, get=404),
    "operations/<uuid:operation_id>/withdraw": _act(
        "/operations/{operation}/withdraw",
        LEAD,
        OPS,
        OPS_LEAD,
        missing=f"/operations/{_NO_ID}/withdraw",
    ),
    "propose/<order:order_ref>": Door(
        path="/propose/{order}",
        post=_INCOMPLETE,
        sees=READERS | {REP},
        acts=PROPOSERS,
        an_object=True,
        missing="/propose/nothing",
    ),
    "freeze/<order:order_ref>": Door(
        path="/freeze/{order}",
        post=_INCOMPLETE,
        sees=READERS | {REP},
        acts=frozenset({OPS_LEAD}),
        an_object=True,
        missing="/freeze/nothing",
    ),
    "unfreeze/<order:order_ref>": Door(
        path="/unfreeze/{order}",
        post=_INCOMPLETE,
        sees=READERS | {REP},
        acts=frozenset({OPS_LEAD}),
        an_object=True,
        missing="/unfreeze/nothing",
    ),
    # Cases
    "unknown/together": _press("/unknown/together", LEAD, OPS, OPS_LEAD, FINANCE, MANAGER),
    "cases/<int:case_id>": Door(
        path="/cases/{case}", get=200, sees=READERS, an_object=True, missing="/cases/999999"
    ),
    **{
        f"cases/<int:case_id>/{act}": _act(
            f"/cases/{{case}}/{act}", *roles, missing=f"/cases/999999/{act}"
        )
        for act, roles in {
            "claim": (OPS, OPS_LEAD),
            "release": (OPS, OPS_LEAD),
            "take-over": (OPS, OPS_LEAD),
            "check": (OPS, OPS_LEAD),
            "snooze": (OPS, OPS_LEAD),
            "escalate": (OPS, OPS_LEAD),
            "statements": (OPS, OPS_LEAD),
            "assign": (OPS_LEAD,),
            "note": (LEAD, OPS, OPS_LEAD, FINANCE, MANAGER),
            "resolve": (OPS, OPS_LEAD),
            "sign": (OPS_LEAD,),
            "decline": (OPS_LEAD,),
        }.items()
    },
    "cases/<int:case_id>/statements/<int:statement_id>": Door(
        path="/cases/{case}/statements/{statement}",
        get=200,
        sees=READERS,
        an_object=True,
        missing="/cases/{case}/statements/999999",
    ),
    # Sending
    "sending/stop": _press("/sending/stop", LEAD, OPS, OPS_LEAD, FINANCE, ADMIN),
    "sending/start": _press("/sending/start", OPS_LEAD, ADMIN),
    "sending/<slug:account>/pause": _press(
        "/sending/plain-main/pause", OPS_LEAD, missing="/sending/nothing/pause"
    ),
    "sending/<slug:account>/resume": _press(
        "/sending/plain-main/resume", OPS_LEAD, ADMIN, missing="/sending/nothing/resume"
    ),
    "sending/<slug:account>/accept": _press(
        "/sending/stripe-main/accept", OPS_LEAD, ADMIN, missing="/sending/nothing/accept"
    ),
    **{
        f"sending/facts/<int:fact_id>/{act}": _press(
            f"/sending/facts/{{fact}}/{act}",
            OPS_LEAD,
            ADMIN,
            missing=f"/sending/facts/999999/{act}",
        )
        for act in ("confirm", "withdraw")
    },
    "sending/quarantine/ask": _press("/sending/quarantine/ask", OPS_LEAD, ADMIN),
    "sending/quarantine/lift": _press("/sending/quarantine/lift", OPS_LEAD, ADMIN),
    "alerts/<int:alarm_id>/acknowledge": _press(
        "/alerts/{alarm}/acknowledge",
        OPS,
        OPS_LEAD,
        ADMIN,
        missing="/alerts/999999/acknowledge",
    ),
    # For a machine, and off where no token is set
    "metrics": Door(path="/metrics", get=404, open_get=404, open_post=405),
    "deliveries/<uuid:delivery_id>/replay": _act(
        "/deliveries/{delivery}/replay",
        OPS,
        OPS_LEAD,
        ADMIN,
        missing=f"/deliveries/{_NO_ID}/replay",
    ),
    # Administering
    "people": _page("/people", frozenset({ADMIN})),
    "people/add": _press("/people/add", ADMIN),
    "people/<int:person_id>/change": _press(
        "/people/{person}/change", ADMIN, missing="/people/999999/change"
    ),
    "people/changes/<int:change_id>/decide": _press(
        "/people/changes/{change}/decide", ADMIN, missing="/people/changes/999999/decide"
    ),
    "agents": _page("/agents", frozenset({ADMIN})),
    "agents/create": _press("/agents/create", ADMIN),
    "agents/<int:agent_id>": Door(
        path="/agents/{agent}",
        get=200,
        sees=frozenset({ADMIN}),
        an_object=True,
        missing="/agents/999999",
    ),
    **{
        f"agents/<int:agent_id>/{act}": _press(
            f"/agents/{{agent}}/{act}", ADMIN, missing=f"/agents/999999/{act}"
        )
        for act in ("accounts", "pause", "resume", "keys")
    },
    **{
        f"agents/<int:agent_id>/keys/<slug:prefix>/{act}": _press(
            f"/agents/{{agent}}/keys/{{key}}/{act}",
            ADMIN,
            missing=f"/agents/999999/keys/{{key}}/{act}",
        )
        for act in ("rotate", "revoke", "stored")
    },
    # Machines
    "api/docs": _machine("/api/docs", 200, 200),
    "api/": _machine("/api/", 404, 404),
    "api/v1/": _machine("/api/v1/", 404, 404),
    "api/v1/openapi.json": _machine("/api/v1/openapi.json", 200, 200),
    "api/v1/refunds": _machine("/api/v1/refunds", 401, 401),
    "api/v1/refunds/<operation_id>": _machine("/api/v1/refunds/{operation}", 401, None),
    "api/v1/refunds/<operation_id>/withdraw": _machine(
        "/api/v1/refunds/{operation}/withdraw", None, 401
    ),
    "api/v1/orders/<path:order_ref>/refunds": _machine("/api/v1/orders/{order}/refunds", 401, None),
    "api/v1/orders/<path:order_ref>": _machine("/api/v1/orders/{order}", None, None),
    "api/v1/orders:batch": _machine("/api/v1/orders:batch", None, 401),
    # Providers: an unsigned notice is nobody's.
    "webhooks/<str:account>": _machine("/webhooks/plain-main", None, 400),
}
