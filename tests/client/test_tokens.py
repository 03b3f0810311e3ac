"""Tokens of the servers, and what pages of a server stand on."""

from __future__ import annotations

import pytest

from memstore import InvalidInput, NotFound, ids
from memstore.client.admin import hash_token
from memstore.client.store import AsyncMemoryStore


async def test_a_token_lets_its_user_in_until_it_is_revoked(store: AsyncMemoryStore) -> None:
    assert not await store.tokens.exist()
    alices, operators = await store.tokens.create(user="alice", name="laptop"), await store.tokens.create()
    assert alices.secret and operators.secret and alices.secret != operators.secret
    held = await store.tokens.holder(hash_token(alices.secret))
    assert held is not None and (held.id, held.owner) == (alices.id, ids.user_id("alice"))
    held = await store.tokens.holder(hash_token(operators.secret))
    assert held is not None and held.owner is None
    assert await store.tokens.holder(hash_token(alices.secret[:-1])) is None
    first = (await store.tokens.revoke(alices)).revoked_at
    assert first is not None and (await store.tokens.revoke(alices.id)).revoked_at == first
    assert await store.tokens.holder(hash_token(alices.secret)) is None
    assert [one.id for one in await store.tokens.all()] == [operators.id, alices.id]
    assert await store.tokens.exist()


@pytest.mark.parametrize(
    "wrong", [{"user": " "}, {"name": ""}, {"days": 0}, {"days": -1}, {"days": 1e9}, {"user": "\0"}]
)
async def test_a_token_that_cannot_be_is_refused(store: AsyncMemoryStore, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        await store.tokens.create(**wrong)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await store.tokens.revoke(ids.uuid7())
    assert not await store.tokens.exist()
