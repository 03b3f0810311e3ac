"""LangGraph's long-term memory, `BaseStore`, over a user's documents.

    store = MemstoreStore(memstore.open(), user=lambda namespace: namespace[1])
    graph = builder.compile(store=store)
    store.put(("memories", "alice"), "diet", {"text": "is allergic to peanuts"})
    store.search(("memories", "alice"), query="what may she eat?")

`user` is the name of the memory's user, or a function that returns it for a namespace. Row-level security keeps users
apart whatever a namespace says, so a search never reaches beyond the user whom its prefix names. Items are found by the
store's own embedder; every item below the prefix is compared, and numbers are compared as numbers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from langgraph.store import base
from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig
from langgraph.store.base.batch import AsyncBatchedBaseStore

from memstore.adapters._sync_or_async import call_at_once, maybe_await, run_sync
from memstore.errors import InvalidInput
from memstore.models import Document, Namespace, NewDocument
from memstore.providers import Vectors
from memstore.store.documents import Match

if TYPE_CHECKING:
    from memstore._sync.client.store import MemoryStore
    from memstore.client.store import AsyncMemoryStore

User = str | Callable[[Namespace], str]


class _Items:
    """The base of both stores: finds the user of each operation, and answers a batch by calls of memstore."""

    supports_ttl = True
    _call: Callable[..., Awaitable[Any]]
    index_config: IndexConfig | None
    ttl_config: TTLConfig | None

    def __init__(
        self,
        store: MemoryStore | AsyncMemoryStore,
        user: User,
        *,
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._store: Any = store
        self._user, self.ttl_config = user, ttl
        self._sweeper: Any = None
        self.index_config = index or None
        self._indexed = index is not False
        config: Any = self.index_config or {}
        # By default the whole item.
        self._fields: Sequence[str] = config.get("fields") or ("$",)
        self._options: dict[str, Any] = {}
        if config:
            distance = config.get("distance_type") or "cosine"
            self._options = {"embedder": _LangChainEmbedder(config), "distance": distance}

    def _documents(self, namespace: Namespace) -> Any:
        try:
            name = self._user(namespace) if callable(self._user) else self._user
        except LookupError:
            raise InvalidInput(f"The namespace {namespace!r} names no user: give a longer one.") from None
        return self._store.user(name).documents(**self._options)

    @property
    def _shown(self) -> dict[str, bool]:
        return {"expired": not (self.ttl_config or {}).get("omit_expired", False)}

    async def _answer(self, ops: Sequence[Op]) -> list[Result]:
        """Read as things are before the batch, then write."""
        for op in ops:
            base.validate_op_namespace(op)
        results: list[Result] = [None] * len(ops)
        for refresh in (True, False):
            gets = [(at, op) for at, op in enumerate(ops) if isinstance(op, base.GetOp) and op.refresh_ttl is refresh]
            for documents, group in self._by_user(gets):
                places = [(op.namespace, op.key) for _, op in group]
                rows = await self._call(documents.get_many, places, refresh=refresh, **self._shown)
                for (at, _), document in zip(group, rows, strict=True):
                    results[at] = None if document is None else base.Item(**_columns(document))
        for at, op in enumerate(ops):
            if isinstance(op, base.SearchOp):
                rows = await self._search(op)
                results[at] = [base.SearchItem(**_columns(document), score=document.score) for document in rows]
            elif isinstance(op, base.ListNamespacesOp):
                results[at] = await self._list_namespaces(op)
        # Of several writes of one name the last one counts.
        puts = {(op.namespace, op.key): (at, op) for at, op in enumerate(ops) if isinstance(op, base.PutOp)}
        for documents, group in self._by_user(puts.values()):
            new = [self._to_document(op) for _, op in group if op.value is not None]
            gone = [(op.namespace, op.key) for _, op in group if op.value is None]
            await self._call(documents.write, new, gone)
        return results

    def _by_user(self, numbered: Iterable[tuple[int, Any]]) -> list[tuple[Any, list[tuple[int, Any]]]]:
        """Group operations, with their numbers, by the user's documents that they concern."""
        groups: dict[str, tuple[Any, list[tuple[int, Any]]]] = {}
        for at, op in numbered:
            documents = self._documents(op.namespace)
            groups.setdefault(documents.user, (documents, []))[1].append((at, op))
        return list(groups.values())

    async def _search(self, op: base.SearchOp) -> Any:
        page = {"limit": op.limit, "offset": op.offset, "refresh": op.refresh_ttl} | self._shown
        asked = {"query": op.query if self._indexed else None, "where": op.filter}
        search = self._documents(op.namespace_prefix).search
        return await self._call(search, tuple(op.namespace_prefix), **asked, **page)

    async def _list_namespaces(self, op: base.ListNamespacesOp) -> Any:
        matches = [Match(tuple(each.path), at_end=each.match_type == "suffix") for each in op.match_conditions or ()]
        prefix: Sequence[str] = next((match.path for match in matches if not match.at_end), ())
        # A user named "*" would be somebody else.
        user = tuple(takewhile(lambda label: label != "*", prefix))
        page = {"depth": op.max_depth, "limit": op.limit, "offset": op.offset} | self._shown
        return await self._call(self._documents(user).namespaces, matches, **page)

    def _to_document(self, op: base.PutOp) -> NewDocument:
        paths = (self._fields if op.index is None else op.index or ()) if self._indexed else ()
        found = {path: base.get_text_at_path(op.value, path) for path in paths}
        texts = {f"{path}.{place}": text for path in found for place, text in enumerate(found[path])}
        lives = None if op.ttl is None else timedelta(minutes=op.ttl)
        return NewDocument(tuple(op.namespace), str(op.key), dict(op.value or {}), texts, lives)

    def _sweep_seconds(self, minutes: float | None) -> float:
        return 60 * float(minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5)


