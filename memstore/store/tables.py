"""The tables, one class to each: what Alembic compares with the migrated database.

`user_id` is the first column of every primary, unique and foreign key, so that the same tables work on one node and
distributed by user. Statements do not go through these classes: `sql/*.sql` has them. Nobody but the migrations and the
tests imports this module, so that rows are plain objects without an object-relational mapper behind them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    DOUBLE_PRECISION,
    BigInteger,
    Date,
    ForeignKeyConstraint,
    Index,
    Integer,
    Interval,
    LargeBinary,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from memstore.models import (
    Conversation,
    DeadLetter,
    FactColumns,
    Json,
    Message,
    Summary,
    Time,
    TokenCountErrors,
    column,
)


def _owned(*columns: str, by: str, key: Iterable[str] = ("user_id", "id")) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(("user_id", *columns), [f"{by}.{name}" for name in key], ondelete="CASCADE")


class Owned(SQLModel):
    """A row of a user."""

    user_id: UUID = Field(primary_key=True)


class OwnedWithId(Owned):
    """A row of a user, known by an id."""

    id: UUID = Field(primary_key=True)


def _key(kind: Any) -> Any:
    return Field(sa_type=kind, primary_key=True, sa_column_kwargs={"autoincrement": False})


class User(Owned, table=True):
    """The owner of memories; the unit of isolation and of distribution."""

    __tablename__ = "users"

    name: str = column(Text)
    units: int = column(BigInteger, default="0")
    unit_length: int = column(BigInteger, default="0")
    last_unit: int = column(BigInteger, default="0", description="the highest number that a unit was given")
    posted: int = column(BigInteger, default="0", description="units up to this number are in term_postings")
    settings: Json = column(JSONB, default="'{}'")
    created_at: datetime = column(Time, default="now()")
    erasures: int = column(BigInteger, default="0", description="how often something of the user was erased")


class ConversationRecord(Conversation, table=True):
    """Conversations of a user."""

    __tablename__ = "conversations"
    __table_args__ = (_owned(by="users", key=("user_id",)),)


class MessageRecord(Message, table=True):
    """The recent tier."""

    __tablename__ = "messages"
    __table_args__ = (
        _owned("conversation_id", by="conversations"),
        UniqueConstraint("user_id", "id", name="messages_id"),
    )


class SummaryRecord(Summary, table=True):
    """The mid-term tier."""

    __tablename__ = "summaries"
    __table_args__ = (
        _owned("conversation_id", by="conversations"),
        UniqueConstraint("user_id", "conversation_id", "level", "from_seq", "to_seq", "recipe", name="summaries_range"),
    )


class FactRecord(FactColumns, table=True):
    """The long-term tier."""

    __tablename__ = "facts"
    __table_args__ = (
        _owned(by="users", key=("user_id",)),
        Index("facts_by_state", "user_id", "state", "occurred_at"),
        Index("facts_by_slot", "user_id", "subject", "attribute", postgresql_where=text("attribute IS NOT NULL")),
        Index("facts_by_value", "user_id", text("lower(value)"), postgresql_where=text("value IS NOT NULL")),
    )


class FactSource(Owned, table=True):
    """A message that says a fact."""

    __tablename__ = "fact_sources"
    __table_args__ = (
        _owned("fact_id", by="facts"),
        _owned("message_id", by="messages"),
        Index("fact_sources_by_message", "user_id", "message_id"),
    )

    fact_id: UUID = Field(primary_key=True)
    message_id: UUID = Field(primary_key=True)
    start: int | None = column(BigInteger, nullable=True, description="where in the message it is said, in characters")
    stop: int | None = column(BigInteger, nullable=True)
    trust: int = column(SmallInteger, default="2", description="3 by hand, 2 a person, 1 an assistant, 0 a tool")
    recorded_at: datetime = column(Time, default="now()")


class FactChangeRow(OwnedWithId, table=True):
    """What was done to a fact, with the columns before and after."""

    __tablename__ = "fact_changes"
    __table_args__ = (
        _owned("fact_id", by="facts"),
        Index("fact_changes_by_fact", "user_id", "fact_id", "recorded_at"),
        Index("fact_changes_by_other", "user_id", "other_id", postgresql_where=text("other_id IS NOT NULL")),
    )

    fact_id: UUID
    action: str = column(Text)
    other_id: UUID | None = None
    before: Json = column(JSONB, default="'{}'")
    after: Json = column(JSONB, default="'{}'")
    actor: str = column(Text)
    undoes: UUID | None = None
    recorded_at: datetime = column(Time, default="clock_timestamp()")


class ItemTextRow(Owned, table=True):
    """A unit of recall, a chunk of an item: what the lexical leg scans. Narrow, because every recall reads it."""

    __tablename__ = "item_text"
    __table_args__ = (
        _owned(by="users", key=("user_id",)),
        Index("item_text_recent", "user_id", "occurred_at"),
        Index("item_text_by_number", "user_id", "number"),
        Index("item_text_in_conversation", "user_id", "conversation_id", "role", "seq", "chunk"),
    )

    item_id: UUID = Field(primary_key=True)
    chunk: int = _key(Integer)
    tier: str = column(Text)
    conversation_id: UUID | None = None
    seq: int | None = column(BigInteger, nullable=True)
    role: str | None = column(Text, nullable=True)
    speaker: str | None = column(Text, nullable=True)
    tags: list[str] = column(ARRAY(Text), default="'{}'")
    start: int = column(BigInteger, description="offset of the unit in the item's text, in characters")
    stop: int = column(BigInteger)
    length: int = column(BigInteger, description="terms in the unit, repeated ones too")
    terms: list[int] = column(ARRAY(BigInteger), description="hashes of the terms, keyed with the user's id")
    frequencies: list[int] = column(ARRAY(SmallInteger))
    occurred_at: datetime = column(Time)
    recorded_at: datetime = column(Time, default="now()")
    number: int = column(BigInteger, description="counts a user's units as they come")


class TermPostings(Owned, table=True):
    """Which units have a term, of users with very many: a row for each run of units, packed by `postings`."""

    __tablename__ = "term_postings"
    __table_args__ = (_owned(by="users", key=("user_id",)),)

    term: int = _key(BigInteger)
    first: int = _key(BigInteger)
    holding: int = column(Integer)
    units: bytes = column(LargeBinary)


class EmbeddingModel(OwnedWithId, table=True):
    """An embedder that makes vectors of this user, or made some; one serves."""

    __tablename__ = "embedding_models"
    __table_args__ = (
        _owned(by="users", key=("user_id",)),
        Index("embedding_models_serving", "user_id", unique=True, postgresql_where=text("state = 'serving'")),
    )

    name: str = column(Text)
    dimensions: int = column(BigInteger)
    created_at: datetime = column(Time, default="now()", description="or when units that were there got vectors")
    state: str = column(Text, default="'serving'", description="serving, building or retired")
    predecessor: UUID | None = Field(default=None, description="which one served before, for a way back")


class ItemVector(Owned, table=True):
    """The vector of a unit: what exact kNN scans. Stored PLAIN: measured 2.8 to 11 times quicker than in TOAST."""

    __tablename__ = "item_vectors"
    __table_args__ = (_owned("item_id", "chunk", by="item_text", key=("user_id", "item_id", "chunk")),)

    item_id: UUID = Field(primary_key=True)
    chunk: int = _key(Integer)
    model_id: UUID = Field(primary_key=True)
    embedding: Any = Field(sa_type=VECTOR, nullable=False)


class Derivation(Owned, table=True):
    """The watermark: how far a deriver got in a conversation."""

    __tablename__ = "derivations"
    __table_args__ = (
        _owned("conversation_id", by="conversations"),
        Index("derivations_pending", "user_id", "conversation_id", postgresql_where=text("done_seq < last_seq")),
    )

    conversation_id: UUID = Field(primary_key=True)
    deriver: str = _key(Text)
    done_seq: int = column(BigInteger, default="0")
    last_seq: int = column(BigInteger, default="0")
    attempts: int = column(SmallInteger, default="0")
    last_error: str | None = column(Text, nullable=True)
    recipe: str | None = column(Text, nullable=True)
    updated_at: datetime = column(Time, default="now()")
    backfill: UUID | None = Field(default=None, description="whose the pending messages are")


class BackfillRecord(SQLModel, table=True):
    """History that is derived under a plan. The operator's, and of no user: ids and numbers."""

    __tablename__ = "backfills"

    id: UUID = Field(primary_key=True)
    state: str = column(Text, default="'running'")
    reason: str | None = column(Text, nullable=True)
    only_user: UUID | None = None
    derivers: list[str] = column(ARRAY(Text))
    messages: int = column(BigInteger, default="0")
    max_tokens: int | None = column(BigInteger, nullable=True)
    max_seconds: float | None = column(DOUBLE_PRECISION, nullable=True)
    spent_tokens: int = column(BigInteger, default="0")
    taken_tokens: int = column(BigInteger, default="0")
    worked_seconds: float = column(DOUBLE_PRECISION, default="0")
    plan: Json = column(JSONB, default="'{}'")
    created_at: datetime = column(Time, default="now()")
    resumed_at: datetime = column(Time, default="now()")
    finished_at: datetime | None = column(Time, nullable=True)


