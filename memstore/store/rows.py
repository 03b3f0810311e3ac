"""Rows that the async code and its blocking twin share: embedding models, pending work, and rows of exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import UUID

from sqlmodel import SQLModel

from memstore import ids
from memstore.models import Chunk, Conversation, FactColumns, Json, Message, Summary
from memstore.providers import Embedder, Vectors

Row = Message | Summary | FactColumns
# Rows of other tables by the name of the list (`ExportedList`) that they are in a line of an export.
Lists = dict[str, list[Json]]
M = TypeVar("M", bound=SQLModel)


def row_builder(model: type[M]) -> Callable[..., M]:
    """Return a function that builds a model of all its columns, unchecked, in a fifth of `model_construct`'s time."""
    names = set(model.model_fields)

    def build(**values: Any) -> M:
        made = object.__new__(model)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", names)
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made

    return build


ModelState: TypeAlias = Literal["serving", "building", "retired"]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model of the store."""

    id: UUID
    name: str
    dimensions: int
    state: ModelState = "serving"

    @classmethod
    def of(cls, embedder: Embedder) -> EmbeddingModel:
        return cls(model_id(embedder), embedder.name, embedder.dimensions)


def model_id(embedder: Embedder | None) -> UUID:
    """Return the id of the vectors by an embedder; an id of its own stands for none."""
    return ids.model_id(*(("none", 0) if embedder is None else (embedder.name, embedder.dimensions)))


def id_of(model: EmbeddingModel | None) -> UUID | None:
    return None if model is None else model.id


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, the embedder that made the vectors (None where there are none), and about how many messages there are."""

    name: str
    settings: Json
    created_at: datetime
    model_id: UUID | None
    embedder: str | None
    dimensions: int | None
    messages: int


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation, the position and recipe of each deriver in it, and the lists of its line in an export."""

    conversation: Conversation
    watermarks: dict[str, tuple[int, str | None]]
    lists: Lists


@dataclass(frozen=True, slots=True)
class ChunkRow:
    chunk: Chunk
    recorded_at: datetime
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be stored: hashes of its terms, how often it has each, and its vector where there is an embedder.

    `recorded_at` is None for now.
    """

    chunk: Chunk
    terms: list[int]
    frequencies: list[int]
    vector: Vectors | None
    tags: Sequence[str] = ()
    recorded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A message, summary or fact with its chunks as columns, and the lists of its line in an export."""

    row: Row
    chunks: list[Json]
    lists: Lists


@dataclass(frozen=True, slots=True)
class PendingWork:
    """Messages done_seq + 1 … last_seq of a conversation wait for a deriver."""

    user_id: UUID
    conversation_id: UUID
    deriver: str
    done_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class StaleWork(PendingWork):
    """Messages 1 … done_seq were derived by this recipe, which is not the deriver's own; None for several."""

    recipe: str | None


@dataclass(frozen=True, slots=True)
class LaggingWork(PendingWork):
    """Pending work, and its owner: a backfill, in a state, or nobody. `in_line`: it is its turn."""

    backfill: UUID | None
    state: str | None
    in_line: bool
