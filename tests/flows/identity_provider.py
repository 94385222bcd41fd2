"""A small OpenID Connect provider as a real server, which can also be made to cheat."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT = "aftersend"
SECRET = "a-client-secret-of-the-tests"


class IdentityProvider:
    """Whoever comes is `person` (claims); `cheat` is "", or how its token is wrong."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.cheat = ""
        self.url = ""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._foreign_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._codes: dict[str, dict[str, str]] = {}

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    async def _discovery(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "userinfo_endpoint": f"{self.url}/never-asked",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(12)
        self._codes[code] = asked
        query = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{query}")

    async def _token(self, request: Request) -> Response:
        form = {
            name: values[0] for name, values in parse_qs((await request.body()).decode()).items()
        }
        if form["client_secret"] != SECRET or form["code"] not in self._codes:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        del self._codes[form["code"]]
        token = {"access_token": secrets.token_urlsafe(12), "token_type": "Bearer"}
        return JSONResponse(token | {"id_token": self._id_token()})

    def _id_token(self) -> str:
        now = int(time.time())
        claims = self.person | {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 60}
        if self.cheat == "for another":
            claims["aud"] = "somebody-else"
        if self.cheat == "of another":
            claims["iss"] = "https://elsewhere.example"
        if self.cheat == "expired":
            claims |= {"iat": now - 900, "exp": now - 600}
        if self.cheat == "unsigned":
            return jwt.encode(claims, "", algorithm="none", headers={"kid": "one"})
        key = self._foreign_key if self.cheat == "forged" else self._key
        kid = "two" if self.cheat == "unknown key" else "one"
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": kid})

    async def _keys(self, request: Request) -> Response:
        public = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return JSONResponse({"keys": [public | {"kid": "one", "use": "sig", "alg": "RS256"}]})


@contextmanager
def running() -> Iterator[IdentityProvider]:
    """The provider on a free port of this machine."""
    provider = IdentityProvider()
    server = uvicorn.Server(
        uvicorn.Config(provider.app(), port=0, log_level="error", lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started:
        assert time.monotonic() < deadline, "the provider did not start"
        thread.join(0.01)
    provider.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield provider
    server.should_exit = True
    thread.join(10)
