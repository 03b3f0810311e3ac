"""A question made ready: its terms, and its vector by the embedder that serves the user.

As a rule that is the store's own. Where another has taken its place, the database says so once, and from then on the
process asks that one at once. The vector is that of the embedder whose vectors it is compared with, always.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from memstore.providers import Embedder, Exactly, load_exactly
from memstore.retrieve.parts import parts_of
from memstore.retrieve.rank import Asked
from memstore.retrieve.voice import as_told
from memstore.store import embedders, items
from memstore.store.database import Database, Transaction
from memstore.store.items import Version
from memstore.store.terms import QUESTION, hashed, terms
from memstore.waiting import in_thread

# Of a pasted page the beginning and the end are the question; with every word of 100 KB a recall took ten seconds.
LONGEST_QUERY, MOST_TERMS = 8000, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Asked):
    """A question made ready. `asked` is what was embedded: the text, as those speakers would put it whom it names."""

    asked: str
    embedder: Embedder | None
    model: UUID  # under which the embedder's vectors are kept
    parts: tuple[Question, ...] = ()  # what else it asks, looked for beside it

    @property
    def embedded_by(self) -> str:
        """The name of the embedder, "none" for none."""
        return self.embedder.name if self.embedder else "none"

    async def of(self, speakers: Iterable[str]) -> Question:
        """Give the question with the vector that it has among these speakers."""
        asked = as_told(self.text, speakers)
        if self.embedder is None or not self.text.strip() or (asked == self.asked and self.vector is not None):
            return self
        return replace(self, asked=asked, vector=await in_thread(self.embedder.embed_query, asked))

    def is_for(self, version: Version | None) -> bool:
        """Whether its vector is to be compared with those by which the user is found in this version."""
        there = None if version is None or self.embedder is None else embedders.serving(version.models)
        return there is None or there.id == self.model


@dataclass(frozen=True, slots=True)
class Asker:
    """Who is asked about: a user, and the embedder of the store; `exactly` loads others, where they serve the user."""

    database: Database
    user_id: UUID
    embedder: Embedder | None
    exactly: Exactly = load_exactly

    async def likely(self) -> Embedder | None:
        """Give the embedder that served the user when somebody asked last; the store's own where that is not known."""
        known = None if self.embedder is None else self.database.cache.serving(self.user_id)
        return self.embedder if known is None else await in_thread(self.exactly, *known)

    async def prepared(self, query: str, embedder: Embedder | None) -> Question:
        """Give a question embedded, with no connection held; "" asks for nothing."""
        text = query if len(query) <= LONGEST_QUERY else f"{query[: LONGEST_QUERY // 2]} {query[-LONGEST_QUERY // 2 :]}"
        words = list(terms(text))
        if len(words) > MOST_TERMS:
            words = words[: MOST_TERMS // 2] + words[-MOST_TERMS // 2 :]
        question = Question(
            text,
            None,
            {word: hashed(word, self.user_id) for word in words},
            hashed(QUESTION, self.user_id),
            asked=text,
            embedder=embedder,
            model=embedders.id_of(embedder),
        )
        return await self._embedded(question)

    async def with_parts(self, question: Question) -> Question:
        """Return a question with its parts, embedded, which are looked for beside it."""
        parts = [await self.prepared(part, question.embedder) for part in parts_of(question.text)]
        return replace(question, parts=tuple(parts))

    async def served(self, question: Question, version: Version | None) -> tuple[Question, Version | None]:
        """Give the question as it is compared in a version, or else in the one that there is by then, with that one.

        Raises `EmbedderMismatch` where no setting and no migration says that the user has those vectors.
        """
        while not question.is_for(version):
            assert version is not None
            question = await self._by_who_serves(question, version)
            async with self.database.scope(self.user_id, first=partial(items.version, model=question.model)) as scope:
                version = await items.version(scope, question.model)
        return question, version

    @asynccontextmanager
    async def begun(self, question: Question) -> AsyncIterator[tuple[Transaction, Question, Version | None]]:
        """Open a transaction; give it with the question as the user's vectors have it, and the version of these."""
        while True:
            reading = partial(items.version, model=question.model)
            async with self.database.scope(self.user_id, first=reading) as scope:
                version = await items.version(scope, question.model)
                if question.is_for(version):
                    yield scope, question, version
                    return
            assert version is not None
            question = await self._by_who_serves(question, version)

    async def _by_who_serves(self, question: Question, version: Version) -> Question:
        """Give a question, and what is looked for beside it, as the embedder puts it that serves in a version."""
        model = await embedders.chosen(self.database, version.models, self.embedder)
        self.database.cache.serve(self.user_id, None if model is None else (model.name, model.dimensions))
        embedder = self.embedder if model is None else await in_thread(self.exactly, model.name, model.dimensions)
        every = [
            await self._embedded(replace(one, vector=None, embedder=embedder, model=embedders.id_of(embedder)))
            for one in (question, *question.parts)
        ]
        return replace(every[0], parts=tuple(every[1:]))

    async def _embedded(self, question: Question) -> Question:
        # As a rule those who speak now; `candidates` looks again.
        return await question.of(self.database.cache.tellers(self.user_id, question.model))
