"""Chunks over all tiers: their terms and vectors, written by derivers and read by recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.errors import ForeignKeyViolation

from memstore._compat import to_thread
from memstore.models import Chunk, ChunkKey, Tier
from memstore.providers import Vectors
from memstore.store import embedding_models
from memstore.store.database import Read, Transaction, read_all, read_one
from memstore.store.errors import ConcurrentUpdate
from memstore.store.rows import EmbeddingModel, NewChunk
from memstore.store.sql import statements
from memstore.store.tokenize import TOKENIZER_VERSION, hash_terms
from memstore.store.user_index import NEIGHBOURS_PER_SIDE, OVERLAP, RECORD, ROLES, TIERS, Rows, UserIndex

SQL = statements("chunks")


async def lock_user(tx: Transaction) -> None:
    """Lock the user's chunks and facts against other writers until the transaction ends."""
    await tx.run(SQL["lock"])


def new_chunk(user_id: UUID, chunk: Chunk, text: str, vector: Vectors | None, tags: Sequence[str] = ()) -> NewChunk:
    """Return a chunk to be stored for the text by which it is to be found, which begins with the speaker.

    Costs time, so not in a transaction.
    """
    return NewChunk(chunk, *hash_terms(text, user_id), vector, tags)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which chunks a recall may see. `since` is inclusive, `until` is not; `as_of` hides what was recorded later.

    Messages and summaries of `hidden_conversations` are left out, and `hidden_facts`.
    """

    tiers: Sequence[Tier] = TIERS
    conversation_id: UUID | None = None
    roles: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    hidden_conversations: Sequence[UUID] = ()
    hidden_facts: Sequence[UUID] = ()

    @property
    def is_unfiltered(self) -> bool:
        return self == Filters(self.tiers) and set(self.tiers) == set(Tier)

    def column_filters(self) -> dict[str, Any]:
        names = ("tiers", "conversation_id", "roles", "since", "until", "hidden_conversations", "hidden_facts")
        return {name: getattr(self, name) for name in names}

    def values(self) -> dict[str, Any]:
        lists = {name: getattr(self, name) for name in ("tiers", "roles", "tags")}
        hidden = {name: list(getattr(self, name)) for name in ("hidden_conversations", "hidden_facts")}
        return asdict(self) | {name: value and list(map(str, value)) for name, value in lists.items()} | hidden


async def add(tx: Transaction, chunks: Sequence[NewChunk], model: EmbeddingModel | None) -> int:
    """Store chunks with terms and vectors of a model; return how many.

    Raises `ConcurrentUpdate` if another worker stored some, and as `embedding_models.lock` does.
    """
    if not chunks:
        return 0
    # First: the lock on the user's row makes the order of numbers that in which chunks are seen by others.
    length = sum(sum(new.frequencies) for new in chunks)
    [last] = await tx.column(SQL["count_chunks"], chunks=len(chunks), length=length)
    await embedding_models.lock(tx, model)
    rows = [_row(new, number) for number, new in enumerate(chunks, last - len(chunks) + 1)]
    if await tx.run_many(SQL["add_text"], rows) != len(chunks):
        raise ConcurrentUpdate
    if model is not None:
        vectors = [(new.chunk.key, new.vector) for new in chunks if new.vector is not None]
        await add_vectors(tx, vectors, model.id)
    return len(chunks)


def _row(new: NewChunk, number: int) -> dict[str, object]:
    # `asdict` copies each value deeply: a third of storing a chunk.
    row: dict[str, object] = {field.name: getattr(new.chunk, field.name) for field in fields(Chunk)}
    row["tier"], row["tags"], row["number"] = new.chunk.tier.value, list(new.tags), number
    for name, numbers in (("terms", new.terms), ("frequencies", new.frequencies)):
        row[name] = _array(numbers)
    row["length"], row["recorded_at"] = sum(new.frequencies), new.recorded_at
    return row


def _array(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def text_of_chunk(tier: Tier | str, speaker: str | None, text: str) -> str:
    """Return the text by which a chunk is found: that of a message begins with who speaks."""
    return f"{speaker or ''}: {text}" if tier == Tier.MESSAGES else text


async def add_vectors(tx: Transaction, vectors: Sequence[tuple[ChunkKey, Vectors]], model: UUID) -> int:
    """Store vectors of chunks that had none; return how many are new. Raises `ConcurrentUpdate` if a chunk is gone."""
    rows = [key._asdict() | {"model_id": model, "embedding": vector} for key, vector in vectors]
    try:
        return await tx.run_many(SQL["add_vector"], rows)
    except ForeignKeyViolation:
        raise ConcurrentUpdate from None


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """Which chunks a user has now, how many and how long in all, and the store's active embedding model.

    Chunks up to number `posted_up_to` are in postings, for users who have those.
    """

    version: str
    chunks: int
    chunk_length: int
    posted_up_to: int
    active_model: UUID | None


def index_version(model: UUID) -> Read[IndexVersion | None]:
    """Return the read of the version of a user's chunks; None for a user without chunks."""
    return read_one(SQL["version"], IndexVersion, model_id=model)


