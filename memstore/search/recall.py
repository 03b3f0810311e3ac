"""From a question to its hits: the query, its candidates, and what a reranker makes of the best of them.

A query has the question's text, its terms, and its vector by the store's active embedding model. A vector is compared
only with vectors of the same model.

The chunks of most users are held as arrays in this process, and all are ranked. Of a user with too many of them the
database's indexes find the best by words and by vector. Their neighbours may be relevant too ("Yes, in Porto!" because
of the question before it), so they come as arrays with their neighbours, and the same code ranks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, pairwise, takewhile
from uuid import UUID

import numpy as np

from memstore._compat import to_thread
from memstore.models import ChunkKey, Hit, Scope, Tier
from memstore.providers import (
    Embedder,
    Reranker,
    Scores,
    SelectiveEmbedder,
    Vectors,
    check_numbers,
    embed_query,
)
from memstore.search.outdated import Changes, asks_what_holds, lead_newest, mark_outdated
from memstore.search.questions import asks_for_now, without_request
from memstore.search.ranking import (
    EMPTY_RANKING,
    NEWEST,
    QueryFeatures,
    RankedChunk,
    Ranking,
    best_of_each,
    rank,
)
from memstore.search.signals import BM25_B, Corpus, idf, saturate
from memstore.store import chunks, facts, postings, vector_indexes
from memstore.store.chunks import Filters, IndexVersion, ItemText
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import ModelChanged
from memstore.store.postings import Matches
from memstore.store.rows import model_id
from memstore.store.tokenize import TEXT_TERMS, hash_term, is_english, terms
from memstore.store.user_index import NEIGHBOURS_PER_SIDE, Rows, UserIndex

# Of a pasted page the beginning and the end are the question; with every word of 100 KB a recall took ten seconds.
LONGEST_QUERY, MOST_TERMS = 8000, 64
CONTEXT_DEPTH = 200
RERANKER_PART = "reranker"
# Hits that are read. Contexts of 2,000 tokens hold fewer, and a small cross-encoder (6 layers of 384) takes 20 ms of a
# processor for each, of 47 tokens. Others keep their places behind them, as the reranker's part is never below 0.
RERANKED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(QueryFeatures):
    """An embedded question. `embedded_text` is the text in the first person of the speakers whom it names.

    The embedder's vectors are stored under `model`. `corpus` is that of several owners, where they are asked together.
    """

    embedded_text: str
    embedder: Embedder | None
    model: UUID
    corpus: Corpus | None = None

    @property
    def embedded_by(self) -> str:
        return self.embedder.name if self.embedder else "none"

    def for_owner(self, owner: UUID) -> Query:
        """Return the query as it is asked of what another owner has stored: terms are hashed for each."""
        hashed = {word: hash_term(word, owner) for word in self.terms}
        return replace(self, terms=hashed, text_terms={term: hash_term(term, owner) for term in TEXT_TERMS})

    async def for_speakers(self, speakers: Iterable[str]) -> Query:
        """Return the query with the vector that it has among these speakers."""
        text = to_first_person(without_request(self.text), speakers)
        if self.embedder is None or not self.text.strip() or (text == self.embedded_text and self.vector is not None):
            return self
        vector = await to_thread(embed_query, self.embedder, text)
        is_known = text.isascii() or not isinstance(self.embedder, SelectiveEmbedder) or self.embedder.knows(text)
        return replace(self, embedded_text=text, vector=vector, has_known_words=is_known)


async def build_query(database: Database, user_id: UUID, embedder: Embedder | None, question: str) -> Query:
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
        {word: hash_term(word, user_id) for word in words},
        {term: hash_term(term, user_id) for term in TEXT_TERMS},
        embedded_text=text,
        embedder=embedder,
        model=model_id(embedder),
    )
    # The speakers who are known now; `rank_candidates` looks again.
    return await query.for_speakers(database.cache.speakers(user_id, query.model))


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


@dataclass(frozen=True, slots=True)
class Recalled:
    """Hits, the best first, and the best scores by words, of which their parts are shares."""

    hits: list[Hit]
    best_lexical: tuple[float, float] = (0.0, 0.0)


async def recall(
    database: Database,
    user_id: UUID,
    query: Query,
    *,
    filters: Filters,
    limit: int,
    min_score: float | None,
    marked: bool = True,
    scope: Scope | None = None,
) -> Recalled:
    """Return the best items for a question, each once, the best first.

    Where they are `marked`, an outdated one tells the facts in its place; a question about now ranks it behind them.
    Raises `ModelChanged` where the embedder is not the active one.
    """
    read_version = chunks.index_version(query.model)
    async with database.user_transaction(user_id, [read_version]) as tx:
        version, depth = tx.result(read_version), max(CONTEXT_DEPTH // 2, 4 * limit)
        filters = await in_scope(tx, filters, scope)
        ranking = await rank_candidates(tx, query, filters, depth, version=version)
        candidates = best_of_each(ranking.of_tiers(*Tier))
        if min_score is not None:
            candidates = takewhile(lambda candidate: candidate.score >= min_score, candidates)
        looked_at = max(limit, 10) if marked else limit
        hits, ranked_chunks, texts, said = (
            list[Hit](),
            list[RankedChunk](),
            dict[UUID, ItemText](),
            list[tuple[UUID, UUID, bool]](),
        )
        while len(hits) < looked_at and (page := list(islice(candidates, looked_at))):
            messages = [
                candidate.chunk.item_id for candidate in page if candidate.chunk.tier == Tier.MESSAGES and marked
            ]
            found = [candidate.chunk for candidate in page]
            read_texts = chunks.read_texts(found, filters.as_of, mark_outdated=marked)
            read_said = facts.said_facts(messages, filters.as_of, holding=False)
            await tx.read_together([*read_texts, read_said])
            texts |= {item.id: item for read in read_texts for item in tx.result(read)}
            hits += [
                make_hit(candidate, texts[candidate.chunk.item_id])
                for candidate in page
                if candidate.chunk.item_id in texts
            ]
            ranked_chunks += page
            said += tx.result(read_said)
        hits = hits[:looked_at]
        if marked and filters.until is None and asks_for_now(query.text):
            hits = lead_newest(hits, query.text)
        if of_summaries := [source for hit in hits if texts[hit.id].is_outdated for source in hit.sources]:
            said += await tx.get(facts.said_facts(of_summaries, filters.as_of, holding=False))
        changes = await find_changes(tx, ranked_chunks, texts, said, filters) if marked else None
        if changes is None or not changes.facts:
            return Recalled(hits[:limit], ranking.best_lexical)
        sources = await chunks.load_sources(tx, [], sorted(changes.facts))
    rank_behind = asks_what_holds(query.text) and filters.until is None
    told = [hit for hit in hits if hit.tier == Tier.FACTS]
    hits = mark_outdated(hits, told, changes, sources=sources, rank_behind=rank_behind)[:limit]
    return Recalled(hits, ranking.best_lexical)


async def in_scope(
    tx: Transaction, filters: Filters, scope: Scope | None, own_conversation: UUID | None = None
) -> Filters:
    """Return the filters that leave out what is of other scopes, too, but for the turns of one's own conversation."""
    if scope is None:
        return filters
    hidden = await facts.out_of_scope(tx, scope, filters.as_of)
    conversations = tuple(id for id in hidden.conversations if id != own_conversation)
    return replace(filters, hidden_conversations=conversations, hidden_facts=tuple(hidden.facts))


