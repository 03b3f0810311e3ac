"""Authentication: a bearer token says whose memory is open.

The answer is the same for a token that is unknown, has expired or was revoked, and for a user who does not exist or
is another token's.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Final
from uuid import UUID

from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from memstore.client.admin import AsyncTokens, hash_token
from memstore.client.store import AsyncMemoryStore
from memstore.errors import MemstoreError
from memstore.server.http.errors import Problem, database_unavailable, user_not_found
from memstore.server.http.middleware import disable_timeout

if TYPE_CHECKING:  # another extra, which may not be there
    from memstore.server.mcp.server import McpApp

BEARER = HTTPBearer(auto_error=False, description="made by `memstore token create`")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: `user_id` is the only user whose memory is open, None for the operator."""

    user_id: UUID | None
    user_name: str | None = None

    def can_access(self, user_id: UUID) -> bool:
        """Return whether this user's memory is open."""
        return self.user_id in (None, user_id)


LOCAL_USER: Final = Principal(None)


class Authenticator:
    """Looks up tokens by their SHA-256. With `allow_local` none is needed until the first token is made."""

    def __init__(self, tokens: AsyncTokens, *, allow_local: bool) -> None:
        self._tokens, self._allow_local = tokens, allow_local

    async def find(self, token_hash: bytes | None) -> Principal | None:
        """Return whom a token lets in, None for nobody."""
        try:
            if token_hash is None:
                self._allow_local = self._allow_local and not await self._tokens.exist()
                return LOCAL_USER if self._allow_local else None
            holder = await self._tokens.holder(token_hash)
        except MemstoreError:
            raise database_unavailable() from None
        return None if holder is None else Principal(holder.owner, holder.user_name)

    async def authenticate(self, request: Request) -> Principal:
        """Return who asks; raise a 401 problem where no token lets them in."""
        principal = await self.find(await bearer_token(request))
        if principal is None:
            detail = (
                "Give a token that holds, as `Authorization: Bearer mst_…`; `memstore token create` makes one. "
                "This one is missing, is unknown, has expired or was revoked."
            )
            challenge = {"WWW-Authenticate": 'Bearer realm="memstore"'}
            raise Problem(HTTPStatus.UNAUTHORIZED, "no-token", detail, headers=challenge)
        return principal


async def bearer_token(request: Request) -> bytes | None:
    """Return the SHA-256 of the token that a request brings, None where it brings none."""
    credentials = await BEARER(request)
    return None if credentials is None else hash_token(credentials.credentials)


class RequireUser:
    """Passes requests on to an application where the token opens the memory of the path's user."""

    def __init__(self, app: McpApp, store: AsyncMemoryStore, authenticator: Authenticator) -> None:
        self._app, self._store, self._authenticator = app, store, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or raise a 401 or 404 problem."""
        principal = await self._authenticator.authenticate(Request(scope))
        if not principal.can_access(self._store.user(scope["path_params"]["user"]).id):
            raise user_not_found()
        if scope["method"] == HTTPMethod.GET:
            disable_timeout(scope)  # it listens to a stream
        await self._app(scope, receive, send)
