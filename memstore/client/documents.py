"""What a user's scope offers for documents: values by namespace and key, found by meaning or by what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from memstore._compat import to_thread
from memstore.client.arguments import check_limit, check_object, check_offset
from memstore.client.opened import Opened
from memstore.derive.document_vectors import whole_text
from memstore.derive.resources import embedded
from memstore.errors import Conflict, InvalidInput
from memstore.ingest.check import check_name, check_text
from memstore.ingest.redaction import Redactor
from memstore.models import LONGEST_TTL, Document, Json, Namespace, NewDocument
from memstore.providers import Embedder
from memstore.store import documents, embedders, erasures, messages
from memstore.store.database import Transaction
from memstore.store.documents import DEEPEST, Condition, Distance, Match, Wanted, Written
from memstore.store.embedders import OtherServes
from memstore.store.embedders import id_of as model_of

WHOLE = "$"  # the path of all of a value
OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte")
Place = tuple[Sequence[str], str]
Unchanged = Callable[[Mapping[tuple[Namespace, str], Document]], bool]


class AsyncDocuments:
    """A user's documents. An `embedder` of the application's own finds what it has embedded itself, and only that."""

    def __init__(
        self, opened: Opened, name: str, user_id: UUID, embedder: Embedder | None = None, distance: Distance = "cosine"
    ) -> None:
        self._opened = opened
        self.user = name
        self._user_id = user_id
        self._embedder = embedder
        self._distance = distance

    async def get(self, namespace: Sequence[str], key: str, *, refresh: bool = True) -> Document | None:
        """Give a document, None where there is none; with `refresh` it lives for its whole `ttl` again."""
        return (await self.get_many([(namespace, key)], refresh=refresh))[0]

    async def get_many(
        self, places: Sequence[Place], *, refresh: bool = True, expired: bool = False
    ) -> list[Document | None]:
        """Give documents by namespace and key, None for each that there is not; `expired` ones while they are there."""
        wanted = [self._id(namespace, key) for namespace, key in places]
        async with self._opened.database.scope(self._user_id) as scope:
            found = await documents.documents(scope, wanted, expired=expired)
            if refresh and self._opened.database.capabilities.writes:
                await documents.refresh(scope, found, expired=expired)
        by_id = {documents.id_of(self._user_id, one.namespace, one.key): one for one in found}
        return [by_id.get(id) for id in wanted]

    async def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Json,
        *,
        texts: Mapping[str, str] | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        """Keep a value, in place of the one of this name; see `NewDocument`."""
        self._id(namespace, key)  # which a tuple of a text would pass
        await self.write([NewDocument(tuple(namespace), key, value, texts, ttl)])

    async def delete(self, namespace: Sequence[str], key: str) -> bool:
        """Remove a document; False where there is none. It leaves no tombstone: an older export brings it back."""
        id = self._id(namespace, key)
        async with self._opened.database.scope(self._user_id) as scope:
            return await documents.remove(scope, [id]) > 0

    async def write(
        self, new: Sequence[NewDocument], remove: Sequence[Place] = (), *, unchanged: Unchanged | None = None
    ) -> None:
        """Keep values and remove others, all in one transaction; of several of one name the last one counts.

        With `unchanged` the documents of these names are locked and shown to it, those that there are, by namespace and
        key; where it says False nothing is written, and `Conflict` raised.
        """
        for one in new:
            check_new(one)
        named = {self._id(one.namespace, one.key): one for one in new}
        redactor = self._opened.taking(user=self.user)
        named = {id: redact_document(one, redactor) for id, one in named.items()}
        last = dict(sorted(named.items()))  # in one order for everybody, as they are locked
        gone = [self._id(*place) for place in remove]
        while True:
            try:
                return await self._written(last, gone, unchanged)
            except OtherServes:  # since the texts were embedded
                continue

    async def _written(
        self, last: Mapping[UUID, NewDocument], gone: Sequence[UUID], unchanged: Unchanged | None
    ) -> None:
        written, model, served = await self._embedded(list(last.values()))
        async with self._opened.database.scope(self._user_id) as scope:
            await erasures.share(scope)  # waits for one of the user, who is then made anew
            await messages.make_user(scope, self.user)
            if served is not None:
                await embedders.bind(scope, served)
            if unchanged is not None:
                await self._check(scope, [*last, *gone], unchanged)
            if len(last) + len(gone) > 1:
                await documents.hold(scope, [*last, *gone])
            if gone:
                await documents.remove(scope, gone)
            if written:
                await documents.put(scope, written, model)

    async def _check(self, scope: Transaction, wanted: Sequence[UUID], unchanged: Unchanged) -> None:
        await embedders.lock(scope)  # a document that is not there cannot be locked
        there = await documents.locked(scope, wanted)
        if not unchanged({(one.namespace, one.key): one for one in there}):
            raise Conflict("A document was changed meanwhile; read it again. Nothing was written.")

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
        """Give documents below a namespace: those nearest to a query first, else the latest change first.

        `where` says what values hold: `{"color": "red", "price": {"$lt": 10}}`, with $eq, $ne, $gt, $gte, $lt and $lte;
        numbers are compared as numbers, and what is not of one kind is in no order. Every document with a vector is
        compared. Without an embedder a query changes nothing.
        """
        check_limit(limit)
        check_offset(offset)
        check_labels(prefix)
        wanted = Wanted([*prefix], conditions(where or {}), limit, offset, expired)
        embedder = await self._searching(query)
        vector = None if embedder is None else await to_thread(embedder.embed_query, query or "")
        async with self._opened.database.scope(self._user_id) as scope:
            if vector is None:
                found = await documents.latest(scope, wanted)
            else:
                found = await documents.nearest(scope, wanted, vector, model_of(embedder), self._distance)
            if refresh and self._opened.database.capabilities.writes:
                await documents.refresh(scope, found, expired=expired)
        return found

    async def namespaces(
        self,
        matches: Sequence[Match] = (),
        *,
        depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        expired: bool = False,
    ) -> list[Namespace]:
        """Give the namespaces that there are, in order; those that match all of `matches`, cut to `depth` labels."""
        check_limit(limit)
        check_offset(offset)
        for one in matches:
            check_labels(one.path)
        if depth is not None and (type(depth) is not int or not 1 <= depth <= DEEPEST):
            raise InvalidInput(f"depth={depth!r:.60}: give a number of labels, from 1.")
        async with self._opened.database.scope(self._user_id) as scope:
            return await documents.namespaces(scope, matches, depth, limit, offset, expired=expired)

    async def expire(self) -> int:
        """Remove the documents whose time is over, which nobody sees any more; give how many."""
        async with self._opened.database.scope(self._user_id) as scope:
            return await documents.expire(scope)

    def _id(self, namespace: Sequence[str], key: str) -> UUID:
        if isinstance(namespace, str) or not namespace:
            raise InvalidInput(f"namespace={namespace!r:.60}: give a tuple of names, at least one.")
        for label in namespace:
            check_name(label, "namespace")
        check_text(key, "the key of a document")
        return documents.id_of(self._user_id, tuple(namespace), key)

    async def _searching(self, query: str | None) -> Embedder | None:
        if query is not None:
            check_text(query, "the query")
        return await self._embedding() if query and query.strip() else None

    async def _embedding(self) -> Embedder | None:
        """Give the application's own embedder, else the one that serves the user, else the settings'."""
        if self._embedder is not None:
            return self._embedder
        opened = self._opened
        own = await opened.encoder()
        if own is None:
            return None
        async with opened.database.scope(self._user_id) as scope:
            known = await embedders.models(scope)
        there = await embedders.chosen(opened.database, known, own)
        return own if there is None else await to_thread(opened.exactly, there.name, there.dimensions)

    async def _embedded(self, new: Sequence[NewDocument]) -> tuple[list[Written], UUID, Embedder | None]:
        """Give documents with the vectors of their texts, all made at once, and whose vectors these are.

        The last one given is the embedder where it is to serve the user: not an application's own.
        """
        texts = [texts_of(one) for one in new]
        flat = [text for one in texts for text in one.values()]
        embedder = await self._embedding() if flat else None
        written = [Written(tuple(one.namespace), one.key, one.value, one.ttl) for one in new]
        if embedder is not None:
            vectors = iter(await to_thread(embedded, embedder, flat))
            written = [
                replace(one, vectors={path: next(vectors) for path in found}, texts=dict(given.texts or {}))
                for one, found, given in zip(written, texts, new, strict=True)
            ]
        return written, model_of(embedder), None if self._embedder is not None else embedder


def check_new(new: NewDocument) -> None:
    """Raise `InvalidInput` for a document that cannot be kept; its name is checked apart."""
    check_object(new.value, f"the value of {new.key!r:.60}")
    for path, text in (new.texts or {}).items():
        check_text(path, "the path of a text")
        if not isinstance(text, str):
            raise InvalidInput(f"texts: {text!r:.60} under {path!r:.60} is no text.")
    if new.ttl is not None and not (isinstance(new.ttl, timedelta) and timedelta(0) < new.ttl <= LONGEST_TTL):
        raise InvalidInput(f"ttl={new.ttl!r:.60}: give a timedelta of at most {LONGEST_TTL.days} days, or None.")


def redact_document(new: NewDocument, redactor: Redactor) -> NewDocument:
    """Give a document with its secrets marked; raise `InvalidInput` where its name holds one."""
    for label in (*new.namespace, new.key):
        redactor.reject_secret_names(name_of_a_document=label)
    return replace(new, value=redactor.redact_json(new.value), texts=redactor.redact_json(new.texts))


def check_labels(labels: Sequence[str]) -> None:
    """Raise `InvalidInput` for labels of a namespace that are none; a text would be read letter by letter."""
    if isinstance(labels, str):
        raise InvalidInput(f"{labels!r:.60}: give a tuple of names.")
    for label in labels:
        check_text(label, "a label of the namespace")


def texts_of(new: NewDocument) -> dict[str, str]:
    """Give the texts by which a document is found, but for blank ones."""
    given = {WHOLE: whole_text(new.value)} if new.texts is None else new.texts
    return {path: text for path, text in given.items() if text.strip()}


def conditions(where: Json, path: Sequence[str] = ()) -> list[Condition]:
    """Give what a value must hold, path by path. Raises `InvalidInput` for an operator that there is not."""
    check_object(where, "where")
    found: list[Condition] = []
    for name, asked in where.items():
        if name.startswith("$"):
            if name[1:] not in OPERATORS or not path:
                raise InvalidInput(
                    f"{name!r:.60} under {'.'.join(path)!r}: give a key, or one of ${', $'.join(OPERATORS)}."
                )
            found.append(Condition(path, name[1:], asked))
        elif isinstance(asked, dict) and asked:
            found += conditions(asked, (*path, name))
        else:
            found.append(Condition((*path, name), "eq", asked))
    return found
