"""Bearer tokens of an OpenID Connect issuer that the operator names, in addition to memstore's own.

PyJWT checks them. A token is for the audience that is set, or for a path below it: clients of MCP ask for the URL that
they call (RFC 8707). Which issuer gives tokens they read at `/.well-known/oauth-protected-resource` (RFC 9728).
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import jwt

from memstore._compat import to_thread
from memstore.errors import ConfigurationError
from memstore.models import Json
from memstore.server.http.errors import IssuerUnavailable
from memstore.settings import Settings

# A key of the issuer alone proves that it signed: no secret that both know, and not "none".
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS, ANSWER_SECONDS = 30.0, 10.0
# Keys are read again after an hour, and for an unknown one: a new key is known at once, and forgeries cost nothing.
MAX_KEY_AGE, MIN_KEY_AGE = 3600.0, 30.0
MAX_DOCUMENT_BYTES = 1_000_000


class OidcVerifier:
    """Tells which user a token of the issuer is of, by the claim that is set. Its keys are kept between requests."""

    WELL_KNOWN = "/.well-known/oauth-protected-resource"

    def __init__(self, settings: Settings) -> None:
        assert settings.server_oidc_issuer is not None
        if settings.server_oidc_audience is None:
            raise ConfigurationError(
                "server_oidc_issuer needs server_oidc_audience: the URL of this server, for which its tokens are. "
                "Tokens for others would open memories."
            )
        self.issuer, self.audience = settings.server_oidc_issuer, settings.server_oidc_audience.rstrip("/")
        for url in (self.issuer, self.audience):
            _check_url(url)
        self._claim = settings.server_oidc_user_claim
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._read_at = -MAX_KEY_AGE
        self._turn = asyncio.Lock()

    def metadata(self, path: str) -> Json:
        """Return the metadata of the resource at a path."""
        return {
            "resource": self.audience + path.rstrip("/"),
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "memstore",
        }

    def challenge(self, path: str) -> str:
        """Return the challenge for a request without a token, which names the place of the metadata."""
        parts = urlsplit(self.audience)
        return f'Bearer realm="memstore", resource_metadata="{parts.scheme}://{parts.netloc}{self.WELL_KNOWN}{parts.path}{path}"'

    async def user_of(self, token: str) -> str | None:
        """Return the user of a token; None for one that does not hold. Raises `IssuerUnavailable`."""
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            options: Any = {"require": ["exp", "iss", "aud", "sub"], "verify_aud": False}
            claims = jwt.decode(
                token, key, algorithms=list(ALGORITHMS), issuer=self.issuer, leeway=LEEWAY_SECONDS, options=options
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        audiences = [claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"]
        if not any(str(each) == self.audience or str(each).startswith(f"{self.audience}/") for each in audiences):
            return None
        # Anybody may write an address that is not theirs.
        if self._claim == "email" and claims.get("email_verified") is not True:
            return None
        user = claims.get(self._claim)
        return user if isinstance(user, str) and user.strip() else None

    async def read_keys(self) -> None:
        """Read the issuer's keys. Raises `IssuerUnavailable`."""
        try:
            keys = await to_thread(_read_keys, self.issuer)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
            raise IssuerUnavailable(f"{self.issuer} gives no keys ({type(error).__name__}: {error})") from error
        self._keys, self._read_at = keys, time.monotonic()

    async def _key(self, id: str | None) -> jwt.PyJWK | None:
        async with self._turn:
            age = time.monotonic() - self._read_at
            if age > MAX_KEY_AGE or (id not in self._keys and age > MIN_KEY_AGE):
                try:
                    await self.read_keys()
                except IssuerUnavailable:
                    if id not in self._keys:
                        raise
        return self._keys.get(id)


def _read_keys(issuer: str) -> dict[str | None, jwt.PyJWK]:
    configuration = _read_json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if configuration["issuer"] != issuer:
        raise ValueError(f"it says that it is {configuration['issuer']!r:.100}")
    keys = jwt.PyJWKSet.from_dict(_read_json(configuration["jwks_uri"])).keys
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}


def _read_json(url: str) -> Json:
    _check_url(url)
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:  # nosec B310  (checked above)
        document: Json = json.loads(answer.read(MAX_DOCUMENT_BYTES))
    return document


def _check_url(url: str) -> None:
    """Raise `ConfigurationError` for a URL on whose way others could change the keys."""
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.netloc or not (parts.scheme == "https" or is_local):
        raise ConfigurationError(f"{url!r:.100} is no https:// URL, as an issuer and an audience have.")
