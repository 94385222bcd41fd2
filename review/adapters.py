"""Where allauth asks us: who may come, what is sent, and how secrets are kept."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base import AuthProcess
from cryptography.fernet import Fernet
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from refunds.models import Person
from review import provided
from review.views import errors


class Accounts(DefaultAccountAdapter):
    """Nobody signs up here, no mail is sent, and no message waits for the next page."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Our pages say what happened where it happened."""

    def respond_user_inactive(self, request: HttpRequest, user: Person) -> HttpResponse:
        return errors.whom_to_ask(request, user.get_username())


class SecondFactors(DefaultMFAAdapter):
    """Secrets of authenticator apps and recovery codes are stored encrypted under SECRET_KEY."""

    def encrypt(self, text: str) -> str:
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _box().decrypt(encrypted_text.encode()).decode()

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Passkeys belong to the name in the settings, never to what a request calls us."""
        return {"id": urlsplit(settings.BASE_URL).hostname or "localhost", "name": "Aftersend"}

    def generate_authenticator_name(self, user: Any, type: Any) -> str:  # noqa: A002 - their name
        return "Passkey"


class Provided(DefaultSocialAccountAdapter):
    """People whom an OpenID Connect provider sends: known by its subject, roles by its groups."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Without a mapped role nobody comes in, and nobody is stored."""
        # The library would also add the identity to whoever is signed in here: then a console
        # left open for a minute would be another person's way in for ever.
        sociallogin.state["process"] = AuthProcess.LOGIN
        roles = provided.roles_in(provided.claims_of(sociallogin))
        if sociallogin.is_existing:
            provided.keep_roles(sociallogin.user, roles)
        if not roles:
            name = provided.wanted_name(provided.claims_of(sociallogin))
            raise ImmediateHttpResponse(errors.whom_to_ask(request, name))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Person:
        """Store a person without a password, under a name nobody has yet."""
        claims = provided.claims_of(sociallogin)
        person: Person = sociallogin.user
        person.username = provided.free_name(provided.wanted_name(claims))
        person.email = ""
        person.set_unusable_password()
        sociallogin.email_addresses = []
        sociallogin.save(request)
        provided.keep_roles(person, provided.roles_in(claims))
        return person


def _box() -> Fernet:
    digest = salted_hmac("aftersend second factors", b"key", algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(digest))
