"""The environment, read once and checked: a wrong or missing value ends the start with a sentence."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from refunds.domain.roles import ROLES

WEBHOOK_SECRET_LENGTH_MIN = 16
BASE_DIR = Path(__file__).resolve().parent.parent


class Oidc(BaseModel):
    """AFTERSEND_OIDC: people sign in at their own provider, which also says their groups."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9-]{1,32}$")
    name: str = Field(min_length=1, max_length=40)
    server_url: str
    client_id: str = Field(min_length=1)
    secret: str = Field(min_length=1, repr=False)
    groups_claim: str = "groups"
    roles: dict[str, str] = Field(min_length=1)

    @field_validator("server_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        if urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname:
            raise ValueError("must be the https:// address of the provider")
        return value

    @field_validator("roles")
    @classmethod
    def _known_roles(cls, value: dict[str, str]) -> dict[str, str]:
        unknown = sorted(set(value.values()) - set(ROLES))
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)} is no role here; the roles are {', '.join(ROLES)}"
            )
        return value


class Environment(BaseSettings):
    """Every setting by its environment variable (contract of names: README, Settings)."""

    model_config = SettingsConfigDict(
        env_prefix="AFTERSEND_", hide_input_in_errors=True, extra="ignore"
    )

    env: Literal["demo", "test", "production"] = "demo"
    secret_key: str = ""
    key_pepper: str = ""
    database_url: str = Field("", validation_alias="DATABASE_URL")
    # Connections that one program shares among its threads; 0: each thread keeps its own.
    database_pool: int = Field(0, ge=0, le=500)
    celery_broker_url: str = Field("", validation_alias="CELERY_BROKER_URL")
    cache_url: str = Field("", validation_alias="CACHE_URL")
    hosts: str = "localhost,127.0.0.1"
    base_url: str = ""
    port: int = Field(8000, ge=1, le=65535)
    providers: Path | None = None
    allow_loopback_providers: bool | None = None
    link_hosts: str = ""
    policy_file: Path = BASE_DIR / "policy.toml"
    run_dir: Path = BASE_DIR / ".run"
    metrics_token: str = Field("", repr=False)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    second_factor: Literal["on", "off"] | None = None
    oidc: Oidc | None = None
    # Who is told, and how: reconciliation/outbox_receivers.py.
    callbacks: dict[str, str] = Field(default_factory=dict)
    callback_hosts: str = ""
    callback_secrets: str = Field("", repr=False)
    email_url: str = Field("", repr=False)
    email_from: str = ""
    sandbox_url: str = ""
    sandbox_token: str = ""
    limits: dict[str, float | int | tuple[int, ...]] = Field(default_factory=dict)

    @field_validator("run_dir", "policy_file")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value if value.is_absolute() else BASE_DIR / value

    @field_validator("metrics_token")
    @classmethod
    def _hard_to_guess(cls, value: str) -> str:
        if value and len(value) < 32:
            raise ValueError("needs 32 characters or more; leave it out to switch /metrics off")
        return value

    @field_validator("oidc", mode="before")
    @classmethod
    def _json(cls, value: object) -> object:
        if isinstance(value, str):
            raise ValueError("must be JSON, as docs/operating.md shows it under People")
        return value

    @field_validator("email_url")
    @classmethod
    def _a_mail_server(cls, value: str) -> str:
        if value:
            mailer(value)
        return value

    @model_validator(mode="after")
    def _mail_has_a_sender(self) -> Environment:
        if self.email_url and "@" not in self.email_from:
            raise ValueError("AFTERSEND_EMAIL_FROM must be set with AFTERSEND_EMAIL_URL")
        return self

    @model_validator(mode="after")
    def _complete_for_production(self) -> Environment:
        if self.env != "production":
            return self
        missing = [
            name
            for name, value in {
                "AFTERSEND_SECRET_KEY": self.secret_key,
                "AFTERSEND_KEY_PEPPER": self.key_pepper,
                "DATABASE_URL": self.database_url,
                "CELERY_BROKER_URL": self.celery_broker_url,
                "CACHE_URL": self.cache_url,
                "AFTERSEND_BASE_URL": self.base_url,
            }.items()
            if not value
        ]
        if missing:
            raise ValueError(f"in production these must be set: {', '.join(missing)}")
        for name, value in (("SECRET_KEY", self.secret_key), ("KEY_PEPPER", self.key_pepper)):
            if len(value) < 50:
                raise ValueError(f"AFTERSEND_{name} needs 50 characters or more")
        if self.allow_loopback_providers:
            raise ValueError("AFTERSEND_ALLOW_LOOPBACK_PROVIDERS is refused in production")
        if self.second_factor == "off":
            raise ValueError(
                "AFTERSEND_SECOND_FACTOR=off is for demo and tests; production needs it on"
            )
        if self.oidc and urlsplit(self.oidc.server_url).scheme != "https":
            raise ValueError("AFTERSEND_OIDC: server_url must begin with https:// in production")
        if self.limits:
            raise ValueError("AFTERSEND_LIMITS shortens the engine's constants; not in production")
        return self

    @cached_property
    def loopback_providers(self) -> bool:
        """Demo and tests talk to the sandbox on this machine; production never does."""
        return self.env != "production"

    @cached_property
    def wants_second_factor(self) -> bool:
        """Demo and tests go without one unless they ask for it; production never does."""
        return self.env == "production" or self.second_factor == "on"

    @cached_property
    def secrets(self) -> tuple[str, str]:
        """(secret key, pepper); outside production made once and kept in the run folder."""
        if self.secret_key and self.key_pepper:
            return self.secret_key, self.key_pepper
        if self.env == "test":
            return "test-" * 12, "pepper-" * 9
        from config.demo_secrets import kept_secrets

        kept = kept_secrets(self.run_dir)
        return self.secret_key or kept["secret_key"], self.key_pepper or kept["key_pepper"]


