"""The door: who asks, by which name of this server, and whether that may be. Before any body is read.

How often somebody asks is looked at before the database is asked who that is: by the token that was let in before,
else by whence it comes, from where so many may be refused. A token that is new comes in as long as others from there
have left it refusals.

Answers are the same for a token that is unknown, has expired or was revoked, and for a user who is not there or is
somebody else's: nobody learns what there is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memstore.errors import MemstoreError
from memstore.memory.tokens import AsyncTokens, hashed
from memstore.server.http.limits import Buckets, Streams, Tries, check_rate, place_of
from memstore.server.http.paths import PAGES
from memstore.server.http.problems import SECONDS, Problem
from memstore.server.http.sessions import Sessions, cookie_of

SECONDS_KNOWN = 2.0  # that a token which was let in is not asked for again; one that is revoked opens as long
MOST_KNOWN = 10_000
REFUSED_A_SECOND = 5.0  # callers from one place
OPEN_TO_ALL = ("/healthz", "/readyz", "/openapi.json")
METRICS = "/metrics"  # which say that the database is away
SECONDS_TO_LOOK = 3.0  # of the ten that Prometheus waits, to ask a silent database whether its token holds still
MACHINE: Final = "this machine"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `key` is what limits go by, `owner` the only user whose memory is open, or None for the operator.

    `name` is what that user is called.
    """

    key: str
    owner: UUID | None
    name: str | None = None

    def may_see(self, user: UUID) -> bool:
        """Whether this user's memory is open."""
        return self.owner in (None, user)


OWN_USER = Caller(MACHINE, None)


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Callers:
    """Who is behind a token. What was found is known for two seconds, so that most requests need not ask for it."""

    def __init__(self, tokens: AsyncTokens, *, open_without_tokens: bool) -> None:
        self._tokens = tokens
        self._known: dict[bytes, tuple[Caller, float]] = {}
        self._is_open = open_without_tokens
        self._looked = 0.0

    async def caller(self, token: bytes | None) -> Caller | None:
        """Give whom a token lets in, None for nobody; without one, this machine's own user as long as none is needed.

        Tokens are given by their SHA-256; b"" is what is no token.
        """
        if token is None:
            return OWN_USER if await self.is_open() else None
        return await self.holding(token) if token else None

    def met(self, token: bytes | None) -> Caller | None:
        """Give whom a token has let in, without asking whether it holds still."""
        if token is None:
            return OWN_USER if self._is_open else None
        return self._known.get(token, (None, 0.0))[0]

    async def is_open(self) -> bool:
        """Whether no token was ever made, and this machine's own user needs none."""
        now = time.monotonic()
        if self._is_open and now - self._looked > SECONDS_KNOWN:
            self._is_open, self._looked = not await self._tokens.exist(), now
        return self._is_open

    async def holding(self, key: bytes) -> Caller | None:
        """Give whom the token of this SHA-256 lets in."""
        now = time.monotonic()
        known, until = self._known.get(key, (None, 0.0))
        if known is not None and now < until:
            return known
        found = await self._tokens.holding(key)
        self._known.pop(key, None)
        if found is None:
            return None
        caller = Caller(str(found.id), found.owner, found.user_name)
        self._known[key] = caller, now + SECONDS_KNOWN
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]  # the one that was looked up longest ago
        return caller


