"""The store that both worlds are tested on: the same tests, generated for the blocking twin."""

from collections.abc import AsyncIterator

import pytest

from memstore.client.store import AsyncMemoryStore


@pytest.fixture
async def store(url: str) -> AsyncIterator[AsyncMemoryStore]:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as store:
        yield store