class ApiTokenRecord(SQLModel, table=True):
    """Who may ask over a network. The operator's, and of no user: whose a token is, is found by its hash."""

    __tablename__ = "api_tokens"
    __table_args__ = (UniqueConstraint("hash", name="api_tokens_hash"),)

    id: UUID = Field(primary_key=True)
    hash: bytes = column(LargeBinary, description="SHA-256 of the token")
    user_id: UUID | None = Field(default=None, description="whose memory it opens; None: everybody's")
    user_name: str | None = column(Text, nullable=True)
    name: str | None = column(Text, nullable=True)
    created_at: datetime = column(Time, default="now()")
    expires_at: datetime | None = column(Time, nullable=True)
    revoked_at: datetime | None = column(Time, nullable=True)


class DeadLetterRecord(DeadLetter, table=True):
    """What a model answered and nobody could use."""

    __tablename__ = "dead_letters"
    __table_args__ = (
        _owned("conversation_id", by="conversations"),
        Index("dead_letters_by_conversation", "user_id", "conversation_id"),
    )


class ModelUsage(Owned, table=True):
    """What a model cost on a day."""

    __tablename__ = "model_usage"
    __table_args__ = (_owned(by="users", key=("user_id",)),)

    day: date = _key(Date)
    model: str = _key(Text)
    calls: int = column(BigInteger, default="0")
    prompt_tokens: int = column(BigInteger, default="0")
    completion_tokens: int = column(BigInteger, default="0")
    seconds: float = column(DOUBLE_PRECISION, default="0")


