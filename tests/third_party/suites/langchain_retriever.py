"""The standard tests of LangChain for retrievers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from memstore_suite import cloned_url

import memstore
from memstore.adapters.langchain import MemstoreRetriever

SAID = ("I am allergic to peanuts.", "The ferry to Ischia leaves at nine.", "My sister Ada lives in Porto.", "Hello!")


class TestMemstoreRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def remembered(self) -> Iterator[None]:
        with cloned_url() as url, memstore.open(url, settings={"embedder": "hashing:256"}) as store:
            user = store.user("alice")
            user.conversation("c").add_many([{"role": "user", "content": text} for text in SAID])
            store.derive()
            type(self).user = user
            yield

    user: Any = None

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MemstoreRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"user": self.user}

    @property
    def retriever_query_example(self) -> str:
        return "When does the ferry leave?"