async def find_changes(
    tx: Transaction,
    candidates: Iterable[RankedChunk],
    texts: Mapping[UUID, ItemText],
    said: Sequence[tuple[UUID, UUID, bool]],
    filters: Filters,
) -> Changes:
    """Return the changes of facts that messages `said`, and of the candidates among facts; those with `texts` hold.

    Each that was `said` is a message with a fact, and whether this holds.
    """
    candidate_chunks = (candidate.chunk for candidate in candidates)
    gone = (chunk.item_id for chunk in candidate_chunks if chunk.tier == Tier.FACTS and chunk.item_id not in texts)
    first = list(dict.fromkeys([*gone, *(fact for _, fact, holds in said if not holds)]))
    later = await facts.successors(tx, first, filters.as_of) if first else []
    changes = Changes.of([(message, fact) for message, fact, _ in said], first, later)
    return changes.restrict(changes.facts - set(filters.hidden_facts)) if filters.hidden_facts else changes


async def to_hits(tx: Transaction, chosen: Sequence[RankedChunk], as_of: datetime | None) -> list[Hit]:
    """Return hits for candidates, with their texts and sources, without those that were removed meanwhile."""
    said = await chunks.load_texts(tx, [candidate.chunk for candidate in chosen], as_of)
    return [
        make_hit(candidate, said[candidate.chunk.item_id]) for candidate in chosen if candidate.chunk.item_id in said
    ]


