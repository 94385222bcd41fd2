"""Django's settings: wiring only. Values come from `config.env`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.utils.csp import CSP

from config import embedded, env, logs, pooled
from refunds.domain.limits import Limits

ENV = env.load()
BASE_DIR = env.BASE_DIR
PRODUCTION = ENV.env == "production"
TESTING = ENV.env == "test"

SECRET_KEY, KEY_PEPPER = ENV.secrets
DEBUG = False
ALLOWED_HOSTS = ["testserver", *ENV.hosts.split(",")] if TESTING else ENV.hosts.split(",")
BASE_URL = ENV.base_url or f"http://localhost:{ENV.port}"
CSRF_TRUSTED_ORIGINS = [BASE_URL]

HOME = embedded.home_for(BASE_DIR, ENV.run_dir, "test" if TESTING else "demo")
_database = embedded.Postgres(HOME, durable=not TESTING)
_broker = embedded.Valkey(HOME)
DATABASE_URL = ENV.database_url or _database.url("aftersend")
BROKER_URL = ENV.celery_broker_url or _broker.url()

DATABASES: dict[str, Any] = {"default": env.database(DATABASE_URL)}
DATABASES["default"] |= {
    "CONN_MAX_AGE": 0 if ENV.database_pool else 60,
    "CONN_HEALTH_CHECKS": True,
}
if ENV.database_pool:
    DATABASES["default"]["OPTIONS"]["pool"] = pooled.options(ENV.database_pool)
DATABASES["default"]["OPTIONS"] |= {
    # T23: nothing waits for ever; a lock that does not come in 2 s is a clear error.
    "options": "-c statement_timeout=5000 -c lock_timeout=2000 -c timezone=UTC"
    # Whatever a prepared statement is called with, its plan is the same.
    " -c plan_cache_mode=force_generic_plan"
    # Pages lie in memory or on a disk without arms. With PostgreSQL's own guess a plan that is made
    # while a table is small reads all of it, and is kept while the table grows.
    " -c random_page_cost=1.1",
    "connect_timeout": 3,
    # What runs through refunds.prepared is prepared at its first use; Django's own
    # statements never are.
    "prepare_threshold": 0,
}
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    if TESTING
    else {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": ENV.cache_url or _broker.cache_url(),
    }
}

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_htmx",
    "ninja",  # for the files of its documentation page
    "refunds",
    "reconciliation",
    "review",
]
MIDDLEWARE = [
    "review.request_id.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "review.middleware.TokenOnce",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "review.middleware.ConsoleHeaders",
    "review.middleware.SameSitePosts",
    "review.middleware.SecondFactorFirst",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "review.context.console",
            ],
            "builtins": ["review.templatetags.console"],
            "libraries": {"console": "review.templatetags.console"},
        },
    }
]

AUTH_USER_MODEL = "refunds.Person"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign_in"
if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Signing in: the forms and pages are ours, the flows and the second factors are allauth's. None of
# its addresses is routed, and its templates are not on the search path.
SECOND_FACTOR = ENV.wants_second_factor
ACCOUNT_ADAPTER = "review.adapters.Accounts"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*"]
ACCOUNT_RATE_LIMITS = False  # review/attempts.py counts, in the same cache, and says how long
MFA_ADAPTER = "review.adapters.SecondFactors"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_ALLOW_UNVERIFIED_EMAIL = True  # nobody's mail is asked for
MFA_REAUTHENTICATION_REQUIRED = False  # review/step_up.py asks, by our own rule
MFA_TOTP_ISSUER = "Aftersend"
MFA_TOTP_TOLERANCE = 1
# A browser makes passkeys on plain http for the name localhost only.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PRODUCTION
SOCIALACCOUNT_ADAPTER = "review.adapters.Provided"
OIDC = ENV.oidc
SOCIALACCOUNT_PROVIDERS = env.social_providers(OIDC)

SESSION_COOKIE_AGE = 43_200
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "review.views.errors.csrf_failure"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
    "object-src": [CSP.NONE],
}
if PRODUCTION:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SESSION_COOKIE_NAME = "__Host-session"
    CSRF_COOKIE_NAME = "__Host-csrf"

STATIC_URL = "static/"
# Outside production files come from where they lie; nothing is collected.
STATIC_ROOT = ENV.run_dir / "static" if PRODUCTION else None
STORAGES: dict[str, Any] = {
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    }
}
WHITENOISE_USE_FINDERS = not PRODUCTION

LANGUAGE_CODE = "en-gb"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
LOGGING = logs.configuration(ENV.log_level)

POLICY_FILE = ENV.policy_file
PROVIDERS_FILE = ENV.providers
PROVIDER_KEYS = env.provider_keys()
WEBHOOK_SECRETS = env.webhook_secrets()
ALLOW_LOOPBACK_PROVIDERS = ENV.loopback_providers
SANDBOX_URL = ENV.sandbox_url
SANDBOX = bool(ENV.sandbox_url) or not PRODUCTION
LINK_HOSTS = tuple(filter(None, [urlsplit(BASE_URL).hostname, *ENV.link_hosts.split(",")]))
METRICS_TOKEN = ENV.metrics_token
WITNESS_DIR = ENV.run_dir / "witness"
LIMITS = Limits(**ENV.limits)  # type: ignore[arg-type]  # values are checked by the dataclass users

# Who is told: nobody, until receivers are named. Addresses are settings and never rows.
CALLBACKS = ENV.callbacks
CALLBACK_HOSTS = tuple(filter(None, ENV.callback_hosts.split(",")))
CALLBACK_SECRETS = tuple(filter(None, ENV.callback_secrets.split(",")))
WRITES_MAIL = bool(ENV.email_url)
MAILERS: dict[str, Any] = {
    "default": env.mailer(ENV.email_url)
    if WRITES_MAIL
    else {"BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
}
DEFAULT_FROM_EMAIL = ENV.email_from or "nobody@localhost"
