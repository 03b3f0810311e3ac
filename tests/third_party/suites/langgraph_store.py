"""The tests of langgraph-checkpoint-postgres' blocking store, with memstore's in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import tests.test_store as suite
from langgraph.store.base import IndexConfig, TTLConfig
from memstore_suite import VIEW, cloned_url
from psycopg.rows import dict_row
from tests.test_store import *  # noqa: F403

import memstore
from memstore.adapters.langgraph import MemstoreStore
from tests.conftest import fake_embeddings  # noqa: F401

TTL: TTLConfig = {
    "default_ttl": suite.TTL_MINUTES,
    "refresh_on_read": True,
    "sweep_interval_minutes": suite.TTL_MINUTES / 2,  # type: ignore[typeddict-item]
}


class Looked(MemstoreStore):
    """The store, with the hands that the tests have under the hood of theirs: a view of the same name and columns."""

    url: str

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with psycopg.connect(self.url, row_factory=dict_row, autocommit=True) as connection:
            yield connection.cursor()


@contextmanager
def opened(index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> Iterator[Looked]:
    with cloned_url() as url, memstore.open(url, settings={"embedder": "none"}) as store:
        with psycopg.connect(url) as connection:
            connection.execute(VIEW)
        made = Looked(store, "anybody", index=index or False, ttl=ttl)
        made.url = url
        made.start_ttl_sweeper()
        yield made
        made.stop_ttl_sweeper()


@pytest.fixture
def store() -> Iterator[Looked]:
    with opened(ttl=TTL.copy()) as made:
        yield made


@contextmanager
def create_vector_store(
    vector_type: str,
    distance_type: str,
    embeddings: Any,
    text_fields: list[str] | None = None,
    enable_ttl: bool = True,
) -> Iterator[Looked]:
    index: Any = {"dims": embeddings.dims, "embed": embeddings, "distance_type": distance_type}
    index |= {"ann_index_config": {"vector_type": vector_type}, "fields": text_fields}
    with opened(index, {"default_ttl": 2, "refresh_on_read": True} if enable_ttl else None) as made:
        yield made


suite._create_vector_store = create_vector_store
