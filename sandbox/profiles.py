"""The accounts of the sandbox: what each one promises, and how it behaves."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

KEY_KINDS = ("window", "forever", "weak", "none")
LOOKUP_KINDS = ("now", "lagged", "none")
DIALECTS = ("plain", "stripe")


class ProfileError(ValueError):
    """An override that names no field of a profile or has no usable value."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One account. Durations are seconds of the control clock; None means unknown or never.

    `keys`: window (for `key_window_seconds`), forever, weak (kept on success only), none.
    `flight_seconds_max` (D) bounds execution after receipt. `lookup_lag_seconds` (V) is
    promised by every account with a lookup and lived through only where `lookup` is lagged.
    `idle_close_seconds` (I) is what the account promises; the process closes all alike.
    """

    dialect: str = "plain"
    keys: str = "forever"
    key_window_seconds: float | None = None
    stores_rejections: bool = True
    stores_5xx: bool = False
    lookup: str = "now"
    lookup_lag_seconds: float | None = 1
    flight_seconds_max: float | None = 2
    idle_close_seconds: float | None = 1
    notices: bool = False
    settle_seconds: float | None = None
    polices_totals: bool = False
    returns_markers: bool = True
    reasons_accepted: tuple[str, ...] | None = None
    mode: str = "live"
    api_key: str | None = None
    webhook_url: str | None = None
    webhook_secret: str = ""

    @property
    def lag_seconds(self) -> float:
        """How far lookups of this account lag behind its book."""
        return self.lookup_lag_seconds or 0 if self.lookup == "lagged" else 0

    def changed(self, overrides: Mapping[str, Any]) -> Self:
        """This profile with some fields replaced; ProfileError says which value is wrong."""
        known = {one.name for one in fields(self)}
        for name in overrides:
            if name not in known:
                raise ProfileError(f"unknown field {name!r}; use one of {sorted(known)}")
        given = dict(overrides)
        if isinstance(given.get("reasons_accepted"), list):
            given["reasons_accepted"] = tuple(given["reasons_accepted"])
        changed = replace(self, **given)
        changed._check()
        return changed

    def _check(self) -> None:
        for name, allowed in (
            ("dialect", DIALECTS),
            ("keys", KEY_KINDS),
            ("lookup", LOOKUP_KINDS),
            ("mode", ("live", "test")),
        ):
            if getattr(self, name) not in allowed:
                raise ProfileError(f"{name} must be one of {allowed}")
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name.endswith("_seconds") or one.name == "flight_seconds_max":
                if value is not None and (
                    isinstance(value, bool) or not isinstance(value, int | float) or value < 0
                ):
                    raise ProfileError(f"{one.name} must be null or a number of seconds >= 0")
            elif one.type is bool and not isinstance(value, bool):
                raise ProfileError(f"{one.name} must be true or false")
        if (self.keys == "window") != (self.key_window_seconds is not None):
            raise ProfileError("key_window_seconds goes with keys 'window', and only with it")
        if self.webhook_url is not None:
            _check_loopback(self.webhook_url)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _check_loopback(url: str) -> None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if parts.scheme != "http" or not local:
        raise ProfileError("webhook_url must be http on a loopback host, such as 127.0.0.1")


_MAIN = Profile(keys="window", key_window_seconds=600)

_DEFAULTS: dict[str, Profile] = {
    "plain-main": replace(_MAIN, notices=True, polices_totals=True),
    "plain-forever": Profile(),
    "plain-weak": Profile(keys="weak", stores_rejections=False),
    "plain-nokeys": Profile(keys="none"),
    "plain-blind": Profile(keys="none", lookup="none", lookup_lag_seconds=None),
    "plain-hooks": Profile(keys="none", lookup="none", lookup_lag_seconds=None, notices=True),
    "plain-lagged": replace(_MAIN, lookup="lagged", lookup_lag_seconds=3),
    "plain-unbounded": replace(_MAIN, flight_seconds_max=None, idle_close_seconds=None),
    "plain-async": Profile(settle_seconds=5),
    "plain-stored500": Profile(stores_5xx=True, lookup="none", lookup_lag_seconds=None),
    "stripe-main": Profile(
        dialect="stripe",
        keys="window",
        key_window_seconds=86400,
        stores_5xx=True,
        lookup_lag_seconds=None,
        flight_seconds_max=None,
        idle_close_seconds=None,
        notices=True,
        polices_totals=True,
    ),
}


def default_profiles() -> dict[str, Profile]:
    """The accounts of a new book, each with the key `sandbox-key-<account>`."""
    return {name: with_secrets(name, profile) for name, profile in _DEFAULTS.items()}


def with_secrets(account: str, profile: Profile) -> Profile:
    return replace(
        profile,
        api_key=f"sandbox-key-{account}",
        webhook_secret=f"sandbox-webhook-secret-{account}",
    )
