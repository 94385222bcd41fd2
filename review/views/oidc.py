"""Coming in through an OpenID Connect provider that the settings name.

allauth's own views trust an id token that came over TLS without looking at its signature. Ours
look: the token must be signed by a key that the provider publishes, for us, and not expired.
"""

from __future__ import annotations

from typing import Any, Final

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.internal.jwtkit import verify_jti
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

# Keys that only the provider has; a shared secret or "none" would let others write tokens.
_ALGORITHMS: Final = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
_CLOCKS_DIFFER_SECONDS: Final = 30


class VerifyingAdapter(OpenIDConnectOAuth2Adapter):
    """Discovery, code and token as allauth does them; the claims come from the id token alone."""

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> Any:
        text = kwargs["response"].get("id_token")
        if not isinstance(text, str):
            raise OAuth2Error("The provider's answer holds no id token.")
        claims = self._verified(app, text)
        return self.get_provider().sociallogin_from_response(request, {"id_token": claims})

    def _verified(self, app: SocialApp, text: str) -> dict[str, Any]:
        try:
            key = self._key(jwt.get_unverified_header(text))
            claims: dict[str, Any] = jwt.decode(
                text,
                key,
                algorithms=_ALGORITHMS,
                audience=app.client_id,
                issuer=self.openid_config["issuer"],
                leeway=_CLOCKS_DIFFER_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise OAuth2Error("The id token cannot be trusted.") from error
        verify_jti(claims)
        return claims

    def _key(self, header: dict[str, Any]) -> jwt.PyJWK:
        with get_adapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            published = jwt.PyJWKSet.from_dict(answer.json()).keys
        for key in published:
            if key.key_id == header.get("kid"):
                return key
        raise OAuth2Error("The id token names a key that the provider does not publish.")


@login_not_required
@require_POST
def leave(request: HttpRequest, provider_id: str) -> HttpResponse:
    """To the provider, to sign in there."""
    return _view(OAuth2LoginView, request, provider_id)


@login_not_required
@require_GET
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from the provider with a code; its state is the one kept in this session."""
    return _view(OAuth2CallbackView, request, provider_id)


def _view(kind: Any, request: HttpRequest, provider_id: str) -> HttpResponse:
    try:
        answer: HttpResponse = kind.adapter_view(VerifyingAdapter(request, provider_id))(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    return answer


@login_not_required
@require_GET
def cancelled(request: HttpRequest) -> HttpResponse:
    """The person turned round at the provider."""
    return HttpResponseRedirect(reverse("sign_in"))
