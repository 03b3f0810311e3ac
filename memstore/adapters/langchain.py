"""LangChain's retriever over a user's messages, summaries and facts.

retriever = MemstoreRetriever(user=memstore.open().user("alice"), k=5)
retriever.invoke("what am I allergic to?")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from memstore.client.user import AsyncUserScope
from memstore.errors import InvalidInput
from memstore.models import Hit


class MemstoreRetriever(BaseRetriever):
    """Recalls what is remembered about a question, the best first, `k` hits.

    `user` is a scope of a `MemoryStore`, or of an `AsyncMemoryStore`, for `ainvoke` alone. The rest is as in
    `user.recall`, and may be given to a single `invoke` too. Each document has the hit's text and, as metadata, its
    `tier`, `score`, `occurred_at`, `role`, `speaker` and `sources`, the ids of the messages that it came from.
    """

    user: Any
    k: int = 10
    tiers: Sequence[str] | None = None
    conversation: str | None = None
    roles: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_score: float | None = None
    viewer: str | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, **more: Any
    ) -> list[Document]:
        if isinstance(self.user, AsyncUserScope):
            raise InvalidInput("This retriever has a user of an async store: await ainvoke, or open a blocking store.")
        return [_document(hit) for hit in self.user.recall(query, **self._arguments(more))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **more: Any
    ) -> list[Document]:
        if not isinstance(self.user, AsyncUserScope):
            documents: list[Document] = await super()._aget_relevant_documents(query, run_manager=run_manager, **more)
            return documents
        return [_document(hit) for hit in await self.user.recall(query, **self._arguments(more))]

    def _arguments(self, more: dict[str, Any]) -> dict[str, Any]:
        names = ("tiers", "conversation", "roles", "since", "until", "min_score", "viewer")
        defaults = {name: getattr(self, name) for name in names}
        arguments = {name: value for name, value in (defaults | more).items() if value is not None and name != "k"}
        return arguments | {"limit": more.get("k", self.k)}


def _document(hit: Hit) -> Document:
    names = ("tier", "score", "role", "speaker", "seq", "start", "later")
    metadata = {name: getattr(hit, name) for name in names} | {"occurred_at": hit.occurred_at.isoformat()}
    metadata |= {"tier": str(hit.tier), "sources": [str(id) for id in hit.sources]}
    return Document(id=str(hit.id), page_content=hit.text, metadata=metadata)