async def read_index(tx: Transaction, model: UUID, version: str) -> UserIndex | None:
    """Return the user's chunks and their vectors of a model, of this version or a later one; None if there are none."""
    kept = tx.cache.get(tx.user_id, model)
    if kept is not None and kept.version == version:
        return kept
    index = kept and await _read(tx, model, kept)
    index = index or await _read(tx, model, None)
    if index is not None:
        tx.cache.put(tx.user_id, model, index)
    return index


async def _read(tx: Transaction, model: UUID, kept: UserIndex | None) -> UserIndex | None:
    since = datetime.min.replace(tzinfo=UTC) if kept is None else kept.newest - OVERLAP
    values = {"model_id": model, "since": since, "tiers": [*TIERS], "roles": [*ROLES]}
    rows = await tx.binary(SQL["arrays"], **values)
    if not rows or rows[0][4] is None:  # nobody is there, or nothing
        return None
    version, chunks, digest, newest, *sent = rows[0]
    index = await to_thread(_unpack, version, newest, *sent)
    if kept is None:
        return index
    # Older chunks were given vectors meanwhile.
    if kept.version.partition("/")[2] != version.partition("/")[2]:
        return None
    index = await to_thread(kept.extend, index)
    return index if len(index) == chunks and index.digest == digest else None


async def read_neighbourhood(
    tx: Transaction, model: UUID, keys: Sequence[ChunkKey], numbers: Sequence[int], as_of: datetime | None
) -> tuple[UserIndex, Rows] | None:
    """Return some chunks, by name or by number, with their neighbours, as arrays; None where nothing is found.

    With it come how many steps each row is from the nearest chunk asked for. Rows up to `NEIGHBOURS_PER_SIDE`
    steps away have all of their own neighbours in the arrays, the others not.
    """
    names = {"item_ids": [key.item_id for key in keys], "chunks": [key.chunk_index for key in keys]}
    values = {"numbers": list(numbers), "tiers": [*TIERS], "roles": [*ROLES], "far": 2 * NEIGHBOURS_PER_SIDE}
    rows = await tx.binary(SQL["neighbourhood"], model_id=model, as_of=as_of, **names, **values)
    if not rows or not rows[0][0]:
        return None
    _, newest, *sent, steps = rows[0]
    return await to_thread(_unpack, "", newest, *sent), np.frombuffer(steps, ">i2").astype(np.intp)


async def filter_chunks(
    tx: Transaction, filters: Filters, *, keys: Sequence[ChunkKey] = (), numbers: Sequence[int] = ()
) -> list[tuple[int, ChunkKey]]:
    """Return number and name of those of some chunks, named or numbered, that pass a filter; in any order."""
    names = {"item_ids": [key.item_id for key in keys], "chunks": [key.chunk_index for key in keys]}
    rows = await tx.tuples(SQL["shown"], **names, numbers=list(numbers), **filters.values())
    return [(number, ChunkKey(item_id, index)) for number, item_id, index in rows]