class DriftRecord(TokenCountErrors, table=True):
    """How far a counter was from what a model's server told."""

    __tablename__ = "counter_drift"
    __table_args__ = (_owned(by="users", key=("user_id",)),)


class EventRecord(OwnedWithId, table=True):
    """The outbox: what happened; ids, numbers and reasons, never a text."""

    __tablename__ = "events"
    __table_args__ = (
        _owned(by="users", key=("user_id",)),
        _owned("conversation_id", by="conversations"),
        Index("events_in_order", "user_id", "transaction", "id"),
        Index("events_by_conversation", "user_id", "conversation_id"),
    )

    conversation_id: UUID | None = None
    type: str = column(Text)
    body: Json = column(JSONB, default="'{}'")
    transaction: int = column(BigInteger, default="((pg_current_xact_id())::text)::bigint")
    recorded_at: datetime = column(Time, default="clock_timestamp()")


class SettingChange(OwnedWithId, table=True):
    """The settings of a conversation before a change."""

    __tablename__ = "setting_changes"
    __table_args__ = (
        _owned("conversation_id", by="conversations"),
        Index("setting_changes_in_order", "user_id", "conversation_id", "recorded_at"),
    )

    conversation_id: UUID
    before: Json = column(JSONB)
    recorded_at: datetime = column(Time, default="clock_timestamp()")


class ReceiptRecord(OwnedWithId, table=True):
    """The record of one assembly: ids, tokens and reasons; what was sent and stands nowhere else are its texts."""

    __tablename__ = "receipts"
    __table_args__ = (
        _owned("conversation_id", by="conversations"),
        Index("receipts_by_conversation", "user_id", "conversation_id", "recorded_at"),
    )

    conversation_id: UUID
    budget: int = column(BigInteger)
    tokens: int = column(BigInteger)
    body: Json = column(JSONB)
    texts: Json = column(JSONB, default="'{}'")
    recorded_at: datetime = column(Time, default="now()")


class DocumentRecord(OwnedWithId, table=True):
    """A value that an application keeps under a name of its own, and changes."""

    __tablename__ = "documents"
    __table_args__ = (
        _owned(by="users", key=("user_id",)),
        Index("documents_recent", "user_id", "updated_at"),
        Index("documents_expiring", "user_id", "expires_at", postgresql_where=text("expires_at IS NOT NULL")),
    )

    namespace: list[str] = column(ARRAY(Text))
    key: str = column(Text)
    value: Json = column(JSONB)
    ttl: timedelta | None = column(Interval, nullable=True, description="for how long after it was written, or read")
    expires_at: datetime | None = column(Time, nullable=True)
    created_at: datetime = column(Time, default="clock_timestamp()")
    updated_at: datetime = column(Time, default="clock_timestamp()")


class DocumentVector(OwnedWithId, table=True):
    """The vector of a text in a document."""

    __tablename__ = "document_vectors"
    __table_args__ = (_owned("id", by="documents"),)

    path: str = _key(Text)
    model_id: UUID = Field(primary_key=True)
    embedding: Any = Field(sa_type=VECTOR, nullable=False)
    text: str | None = column(Text, nullable=True, description="what it is of; null for all of the value")


class StoreKey(SQLModel, table=True):
    """A key of the store's own: what tombstones are hashed with. Of no user."""

    __tablename__ = "store_keys"

    name: str = _key(Text)
    key: bytes = column(LargeBinary)


class Tombstone(Owned, table=True):
    """What must not come back: keyed hashes, one after the other. Outlives its user."""

    __tablename__ = "tombstones"

    bucket: int = _key(SmallInteger)
    erasure_id: UUID = Field(primary_key=True)
    digests: bytes = column(LargeBinary)


class Erasure(OwnedWithId, table=True):
    """The certificate of an erasure: ids, counts and times. Outlives its user."""

    __tablename__ = "erasures"

    scope: str = column(Text)
    body: Json = column(JSONB)
    recorded_at: datetime = column(Time, default="clock_timestamp()")
