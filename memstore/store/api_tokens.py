"""Tokens of the servers, by their hashes.

They are the operator's rows: a token is looked up before its user is known.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from memstore.models import ApiToken
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("api_tokens")


class TokenHolder(NamedTuple):
    """A valid token, and the user whose memory it opens; None is the operator, who may ask for everybody's."""

    id: UUID
    owner: UUID | None
    user_name: str | None


async def add(
    tx: Transaction,
    id: UUID,
    hash: bytes,
    *,
    owner: UUID | None,
    user_name: str | None,
    name: str | None,
    seconds: float | None,
) -> ApiToken:
    """Store a token's hash; it is valid for some seconds, or until it is revoked."""
    values = {"id": id, "hash": hash, "owner": owner, "user_name": user_name, "name": name, "seconds": seconds}
    [token] = await tx.all(SQL["add"], ApiToken, **values)
    return token


async def holder(tx: Transaction, hash: bytes) -> TokenHolder | None:
    """Return the holder of the token with this hash; None if it is unknown, expired or revoked."""
    return await tx.one(SQL["holder"], TokenHolder, hash=hash)


async def exist(tx: Transaction) -> bool:
    return await tx.value(SQL["exist"], bool) or False


async def tokens(tx: Transaction) -> list[ApiToken]:
    """Return all there are, the latest first; those that were revoked or have expired too."""
    return await tx.all(SQL["tokens"], ApiToken)


async def revoke(tx: Transaction, id: UUID) -> ApiToken | None:
    return await tx.one(SQL["revoke"], ApiToken, id=id)
