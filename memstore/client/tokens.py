"""The tokens with which servers are asked: made, listed and revoked here. What is kept is their SHA-256."""

from __future__ import annotations

import secrets
from dataclasses import replace
from hashlib import sha256
from uuid import UUID

from memstore import ids
from memstore.client.opened import Opened
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.check import check_name
from memstore.models import ApiToken
from memstore.store import api_tokens
from memstore.store.api_tokens import Holder

PREFIX = "mst_"  # by which people, and scanners of repositories, know one
BYTES = 32
SECONDS_A_DAY = 86_400.0
MOST_DAYS = 36_500


class AsyncTokens:
    """What an operator does to the tokens of a store."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._database = opened.database

    async def create(self, *, user: str | None = None, name: str | None = None, days: float | None = None) -> ApiToken:
        """Make a token that opens the memory of `user`, or of everybody: the operator's. Its `secret` is given once.

        `name` says what it is for; it holds for `days`, or until it is revoked.
        """
        for text, kind in ((user, "user"), (name, "token")):
            if text is not None:
                check_name(text, kind)
        if days is not None and not 0 < days <= MOST_DAYS:
            raise InvalidInput(f"days={days!r}: give a number of days up to {MOST_DAYS:,}, or none.")
        redactor = self._opened.taking(user=user)
        secret = PREFIX + secrets.token_urlsafe(BYTES)
        async with self._database.operator() as scope:
            made = await api_tokens.add(
                scope,
                ids.uuid7(),
                hashed(secret),
                owner=None if user is None else ids.user_id(user),
                user_name=user,
                name=redactor.redact(name),
                seconds=None if days is None else days * SECONDS_A_DAY,
            )
        return replace(made, secret=secret)

    async def all(self) -> list[ApiToken]:
        """Give every token without its secret, the latest first; what was revoked or has expired too."""
        async with self._database.operator() as scope:
            return await api_tokens.tokens(scope)

    async def revoke(self, token: ApiToken | UUID) -> ApiToken:
        """Take a token back: it opens nothing any more. Raises `NotFound` where there is none of this id."""
        id = token.id if isinstance(token, ApiToken) else token
        async with self._database.operator() as scope:
            found = await api_tokens.revoke(scope, id)
        if found is None:
            raise NotFound(f"There is no token {id}; memstore token list shows them.")
        return found

    async def holder(self, secret: str) -> Holder | None:
        """Give whom a token lets in; None where it is unknown, has expired or was revoked.

        It is looked for by its hash: how long that takes says nothing of 32 random bytes.
        """
        return await self.holding(hashed(secret))

    async def holding(self, hash: bytes) -> Holder | None:
        """Give whom the token of this SHA-256 lets in; None as `holder` does."""
        async with self._database.operator() as scope:
            return await api_tokens.holder(scope, hash)

    async def exist(self) -> bool:
        """Whether one was ever made, also if it was revoked since."""
        async with self._database.operator() as scope:
            return await api_tokens.exist(scope)


def hashed(secret: str) -> bytes:
    """Give what is kept of a token. It is random and long, so that no slow hash is needed."""
    return sha256(secret.encode()).digest()
