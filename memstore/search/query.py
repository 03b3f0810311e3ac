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
MOST_PARTS = 3
LONGEST_QUESTION = 1000  # characters: what is longer tells something, and asks at its end
FEWEST_WORDS = 3  # "and why?" asks nothing by itself
_ASKS = (
    r"(?:what|when|where|who|whom|whose|which|why|how)\b"
    r"|(?:am|is|are|was|were|do|does|did|has|have|had|can|could|should|will|would) (?:I|we|you|my|our|your)\b"
    r"|(?:wann|wo|woher|wohin|wer|wen|wem|wessen|was|welche[mnrs]?|warum|wieso|wie)\b"
    r"|(?:bin|ist|sind|war|waren|habe|haben|kann|können|soll|sollen|muss|müssen) (?:ich|wir|meine?|unsere?)\b"
)
_NEXT_QUESTION = re.compile(
    rf"(?<=\?)\s+(?=[^?]+\?)|(?:,\s*|\s+)(?:and|but|und|aber)\s+(?:(?:also|auch)\s+)?(?={_ASKS})", re.IGNORECASE
)
# "How long was it between when I began and when I ended?" is one question, "zwischen" likewise.
_ONE_QUESTION = re.compile(r"\b(?:between|zwischen)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(QueryFeatures):
    """An embedded question. `embedded_text` is the text in the first person of the speakers whom it names."""

    embedded_text: str
    embedder: Embedder | None
    model: UUID  # under which the embedder's vectors are stored
    subqueries: tuple[Query, ...] = ()  # the questions that it consists of, searched beside it

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
        """Return whether the query's vector is of the model that is active in this version of the user's units."""
        active = None if version is None or self.embedder is None else embedding_models.active(version.models)
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
            model=embedding_models.id_of(embedder),
        )
        return await self._embed(query)

    async def build_for_recall(self, question: str) -> Query:
        """Return a question as a query, with its subqueries, by the embedder that was active last time."""
        return await self.add_subqueries(await self.build(question, await self.guess_embedder()))

    async def add_subqueries(self, query: Query) -> Query:
        """Return the query with the questions that it consists of."""
        subqueries = [await self.build(question, query.embedder) for question in split_question(query.text)]
        return replace(query, subqueries=tuple(subqueries))

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
        """Open a transaction; yield it with the query by the active model and the version of the user's units."""
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
        whole, *subqueries = [
            await self._embed(replace(part, vector=None, embedder=embedder, model=embedding_models.id_of(embedder)))
            for part in (query, *query.subqueries)
        ]
        return replace(whole, subqueries=tuple(subqueries))

    async def _embed(self, query: Query) -> Query:
        # The speakers who are known now; `rank_candidates` looks again.
        return await query.for_speakers(self.database.cache.speakers(self.user_id, query.model))


def split_question(question: str) -> tuple[str, ...]:
    """Return the questions that a question consists of; none where it is one, or more than three.

    The vector of a question of two things is near to the one of which more was said, and so are its words: of the other
    nothing is among the first. Worth 0.2 points on BEAM, where 5 of 179 questions have parts.
    """
    if len(question) > LONGEST_QUESTION or _ONE_QUESTION.search(question):
        return ()
    parts = [part.strip(" ,") for part in _NEXT_QUESTION.split(" ".join(question.split()))]
    if len(parts) < 2:  # as a rule: its words are looked at where it is made ready
        return ()
    asking = tuple(part for part in parts if len(part.split()) >= FEWEST_WORDS and any(terms(part)))
    return asking if 1 < len(asking) <= MOST_PARTS else ()


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
