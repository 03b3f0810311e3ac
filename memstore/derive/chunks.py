"""The deriver of chunks: every message becomes one chunk, or several overlapping ones if it is long."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memstore.derive.chunking import split_code_blocks, split_lines, split_text
from memstore.derive.dependencies import Dependencies, DerivedBatch, DeriverTraits
from memstore.language.sentences import sentences
from memstore.models import Chunk, FactColumns, Json, Message, Role, Summary, Tier
from memstore.providers import Vectors
from memstore.store import chunks, messages
from memstore.store.chunks import new_chunk, text_of_chunk
from memstore.store.database import Transaction
from memstore.store.rows import EmbeddingModel, NewChunk, PendingWork, Row


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages to be embedded; `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class ChunkBatch(DerivedBatch):
    chunks: list[NewChunk]


async def find_batch_end(tx: Transaction, work: PendingWork, limit: int) -> int:
    """Return the number of the last message of the next batch."""
    last = min(work.last_seq, work.done_seq + limit)
    # A batch is held in memory, and a message may have megabytes.
    return await messages.last_within(tx, work.conversation_id, work.done_seq + 1, last, 250_000)


async def load_next_messages(tx: Transaction, work: PendingWork, limit: int) -> MessageBatch:
    to_seq = await find_batch_end(tx, work, limit)
    new = await messages.messages(tx, work.conversation_id, from_seq=work.done_seq + 1, to_seq=to_seq)
    return MessageBatch(to_seq, new)


class ChunkDeriver:
    """Makes chunks, terms and vectors of messages."""

    name = "chunks"
    # Enough for the encoder to sort them by length.
    batch_size = 512
    uses_llm = False
    # Without the embedder. A new one holds for new messages; older chunks stay as they are.
    recipe = "chunks/4"

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self._chunker = Chunker(dependencies)

    @property
    def producer(self) -> DeriverTraits:
        """The deriver itself: there is no other way to make chunks."""
        return self

    async def load(self, tx: Transaction, work: PendingWork, limit: int) -> MessageBatch:
        return await load_next_messages(tx, work, limit)

    def compute(self, batches: Sequence[MessageBatch]) -> list[ChunkBatch]:
        """Return chunks with vectors; texts of all conversations go to the encoder together."""
        parts = [
            (place, message, *chunk)
            for place, batch in enumerate(batches)
            for message in batch.messages
            for chunk in self._chunker.chunks(message)
        ]
        results = [ChunkBatch(batch.to_seq, []) for batch in batches]
        vectors = self.dependencies.embed([text for *_, text in parts])
        refused: list[dict[UUID, None]] = [{} for _ in batches]
        for (place, message, chunk, text), vector in zip(parts, vectors, strict=True):
            results[place].chunks.append(new_chunk(message.user_id, chunk, text, vector, message.tags))
            if vector is None and self.dependencies.embedder is not None:
                refused[place][message.id] = None
        return [replace(result, without_vector=tuple(ids)) for result, ids in zip(results, refused, strict=True)]

    async def save(self, tx: Transaction, result: ChunkBatch) -> dict[str, int]:
        return {"chunks": await chunks.add(tx, result.chunks, self.dependencies.model)}


def chunk_of(item: Row, index: int, span: tuple[int, int], conversation: UUID | None = None) -> Chunk:
    """Return a chunk of an item; a fact's is of the conversation that it was derived of."""
    if isinstance(item, Message):
        place = item.conversation_id, item.seq, item.role, item.name or item.role
        return Chunk(item.id, index, Tier.MESSAGES, *place, *span, item.occurred_at)
    if isinstance(item, Summary):
        stretch = item.conversation_id, item.to_seq, None, None
        return Chunk(item.id, index, Tier.SUMMARIES, *stretch, *span, item.occurred_until)
    return Chunk(item.id, index, Tier.FACTS, conversation, None, None, item.subject, *span, item.occurred_at)


async def add_fact_chunk(
    tx: Transaction, fact: FactColumns, conversation: UUID | None, vector: Vectors | None, model: EmbeddingModel | None
) -> None:
    chunk = chunk_of(fact, 0, (0, len(fact.text)), conversation)
    await chunks.add(tx, [new_chunk(tx.user_id, chunk, fact.text, vector)], model)


async def restore_fact_chunk(
    tx: Transaction, fact: FactColumns, conversation: UUID | None, vector: Vectors | None, model: EmbeddingModel | None
) -> None:
    """Let recall find a fact that may have been quarantined until now, and so has no chunk."""
    if not await chunks.has_chunks(tx, fact.id):
        await add_fact_chunk(tx, fact, conversation, vector, model)


class Chunker:
    """Cuts messages into chunks, each with the text to embed: who speaks is part of it (+14 points of recall)."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._limit, self._count = dependencies.max_chunk_tokens, dependencies.count_chunk_tokens

    def chunks(self, message: Message) -> list[tuple[Chunk, str]]:
        """Return a message's chunks, each with the text to embed."""
        text, speaker = message.text or "", message.name or message.role
        return [
            (chunk_of(message, number, span), text_of_chunk(Tier.MESSAGES, speaker, text[slice(*span)]))
            for number, span in enumerate(self._spans(message.role, text, speaker))
        ]

    def _spans(self, role: str, text: str, speaker: str) -> Iterator[tuple[int, int]]:
        limit = max(16, self._limit - self._count(text_of_chunk(Tier.MESSAGES, speaker, "")))
        split = split_lines if role == Role.TOOL else sentences
        # An assistant's code is its answer: apart there would be an eighth more chunks in all.
        for begin, end in split_code_blocks(text) if role == Role.USER else [(0, len(text))]:
            for start, stop in split_text(text[begin:end], limit, self._count, split=split):
                yield begin + start, begin + stop


def document_text(value: Json) -> str:
    """Return the text by which a document is embedded that names none."""
    return json.dumps(value, ensure_ascii=False)