def load() -> Environment:
    """The checked environment; ends the process with one sentence per wrong value."""
    try:
        return Environment()
    except SettingsError as error:
        raise SystemExit(f"The settings are not usable:\n  {error}; it must be JSON") from None
    except ValidationError as error:
        lines = []
        for item in error.errors():
            name = ".".join(str(part) for part in item["loc"])
            label = (
                f"AFTERSEND_{name.upper()}: " if name and name.islower() else name and f"{name}: "
            )
            lines.append(f"  {label}{item['msg'].removeprefix('Value error, ')}")
        raise SystemExit("The settings are not usable:\n" + "\n".join(lines)) from None


def database(url: str) -> dict[str, object]:
    """Django's database settings from a postgresql:// URL; raises ValueError for another kind."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ValueError("DATABASE_URL must begin with postgresql://")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = query.pop("host", parts.hostname or "")
    port = query.pop("port", str(parts.port or ""))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": port,
        "OPTIONS": dict(query),
    }


def mailer(url: str) -> dict[str, object]:
    """Django's mailer from smtps://user:password@host:port (TLS from the first byte),
    smtp+tls:// (STARTTLS) or smtp://; raises ValueError for anything else."""
    parts = urlsplit(url)
    if parts.scheme not in ("smtps", "smtp+tls", "smtp") or not parts.hostname:
        raise ValueError("must be smtps://, smtp+tls:// or smtp:// with the host of a mail server")
    return {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": parts.hostname,
            "port": parts.port or {"smtps": 465, "smtp+tls": 587, "smtp": 25}[parts.scheme],
            "username": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "use_ssl": parts.scheme == "smtps",
            "use_tls": parts.scheme == "smtp+tls",
            "timeout": 10,
        },
    }


def provider_keys(environ: dict[str, str] | None = None) -> dict[str, str]:
    """Credentials by account: AFTERSEND_PROVIDER_STRIPE_EU_KEY -> {"stripe-eu": ...}."""
    found = {}
    for name, value in (environ if environ is not None else dict(os.environ)).items():
        if name.startswith("AFTERSEND_PROVIDER_") and name.endswith("_KEY") and value:
            account = name.removeprefix("AFTERSEND_PROVIDER_").removesuffix("_KEY")
            found[account.lower().replace("_", "-")] = value
    return found


def webhook_secrets(environ: dict[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    """Secrets by account: AFTERSEND_PROVIDER_STRIPE_EU_WEBHOOK_SECRETS -> {"stripe-eu": (...)}.

    Several are written with commas between them. Ends the process with a sentence, which does not
    show the value, where one is too short to be a secret.
    """
    found = {}
    for name, value in (environ if environ is not None else dict(os.environ)).items():
        if not (name.startswith("AFTERSEND_PROVIDER_") and name.endswith("_WEBHOOK_SECRETS")):
            continue
        secrets = tuple(each.strip() for each in value.split(",") if each.strip())
        if any(len(each) < WEBHOOK_SECRET_LENGTH_MIN for each in secrets):
            raise SystemExit(
                f"The settings are not usable:\n  {name}: each secret needs"
                f" {WEBHOOK_SECRET_LENGTH_MIN} characters or more; separate several with commas"
            )
        account = name.removeprefix("AFTERSEND_PROVIDER_").removesuffix("_WEBHOOK_SECRETS")
        found[account.lower().replace("_", "-")] = secrets
    return found


def social_providers(oidc: Oidc | None) -> dict[str, object]:
    """allauth's table of providers: at most one, and its secret stays in the settings."""
    if oidc is None:
        return {}
    app = {
        "provider_id": oidc.id,
        "name": oidc.name,
        "client_id": oidc.client_id,
        "secret": oidc.secret,
        "settings": {"server_url": oidc.server_url},
    }
    return {"openid_connect": {"APPS": [app], "OAUTH_PKCE_ENABLED": True}}
