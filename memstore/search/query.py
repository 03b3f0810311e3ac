"""A query: the question's text, its terms, and its vector by the user's active embedding model.

That model is the store's own as a rule. Where a migration has put another in its place, the database says so once, and
from then on this process uses that one. A vector is compared only with vectors of the same model.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from memstore._compat import to_thread
from memstore.providers import Embedder, EmbedderLoader, load_stored_embedder
from memstore.search.ranking import QueryFeatures
from memstore.store import chunks, embedding_models
from memstore.store.chunks import IndexVersion
from memstore.store.database import Database, Transaction
from memstore.store.tokenize import QUESTION, hashed, is_english, terms

# Of a pasted page the beginning and the end are the question; with every word of 100 KB a recall took ten seconds.
LONGEST_QUERY, MOST_TERMS = 8000, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(QueryFeatures):
    """An embedded question. `embedded_text` is the text in the first person of the speakers whom it names."""

    embedded_text: str
    embedder: Embedder | None
    model: UUID  # under which the embedder's vectors are stored

    @property
    def embedded_by(self) -> str:
        """The name of the embedder, "none" for none."""
        return self.embedder.name if self.embedder else "none"

    async def for_speakers(self, speakers: Iterable[str]) -> Query:
        """Return the query with the vector that it has among these speakers."""
        text = to_first_person(self.text, speakers)
        if self.embedder is None or not self.text.strip() or (text == self.embedded_text and self.vector is not None):
            return self
        return replace(self, embedded_text=text, vector=await to_thread(self.embedder.embed_query, text))

    def fits(self, version: IndexVersion | None) -> bool:
        """Return whether the query's vector is of the model that is active in this version of the user's chunks."""
        active = None if version is None or self.embedder is None else chunks.active_model(version.models)
        return active is None or active.id == self.model


@dataclass(frozen=True, slots=True)
class QueryBuilder:
    """Builds queries of one user. `load_embedder` loads another one than the store's, where that is the active one."""

    database: Database
    user_id: UUID
    embedder: Embedder | None
    load_embedder: EmbedderLoader = load_stored_embedder

    async def guess_embedder(self) -> Embedder | None:
        """Return the embedder that was active for the user last time; the store's own where that is not known."""
        known = None if self.embedder is None else self.database.cache.active_models.get(self.user_id)
        return self.embedder if known is None else await to_thread(self.load_embedder, *known)

    async def build(self, question: str, embedder: Embedder | None) -> Query:
        """Return a question as a query, embedded while no connection is held; "" finds nothing."""
        text = question
        if len(text) > LONGEST_QUERY:
            text = f"{text[: LONGEST_QUERY // 2]} {text[-LONGEST_QUERY // 2 :]}"
        words = list(terms(text))
        if len(words) > MOST_TERMS:
            words = words[: MOST_TERMS // 2] + words[-MOST_TERMS // 2 :]
        query = Query(
            text,
            None,
            {word: hashed(word, self.user_id) for word in words},
            hashed(QUESTION, self.user_id),
            embedded_text=text,
            embedder=embedder,
            model=chunks.model_id(embedder),
        )
        return await self._embed(query)

    async def ensure_model(self, query: Query, version: IndexVersion | None) -> tuple[Query, IndexVersion | None]:
        """Return the query embedded by the active model, with the version in which that model is active.

        Raises `EmbedderMismatch` where no setting and no migration names the model of the user's vectors.
        """
        if query.fits(version):
            return query, version
        async with self.open(query) as (_, fitting, active):
            return fitting, active

    @asynccontextmanager
    async def open(self, query: Query) -> AsyncIterator[tuple[Transaction, Query, IndexVersion | None]]:
        """Open a transaction; yield it with the query by the active model and the version of the user's chunks."""
        while True:
            async with self.database.user_transaction(self.user_id, [chunks.index_version(query.model)]) as scope:
                [version] = scope.first
                if query.fits(version):
                    yield scope, query, version
                    return
            assert version is not None
            query = await self._embed_by_active_model(query, version)

    async def _embed_by_active_model(self, query: Query, version: IndexVersion) -> Query:
        model = await embedding_models.resolve(self.database, version.models, self.embedder)
        self.database.cache.active_models[self.user_id] = None if model is None else (model.name, model.dimensions)
        embedder = self.embedder if model is None else await to_thread(self.load_embedder, model.name, model.dimensions)
        return await self._embed(replace(query, vector=None, embedder=embedder, model=chunks.model_id(embedder)))

    async def _embed(self, query: Query) -> Query:
        # The speakers who are known now; `rank_candidates` looks again.
        return await query.for_speakers(self.database.cache.speakers(self.user_id, query.model))


def to_first_person(question: str, speakers: Iterable[str]) -> str:
    """Return a question in the first person of the speakers whom it names: "What is Ann's job?" is "What is my job?".

    For the embedder alone: people say "I painted a lake", and that is nearer to "What did I paint?" than to "What did
    Ann paint?". Worth 0.9 points, all on LoCoMo. A question in another language than English stays as it is.
    """
    names = sorted((name for name in speakers if name in question), key=len, reverse=True)
    if not names or not is_english(question):
        return question
    anyone = "|".join(map(re.escape, names))
    question = re.sub(rf"\b(?:{anyone})(?:['’]s\b|(?<=s)['’](?=\s))", "my", question)
    return re.sub(rf"\b(?:{anyone})\b", "I", question)