async def nearest(tx: Transaction, query: Vectors, model: UUID, filters: Filters, limit: int) -> dict[ChunkKey, float]:
    """Return the cosines of the chunks nearest to a vector of length 1: exact, over all that pass the filter."""
    values = {"query": query, "model_id": model, "limit": limit}
    if filters.is_unfiltered:
        rows = await tx.tuples(SQL["nearest"], **values)
    else:
        rows = await tx.tuples(SQL["nearest_filtered"], **values, **filters.values())
    return {ChunkKey(item_id, index): score for item_id, index, score in rows}


async def corpus_as_of(tx: Transaction, as_of: datetime) -> tuple[int, int]:
    """Return the number of chunks at a moment, and their length in all."""
    (row,) = await tx.tuples(SQL["corpus_as_of"], as_of=as_of)
    return row[0], row[1]


async def items_with_tags(tx: Transaction, tags: Sequence[str]) -> list[UUID]:
    return await tx.column(SQL["tagged"], tags=list(tags))


async def latest(tx: Transaction, filters: Filters, limit: int) -> list[ChunkKey]:
    return await tx.all(SQL["latest"], ChunkKey, limit=limit, **filters.values())


async def users_of_other_tokenizer(tx: Transaction, only: UUID | None) -> list[UUID]:
    """Return the users, or `only` one, whose chunks have terms by an earlier tokenizer; in the operator's scope."""
    return await tx.column(SQL["other_tokenizer"], tokenizer=TOKENIZER_VERSION, only=only)


class TermsOfChunk(NamedTuple):
    """A chunk with its terms and the text that they are of, which begins with the speaker of a message."""

    number: int
    tier: str
    speaker: str | None
    length: int
    terms: list[int]
    text: str


async def terms_to_renew(tx: Transaction, after: int, limit: int) -> list[TermsOfChunk]:
    """Return the user's chunks after a number, if an earlier tokenizer made their terms."""
    return await tx.all(SQL["terms_to_renew"], TermsOfChunk, tokenizer=TOKENIZER_VERSION, after=after, limit=limit)


def hash_anew(user_id: UUID, chunks: Sequence[TermsOfChunk]) -> list[tuple[int, int, list[int], list[int]]]:
    """Return number, change of length, terms and frequencies of those chunks whose terms are others by now. Pure."""
    renewed = []
    for chunk in chunks:
        terms, frequencies = hash_terms(text_of_chunk(chunk.tier, chunk.speaker, chunk.text), user_id)
        if terms != chunk.terms:
            renewed.append((chunk.number, sum(frequencies) - chunk.length, terms, frequencies))
    return renewed


async def renew_terms(tx: Transaction, renewed: Sequence[tuple[int, int, list[int], list[int]]]) -> None:
    await tx.run(SQL["count_chunks"], chunks=0, length=sum(change for _, change, *_ in renewed))
    async with tx.connection.pipeline():
        for number, _, terms, counts in renewed:
            columns = {"terms": _array(terms), "frequencies": _array(counts), "length": sum(counts)}
            await tx.run(SQL["renew_terms"], number=number, **columns)


async def finish_terms(tx: Transaction) -> None:
    """Note that this tokenizer made all terms of the user's chunks."""
    await tx.run(SQL["terms_renewed"], tokenizer=TOKENIZER_VERSION)


async def has_chunks(tx: Transaction, item: UUID) -> bool:
    return bool(await tx.tuples(SQL["has_chunks"], item_id=item))


async def remove(tx: Transaction, items: Iterable[UUID]) -> int:
    """Remove the chunks and vectors of items that are gone, and count them off; return how many chunks."""
    lengths = await tx.column(SQL["remove_chunks"], item_ids=list(items))
    if lengths:
        await tx.run(SQL["count_chunks"], chunks=-len(lengths), length=-sum(lengths))
    return len(lengths)