def make_hit(candidate: RankedChunk, said: ItemText) -> Hit:
    """Return the hit that a candidate becomes."""
    chunk = candidate.chunk
    return Hit(
        tier=Tier(chunk.tier),
        id=chunk.item_id,
        text=(said.text or "")[chunk.start : chunk.stop],
        score=candidate.score,
        parts=candidate.parts,
        sources=(chunk.item_id,) if chunk.tier == Tier.MESSAGES else tuple(said.sources),
        occurred_at=chunk.occurred_at,
        conversation_id=chunk.conversation_id,
        seq=chunk.seq,
        role=chunk.role,
        speaker=chunk.speaker,
        start=chunk.start,
        valid_to=said.valid_to,
        importance=said.importance,
    )


async def rank_candidates(
    tx: Transaction, query: Query, filters: Filters, depth: int = CONTEXT_DEPTH, *, version: IndexVersion | None
) -> Ranking:
    """Rank the best `depth` chunks of each tier that the filters let through.

    `version` is that of the user's chunks that was read before; None where the user has none. Raises `ModelChanged`
    where another model is active in it than the query's.
    """
    if version is None:
        tx.cache.forget(tx.user_id)
        return EMPTY_RANKING
    if query.embedder is not None and version.active_model not in (None, query.model):
        raise ModelChanged
    if version.chunks > tx.cache.max_chunks:
        return await _rank_by_indexes(tx, query, version, filters, depth)
    index = await chunks.read_index(tx, query.model, version.version)
    if index is None:
        return EMPTY_RANKING
    query = await query.for_speakers(index.speakers_of_messages)
    tagged = None if filters.tags is None else await chunks.items_with_tags(tx, filters.tags)
    return await to_thread(_rank_index, index, version, query, filters, depth, tagged)


def _rank_index(
    index: UserIndex,
    version: IndexVersion,
    query: Query,
    filters: Filters,
    depth: int,
    tagged: Sequence[UUID] | None,
) -> Ranking:
    corpus = query.corpus or Corpus(version.chunks, version.chunk_length)
    if filters.as_of is not None:
        index = index.as_of(filters.as_of)
        corpus = query.corpus or Corpus(len(index), int(index.lengths.sum()))
    allowed = None if filters.is_unfiltered else index.filter(**filters.column_filters())
    if allowed is not None and tagged is not None:
        allowed = np.intersect1d(allowed, index.rows_of(tagged))
    return rank(index, query, corpus, depth, allowed)


async def _rank_by_indexes(
    tx: Transaction, query: Query, version: IndexVersion, filters: Filters, depth: int
) -> Ranking:
    index_candidates = await search_indexes(tx, query, version, filters, depth)
    if index_candidates is None:
        return EMPTY_RANKING
    again = await query.for_speakers(
        tx.cache.add_speakers(tx.user_id, query.model, index_candidates.index.speakers_of_messages)
    )
    # Another query: it names a speaker who is found for the first time.
    if again is not query:
        index_candidates = await search_indexes(tx, again, version, filters, depth) or index_candidates
    return await to_thread(_rank_found, index_candidates, again, filters, depth)


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """What the indexes found, with neighbours: rows, how far each is from what was found, and the corpus."""

    index: UserIndex
    distances: Rows
    corpus: Corpus


