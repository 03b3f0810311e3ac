"""A user's documents: values by namespace and key, found by meaning or by what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.derive.chunks import document_text
from memstore.errors import Conflict, InvalidInput
from memstore.ingest.validation import MAX_OFFSET, check_name, check_number, check_object, check_text
from memstore.models import MAX_TTL, Document, Json, Namespace, NewDocument
from memstore.providers import Embedder, Vectors, embed_query, embed_texts
from memstore.store import chunks, documents, embedding_models, messages
from memstore.store.database import Database
from memstore.store.documents import Distance, Match
from memstore.store.embedding_models import MODELS, ensure_active
from memstore.store.rows import EmbeddingModel, model_id

OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte")
DocumentKey = tuple[Sequence[str], str]  # namespace and key
IsUnchanged = Callable[[Mapping[tuple[Namespace, str], Document]], bool]


class AsyncDocuments:
    """A user's documents. An `embedder` of the application's own finds only what it has embedded itself.

    >>> notes = user.documents()
    >>> notes.put(("notes",), "trip", {"text": "The ferry leaves at nine."})
    >>> notes.search(("notes",), query="When do we sail?")
    """

    def __init__(
        self,
        runtime: Runtime,
        database: Database,
        name: str,
        user_id: UUID,
        embedder: Embedder | None,
        distance: Distance,
    ) -> None:
        self._runtime = runtime
        self._database = database
        self.user = name
        self._user_id = user_id
        self._embedder = embedder
        self._distance = distance

    async def get(self, namespace: Sequence[str], key: str, *, refresh: bool = True) -> Document | None:
        """Return a document, or None; with `refresh` its `ttl` starts again."""
        return (await self.get_many([(namespace, key)], refresh=refresh))[0]

    async def get_many(
        self, keys: Sequence[DocumentKey], *, refresh: bool = True, expired: bool = False
    ) -> list[Document | None]:
        """Return documents by namespace and key, None for each unknown one; `expired` ones too, until removed."""
        document_ids = [self._id(namespace, key) for namespace, key in keys]
        async with self._database.user_transaction(self._user_id) as tx:
            rows = await documents.documents(tx, document_ids, expired=expired)
            if refresh and self._database.capabilities.writes:
                await documents.refresh(tx, rows, expired=expired)
        by_id = {ids.document_id(self._user_id, row.namespace, row.key): row for row in rows}
        return [by_id.get(id) for id in document_ids]

    async def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Json,
        *,
        texts: Mapping[str, str] | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        """Store a value in place of that of the same key; see `NewDocument`."""
        # Checked before tuple() cuts a text into letters.
        self._id(namespace, key)
        await self.write([NewDocument(tuple(namespace), key, value, texts, ttl)])

    async def delete(self, namespace: Sequence[str], key: str) -> bool:
        """Remove a document; return whether there was one. It leaves no tombstone: an older export brings it back."""
        id = self._id(namespace, key)
        async with self._database.user_transaction(self._user_id) as tx:
            return await documents.remove(tx, [id]) > 0

    async def write(
        self, new: Sequence[NewDocument], remove: Sequence[DocumentKey] = (), *, unchanged: IsUnchanged | None = None
    ) -> None:
        """Store values and remove others in one transaction; of several with one key the last one counts.

        `unchanged` gets the documents of these keys that exist, locked, by namespace and key; if it returns False,
        nothing is written and `Conflict` is raised.
        """
        redactor = self._runtime.redactor
        redactor.reject_secret_names(user=self.user)
        by_id: dict[UUID, NewDocument] = {}
        for document in new:
            _check_new(document)
            id = self._id(document.namespace, document.key)
            for label in (*document.namespace, document.key):
                redactor.reject_secret_names(name_of_a_document=label)
            value, texts = redactor.redact_json(document.value), redactor.redact_json(document.texts)
            by_id[id] = replace(document, value=value, texts=texts)
        # Locks are taken in one order by everybody.
        ordered = dict(sorted(by_id.items()))
        removed = [self._id(*key) for key in remove]
        if self._embedder is not None or not any(map(_texts_of, new)):
            await self._write(self._embedder, ordered, removed, unchanged)
        else:
            await self._runtime.run_with_embedder(lambda embedder: self._write(embedder, ordered, removed, unchanged))

    async def _write(
        self,
        embedder: Embedder | None,
        new: Mapping[UUID, NewDocument],
        removed: Sequence[UUID],
        unchanged: IsUnchanged | None,
    ) -> None:
        vectors = await to_thread(_embed, embedder, list(new.values()))
        document_ids = [*new, *removed]
        async with self._database.user_transaction(self._user_id) as tx:
            await messages.make_user(tx, self.user)
            # An application's own is none of the store's models.
            if self._embedder is None and embedder is not None and any(vectors):
                await chunks.lock_user(tx)
                await embedding_models.lock(tx, EmbeddingModel.of(embedder), for_documents=True)
            if unchanged is not None:
                # A document that is not there cannot be locked.
                await chunks.lock_user(tx)
                rows = await documents.lock(tx, document_ids)
                if not unchanged({(row.namespace, row.key): row for row in rows}):
                    raise Conflict("A document was changed meanwhile. Nothing was written: read it again.")
            elif len(document_ids) > 1:
                await documents.lock(tx, document_ids)
            if removed:
                await documents.remove(tx, removed)
            if new:
                await documents.put(tx, list(new.values()), vectors, model_id(embedder))

    async def search(
        self,
        prefix: Sequence[str] = (),
        *,
        query: str | None = None,
        where: Json | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
        expired: bool = False,
    ) -> list[Document]:
        """Return documents below a namespace: those nearest to a query first, else the latest change first.

        `where` says what values hold: `{"color": "red", "price": {"$lt": 10}}`, with $eq, $ne, $gt, $gte, $lt and $lte.
        Numbers are compared as numbers; values of different types are in no order. Every document with a vector is
        compared. Without an embedder a query changes nothing.
        """
        check_number(limit, "limit")
        check_number(offset, "offset", 0, MAX_OFFSET)
        _check_labels(prefix)
        page: Json = {"prefix": [*prefix], "conditions": {"all": _parse_conditions(where or {})}}
        page |= {"limit": limit, "offset": offset, "expired": expired}
        if query is not None:
            check_text(query, "the query")
        text = query if query and query.strip() else None
        if text is None or self._embedder is not None:
            return await self._search(self._embedder, text, page, refresh=refresh)
        rows: list[Document] = await self._runtime.run_with_embedder(
            lambda embedder: self._search(embedder, text, page, refresh=refresh)
        )
        return rows

    async def _search(
        self, embedder: Embedder | None, query: str | None, page: Json, *, refresh: bool
    ) -> list[Document]:
        vector = None if embedder is None or query is None else await to_thread(embed_query, embedder, query)
        reads = [MODELS] if vector is not None and self._embedder is None else []
        async with self._database.user_transaction(self._user_id, reads) as tx:
            if reads:
                ensure_active(tx.result(MODELS), model_id(embedder))
            if vector is None:
                rows = await documents.latest(tx, page)
            else:
                rows = await documents.nearest(tx, page, vector, model_id(embedder), self._distance)
            if refresh and self._database.capabilities.writes:
                await documents.refresh(tx, rows, expired=page["expired"])
        return rows

    async def namespaces(
        self,
        matches: Sequence[Match] = (),
        *,
        depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        expired: bool = False,
    ) -> list[Namespace]:
        """Return the namespaces in order: those that match all of `matches`, cut to `depth` labels."""
        check_number(limit, "limit")
        check_number(offset, "offset", 0, MAX_OFFSET)
        for match in matches:
            _check_labels(match.path)
        if depth is not None:
            check_number(depth, "depth", 1, 2**31 - 1)
        async with self._database.user_transaction(self._user_id) as tx:
            return await documents.namespaces(tx, matches, depth, limit, offset, expired=expired)

    async def expire(self) -> int:
        """Remove expired documents, which nobody sees any more; return how many."""
        async with self._database.user_transaction(self._user_id) as tx:
            return await documents.expire(tx)

    def _id(self, namespace: Sequence[str], key: str) -> UUID:
        if isinstance(namespace, str) or not namespace:
            raise InvalidInput(f"namespace={namespace!r:.60}: give a tuple of names, at least one.")
        for label in namespace:
            check_name(label, "namespace")
        check_text(key, "the key of a document")
        return ids.document_id(self._user_id, tuple(namespace), key)


def _embed(embedder: Embedder | None, new: Sequence[NewDocument]) -> list[dict[str, Vectors]]:
    """Return for each document the vectors of its texts by path, embedded at once; none without an embedder."""
    texts = [_texts_of(document) for document in new]
    flat = [text for by_path in texts for text in by_path.values()]
    if embedder is None or not flat:
        return [{} for _ in new]
    vectors = iter(embed_texts(embedder, flat))
    return [{path: next(vectors) for path in by_path} for by_path in texts]


def _check_new(document: NewDocument) -> None:
    check_object(document.value, f"the value of {document.key!r:.60}")
    for path, text in (document.texts or {}).items():
        check_text(path, "the path of a text")
        if not isinstance(text, str):
            raise InvalidInput(f"texts: {text!r:.60} under {path!r:.60} is no text.")
    ttl = document.ttl
    if ttl is not None and not (isinstance(ttl, timedelta) and timedelta(0) < ttl <= MAX_TTL):
        raise InvalidInput(f"ttl={ttl!r:.60}: give a timedelta of at most {MAX_TTL.days} days, or None.")


def _texts_of(document: NewDocument) -> dict[str, str]:
    texts = {"$": document_text(document.value)} if document.texts is None else document.texts
    return {path: text for path, text in texts.items() if text.strip()}


def _check_labels(labels: Sequence[str]) -> None:
    # A text would be read letter by letter.
    if isinstance(labels, str):
        raise InvalidInput(f"{labels!r:.60}: give a tuple of names.")
    for label in labels:
        check_text(label, "a label of the namespace")


def _parse_conditions(where: Json, path: Sequence[str] = ()) -> list[Json]:
    check_object(where, "where")
    conditions: list[Json] = []
    for name, operand in where.items():
        check_text(name, "a key of where")
        if name.startswith("$"):
            if name[1:] not in OPERATORS or not path:
                raise InvalidInput(
                    f"{name!r:.60} under {'.'.join(path)!r}: give a key, or one of ${', $'.join(OPERATORS)}."
                )
            conditions.append({"path": path, "operator": name[1:], "operand": operand})
        elif isinstance(operand, dict) and operand:
            conditions += _parse_conditions(operand, (*path, name))
        else:
            conditions.append({"path": (*path, name), "operator": "eq", "operand": operand})
    return conditions