@dataclass(frozen=True, slots=True)
class ItemText:
    """The whole text of an item, the messages from which a summary or a fact was made, and columns of a fact.

    A summary that is marked `is_outdated` where a fact from it is superseded.
    """

    id: UUID
    text: str | None
    sources: Sequence[UUID] = ()
    valid_to: datetime | None = None
    importance: str | None = None
    is_outdated: bool = False
    subject: str = ""
    attribute: str | None = None
    value: str | None = None


def read_texts(
    chunks: Sequence[Chunk], as_of: datetime | None, *, mark_outdated: bool = False
) -> list[Read[list[ItemText]]]:
    """Return the reads of the texts of the items of chunks, without removed items and facts that were not active.

    With `mark_outdated` summaries say whether a fact from their messages is superseded.
    """
    statements = {
        Tier.MESSAGES: SQL["messages_said"],
        Tier.SUMMARIES: SQL["summaries_marked" if mark_outdated else "summaries_said"],
        Tier.FACTS: SQL["facts_said"],
    }
    return [
        read_all(statement, ItemText, item_ids=wanted, as_of=as_of)
        for tier, statement in statements.items()
        if (wanted := [chunk.item_id for chunk in chunks if chunk.tier == tier])
    ]


async def load_texts(tx: Transaction, chunks: Sequence[Chunk], as_of: datetime | None) -> dict[UUID, ItemText]:
    """Return what the items of chunks say; items that are gone, or facts that were not active, are left out."""
    reads = read_texts(chunks, as_of)
    await tx.read_together(reads)
    return {text.id: text for read in reads for text in tx.result(read)}


async def vector_of(tx: Transaction, item: UUID) -> tuple[UUID | None, Vectors | None]:
    """Return the model and the vector of an item's first chunk; None where there is none."""
    rows = await tx.tuples(SQL["vector_of"], item_id=item)
    return next(((model, read_vectors(sent, 1)[0]) for model, sent in rows), (None, None))


def read_vectors(sent: bytes, count: int) -> Vectors:
    """Return vectors of one length as `vector_send` gives them, one after the other."""
    return np.ascontiguousarray(np.frombuffer(sent, ">f4").reshape(count, -1)[:, 1:], dtype=np.float32)


async def load_sources(
    tx: Transaction, summaries: Sequence[UUID], facts: Sequence[UUID]
) -> dict[UUID, tuple[UUID, ...]]:
    rows = []
    for statement, items in ((SQL["summary_sources"], summaries), (SQL["fact_sources"], facts)):
        rows += await tx.tuples(statement, item_ids=list(items)) if items else []
    return {id: tuple(sources) for id, sources in rows}


def _unpack(
    version: str,
    newest: datetime,
    records: bytes,
    speakers: Sequence[str | None],
    terms: bytes,
    frequencies: bytes,
    vectors: bytes,
) -> UserIndex:
    chunks = np.frombuffer(records, RECORD)
    counts = chunks["terms"].astype(np.int64)
    once: dict[str | None, str | None] = {}
    return UserIndex(
        version,
        newest,
        chunks,
        [once.setdefault(speaker, speaker) for speaker in speakers],
        _elements(terms, counts, ">i8"),
        _elements(frequencies, counts, ">i2"),
        (read_vectors(vectors, int(np.count_nonzero(chunks["embedded"]))),) if vectors else (),
    )


def _elements(sent: bytes, counts: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """Return the elements of arrays of smallint or bigint, one array after the other.

    `array_send` writes 12 bytes, for each dimension (an empty array has none) 8, for each element its size in 4 bytes
    and itself. All is even: seen as numbers of 2 bytes, an element's come at a known place.
    """
    words, size = np.frombuffer(sent, ">u2"), np.dtype(kind).itemsize // 2
    heads = np.where(counts > 0, 10, 6)
    ends = np.cumsum(heads + counts * (2 + size))
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(ends - counts * (2 + size), counts) + within * (2 + size) + 2
    elements: NDArray[np.int64] = words[first[:, None] + np.arange(size)].copy().view(kind).ravel().astype(np.int64)
    return elements