async def search_indexes(
    tx: Transaction, query: Query, version: IndexVersion, filters: Filters, depth: int
) -> IndexCandidates | None:
    """Return what the indexes find; None where there is nothing."""
    size, length = version.chunks, version.chunk_length
    if filters.as_of is not None:
        size, length = await chunks.corpus_as_of(tx, filters.as_of)
    matches = await postings.matches(tx, list(query.terms.values()), version.posted_up_to, filters.as_of)
    corpus = Corpus(size, length, {term: matches.holding[number] for term, number in query.terms.items()})
    # Before their neighbours are added; others rank below 200.
    count = max(100, depth // 2)
    numbers = await _filter_numbers(tx, filters, await to_thread(best_by_words, matches, corpus), count)
    if query.vector is None:
        keys = await chunks.latest(tx, filters, NEWEST)
    else:
        keys = await _nearest(tx, query.vector, query.model, filters, count)
    neighbourhood = await chunks.read_neighbourhood(tx, query.model, keys, numbers, filters.as_of)
    return None if neighbourhood is None else IndexCandidates(*neighbourhood, corpus)


def _rank_found(index_candidates: IndexCandidates, query: Query, filters: Filters, depth: int) -> Ranking:
    # Neighbours' tags are not known.
    reach = 0 if filters.tags is not None else NEIGHBOURS_PER_SIDE
    allowed = np.flatnonzero(index_candidates.distances <= reach)
    if not filters.is_unfiltered:
        allowed = np.intersect1d(allowed, index_candidates.index.filter(**filters.column_filters()))
    return rank(index_candidates.index, query, index_candidates.corpus, depth, allowed)


async def _filter_numbers(tx: Transaction, filters: Filters, numbers: Rows, count: int) -> list[int]:
    ordered: list[int] = numbers.tolist()
    if filters.is_unfiltered:
        return ordered[:count]
    allowed: list[int] = []
    for start, stop in pairwise((0, 1000, 10_000, 100_000, len(ordered))):
        batch = ordered[start:stop]
        if batch and len(allowed) < count:
            passing = {number for number, _ in await chunks.filter_chunks(tx, filters, numbers=batch)}
            allowed += [number for number in batch if number in passing]
    return allowed[:count]


async def _nearest(tx: Transaction, query: Vectors, model: UUID, filters: Filters, count: int) -> list[ChunkKey]:
    """Return the chunks nearest to a vector: by the index where there is one that finds enough allowed ones."""
    if await vector_indexes.is_ready(tx, model):
        if filters.is_unfiltered:
            return await vector_indexes.nearest(tx, query, model, count)
        # Enough for filters that let a tenth through.
        near = await vector_indexes.nearest(tx, query, model, 1000)
        passing = {key for _, key in await chunks.filter_chunks(tx, filters, keys=near)}
        if len(passing) >= count:
            return [key for key in near if key in passing][:count]
    return list(await chunks.nearest(tx, query, model, filters, count))


def best_by_words(matches: Matches, corpus: Corpus) -> Rows:
    """Return the numbers of chunks by BM25, the highest first, by the terms whose holders are known. Pure."""
    term_postings = [(matches.holding[term], posting) for term, posting in matches.postings.items() if len(posting)]
    if not term_postings:
        return np.empty(0, dtype=np.intp)
    added = [
        idf(holding, corpus.chunks) * saturate(posting.counts, posting.lengths, corpus.mean_length, BM25_B)
        for holding, posting in term_postings
    ]
    scores = np.bincount(np.concatenate([posting.numbers for _, posting in term_postings]), np.concatenate(added))
    numbers = np.flatnonzero(scores)
    return numbers[np.lexsort((-numbers, -scores[numbers]))]


def rerank(reranker: Reranker, question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, which come the best first, in the order of both scores, each with one more part.

    The reranker's scores are of a scale of its own: they are spread over as much as ours differ among what was read, so
    that both count the same. Raises `ProviderError` where it gives something else than a number for each.
    """
    read = hits[:RERANKED]
    if not read:
        return []
    texts = [f"{hit.speaker}: {hit.text}" if hit.speaker else hit.text for hit in read]  # as they are embedded
    scores = _score_texts(reranker, question, texts).tolist()
    ours = [hit.score for hit in read]
    # Where we cannot tell them apart, it decides.
    spread = float(max(ours) - min(ours)) or 1.0
    lowest, range_ = min(scores), max(scores) - min(scores) or 1.0
    shares = [(score - lowest) / range_ for score in scores]
    reranked = [_with_part(hit, round(spread * share, 6)) for hit, share in zip(read, shares, strict=True)]
    return [*sorted(reranked, key=lambda hit: -hit.score), *hits[RERANKED:]]


def _score_texts(reranker: Reranker, question: str, texts: Sequence[str]) -> Scores:
    scores = reranker.scores(question, texts)
    advice = "Mend it, or set MEMSTORE_RERANKER=none."
    return check_numbers(f"The reranker {reranker.name!r}", scores, (len(texts),), advice).astype(np.float64)


def _with_part(hit: Hit, part: float) -> Hit:
    return replace(hit, score=round(hit.score + part, 6), parts={**hit.parts, RERANKER_PART: part})
