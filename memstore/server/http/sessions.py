"""Browsers that signed in: a cookie stands for a token, and neither is kept here as it is, but by its SHA-256.

Sessions are of one process and one day: they end with it, with their token, or when somebody signs out.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

COOKIE: Final = "memstore_ui"
SECONDS = 86_400.0
MOST = 10_000  # sessions; who signs in when there are so many ends the oldest one
MOST_OF_ONE = 20  # of one token, likewise: nobody who has one can end the sessions of others
BYTES = 32


class Sessions:
    """Which token each cookie stands for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(BYTES)
        self._tokens: dict[bytes, tuple[bytes, float]] = {}

    def begin(self, token: bytes) -> str:
        """Give a new cookie for the token of this hash."""
        cookie = fresh()
        own = [key for key, (other, _) in self._tokens.items() if other == token]
        if len(own) >= MOST_OF_ONE:
            del self._tokens[own[0]]
        elif len(self._tokens) >= MOST:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[_hashed(cookie)] = token, self._clock() + SECONDS
        return cookie

    def token(self, cookie: str | None) -> bytes | None:
        """Give the hash of the token for which a cookie stands; None for one that nobody knows, or of yesterday."""
        key = _hashed(cookie or "")
        token, until = self._tokens.get(key, (None, 0.0))
        if token is not None and self._clock() >= until:
            del self._tokens[key]
            return None
        return token

    def end(self, cookie: str) -> None:
        """Let a cookie stand for nothing any more."""
        self._tokens.pop(_hashed(cookie), None)

    def proof(self, cookie: str) -> str:
        """Give what a form must bring that is sent with this cookie: pages of others cannot know it (CSRF)."""
        return hmac.new(self._key, cookie.encode(), sha256).hexdigest()

    def proves(self, cookie: str | None, proof: str) -> bool:
        """Whether a form was made by this server for whoever has this cookie."""
        return cookie is not None and hmac.compare_digest(self.proof(cookie).encode(), proof.encode())


def fresh() -> str:
    """Give a cookie that stands for nothing yet."""
    return secrets.token_urlsafe(BYTES)


def cookie_of(headers: Headers) -> str | None:
    """Give the cookie that a request came with, whatever others of this host stand beside it."""
    found = cookie_parser(headers.get("cookie", "")).get(COOKIE)  # http.cookies drops all after one that is odd
    return None if found is None or not found.isascii() else found


def _hashed(cookie: str) -> bytes:
    return sha256(cookie.encode("utf-8", "replace")).digest()
