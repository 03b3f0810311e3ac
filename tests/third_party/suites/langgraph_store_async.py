"""The tests of langgraph-checkpoint-postgres' async store, with memstore's in its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
import tests.test_async_store as suite
from langgraph.store.base import IndexConfig, TTLConfig
from memstore_suite import VIEW, cloned_url
from psycopg.rows import dict_row
from tests.test_async_store import *  # noqa: F403

import memstore
from memstore.adapters.langgraph import AsyncMemstoreStore
from tests.conftest import fake_embeddings  # noqa: F401

TTL: TTLConfig = {
    "default_ttl": suite.TTL_MINUTES,
    "refresh_on_read": True,
    "sweep_interval_minutes": suite.TTL_MINUTES / 2,  # type: ignore[typeddict-item]
}


class Looked(AsyncMemstoreStore):
    """The store, with the hands that the tests have under the hood of theirs: a view of the same name and columns."""

    url: str

    @asynccontextmanager
    async def _cursor(self) -> AsyncIterator[Any]:
        connecting = psycopg.AsyncConnection.connect(self.url, row_factory=dict_row, autocommit=True)
        async with await connecting as connection:
            yield connection.cursor()


@asynccontextmanager
async def opened(index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> AsyncIterator[Looked]:
    with cloned_url() as url:
        async with await memstore.open_async(url, settings={"embedder": "none"}) as store:
            with psycopg.connect(url) as connection:
                connection.execute(VIEW)
            made = Looked(store, "anybody", index=index or False, ttl=ttl)
            made.url = url
            await made.start_ttl_sweeper()
            yield made
            await made.stop_ttl_sweeper()


@pytest.fixture
async def store() -> AsyncIterator[Looked]:
    async with opened(ttl=TTL.copy()) as made:
        yield made


@asynccontextmanager
async def create_vector_store(
    vector_type: str, distance_type: str, embeddings: Any, text_fields: list[str] | None = None
) -> AsyncIterator[Looked]:
    index: Any = {"dims": embeddings.dims, "embed": embeddings, "distance_type": distance_type}
    index |= {"ann_index_config": {"vector_type": vector_type}, "fields": text_fields}
    async with opened(index) as made:
        yield made


suite._create_vector_store = create_vector_store