class MemstoreStore(_Items, BaseStore):
    """A `BaseStore` over a blocking `MemoryStore`, which it does not close; its `a…` methods work in a thread.

    `user` is the memstore user whose items these are, or gives it for a namespace. `index` is LangGraph's: an embedder
    of your own with `dims` and `fields`; by default the store's embedder finds the whole item, with False none does.
    `ttl` is LangGraph's too; expired items go at the next sweep, `memstore.apply_retention()` or turn of a worker.
    """

    _call = staticmethod(call_at_once)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer several operations: reads first, then the writes, those of a user in one transaction."""
        return run_sync(self._answer([*ops]))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer several operations in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def sweep_ttl(self) -> int:
        """Remove expired items; return how many."""
        users = [*self._store.users()] if callable(self._user) else [self._user]
        return sum(self._store.user(name).documents().expire() for name in users)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Remove expired items from now on, in a thread, where there is a `ttl`."""
        if self.ttl_config is not None and self._sweeper is None:
            self._stop = threading.Event()
            seconds = self._sweep_seconds(sweep_interval_minutes)
            self._sweeper = threading.Thread(target=self._sweep, args=(seconds,), name="memstore-ttl", daemon=True)
            self._sweeper.start()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return whether it has stopped within the timeout."""
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is not None:
            self._stop.set()
            sweeper.join(timeout)
        return sweeper is None or not sweeper.is_alive()

    def _sweep(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            self.sweep_ttl()


class AsyncMemstoreStore(_Items, AsyncBatchedBaseStore):
    """The same over an `AsyncMemoryStore`, in whose event loop it is made; calls of one moment are one batch."""

    _call = staticmethod(maybe_await)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer several operations: reads first, then the writes, those of a user in one transaction."""
        return await self._answer([*ops])

    async def sweep_ttl(self) -> int:
        """Remove expired items; return how many."""
        users = [name async for name in self._store.users()] if callable(self._user) else [self._user]
        return sum([await self._store.user(name).documents().expire() for name in users])

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Remove expired items from now on, in a task, where there is a `ttl`."""
        if self.ttl_config is not None and self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(self._sweep_seconds(sweep_interval_minutes)))

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Stop the sweeper, at once."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait([self._sweeper], timeout=timeout)
            self._sweeper = None
        return True

    async def _sweep(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self.sweep_ttl()


class _LangChainEmbedder:
    """An embedder of LangChain's, or a function, as an embedder of memstore's."""

    def __init__(self, index: IndexConfig) -> None:
        self._embeddings: Any = base.ensure_embeddings(index.get("embed"))
        self.dimensions = index["dims"]
        self.name = f"langchain:{getattr(self._embeddings, 'model', None) or type(self._embeddings).__name__}"
        # As most have.
        self.max_tokens = 8192
        # True where a coroutine function was given.
        self._is_async = hasattr(self._embeddings, "afunc")

    def count(self, text: str) -> int:
        return len(text) // 4

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        model, batch = self._embeddings, [*texts]
        vectors = asyncio.run(model.aembed_documents(batch)) if self._is_async else model.embed_documents(batch)
        return np.array(vectors, np.float32)

    def embed_query(self, text: str) -> Vectors:
        model = self._embeddings
        vector = asyncio.run(model.aembed_query(text)) if self._is_async else model.embed_query(text)
        return np.array(vector, np.float32)


def _columns(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in ("namespace", "key", "value", "created_at", "updated_at")}