class Door:
    """Lets a request through with its `Caller` in `request.state.caller`, or answers why not.

    With `sessions` there are pages for people: whom a cookie of theirs lets in, it lets in there and nowhere else, and
    whom nothing lets in they get as the caller None, to ask for a token.

    `hosts` are names by which this server may be asked; none: any. On this machine alone they keep a web page from
    asking it in its visitor's name, by a name of its own for 127.0.0.1 (DNS rebinding).
    """

    def __init__(
        self,
        app: ASGIApp,
        callers: Callers,
        *,
        rate: float,
        hosts: Sequence[str],
        streams: int = 0,
        sessions: Sessions | None = None,
    ) -> None:
        self._app, self._callers, self._sessions = app, callers, sessions
        self._hosts = frozenset(host.lower() for host in hosts)
        self._buckets, self._strangers = Buckets(rate), Tries(REFUSED_A_SECOND)
        self._streams = Streams(streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as open_streams:
            try:
                headers = Headers(scope=scope)
                self._check_names(headers)
                if scope["path"] not in OPEN_TO_ALL:
                    token = partial(self._token, headers, scope["path"])
                    caller = await self._let_in(token(), headers, scope)
                    counted = self._streams.one("" if caller is None else caller.key)
                    scope.setdefault("state", {}).update(
                        caller=caller,
                        holds=partial(self._holds, token),
                        count_stream=partial(open_streams.enter_context, counted),
                    )
            except Problem as problem:
                await problem.response()(scope, receive, send)
                return
            await self._app(scope, receive, send)

    def _token(self, headers: Headers, path: str) -> bytes | None:
        """Give the token of the header, else on pages that of the cookie, as long as its session lasts."""
        said = headers.get("authorization")
        if said is None and self._sessions is not None and is_page(path):
            return self._sessions.token(cookie_of(headers))
        return token_of(said)

    async def _holds(self, token: Callable[[], bytes | None]) -> bool:
        """Whether whoever was let in still would be: a stream may last for longer than a token."""
        return await self._callers.caller(token()) is not None

    def _check_names(self, headers: Headers) -> None:
        """Refuse another name than this server's, in Host or as the page that asks."""
        if not self._hosts:
            return
        asked, page = _hostname(f"//{headers.get('host', '')}"), headers.get("origin")
        if not self._is_ours(asked):
            detail = "This server is not asked by this name: add it to server_hosts (MEMSTORE_SERVER_HOSTS)."
            raise Problem(HTTPStatus.MISDIRECTED_REQUEST, "unknown-host", detail)
        if page is not None and not self._is_ours(_hostname(page)):
            detail = "Pages of this origin may not ask this server: add its host to server_hosts."
            raise Problem(HTTPStatus.FORBIDDEN, "unknown-origin", detail)

    def _is_ours(self, host: str | None) -> bool:
        return host is not None and (host in self._hosts or is_loopback(host))

    async def _let_in(self, token: bytes | None, headers: Headers, scope: Scope) -> Caller | None:
        met = self._callers.met(token)
        guest = self._sessions is not None and is_page(scope["path"]) and "authorization" not in headers
        if met is None and token is None and guest:
            return None
        if met is not None:
            self._count(met)
        look = partial(self._callers.caller, token)
        scraped = met is not None and scope["path"] == METRICS
        try:
            async with asyncio.timeout(SECONDS_TO_LOOK if scraped else None):
                caller = await (look() if met is not None else self._strangers.found(place_of(scope), look))
        except (MemstoreError, TimeoutError):  # it may name the database's host, to somebody of whom nothing is known
            if scraped:
                return met
            detail = "The database does not answer: memstore doctor says why."
            later = {"Retry-After": SECONDS}
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "no-database", detail, headers=later) from None
        if caller is None and not guest:
            detail = (
                "Give a token that holds, as `Authorization: Bearer mst_…`; `memstore token create` makes one. "
                "This one is missing, is unknown, has expired or was revoked."
            )
            challenge = {"WWW-Authenticate": 'Bearer realm="memstore"'}
            raise Problem(HTTPStatus.UNAUTHORIZED, "no-token", detail, headers=challenge)
        if caller is not None and met is None:
            self._count(caller)
        if caller is None and self._sessions is not None and (cookie := cookie_of(headers)):
            self._sessions.end(cookie)  # its token was revoked: it is refused once, and not with each page
        return caller

    def _count(self, caller: Caller) -> None:
        if caller is not OWN_USER:
            check_rate(self._buckets, caller.key)


def is_page(path: str) -> bool:
    """Whether a path is one of the pages for people."""
    return path == PAGES or path.startswith(f"{PAGES}/")


def token_of(authorization: str | None) -> bytes | None:
    """Give the SHA-256 of the token that a header brings; b"" for what is none, None where there is no header."""
    if authorization is None:
        return None
    scheme, _, secret = authorization.partition(" ")
    secret = secret.strip()
    return hashed(secret) if scheme.lower() == "bearer" and secret and secret.isascii() else b""


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
