"""Conversations, messages and summaries, as rows; what recall finds of them; documents of an application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from pydantic import computed_field
from sqlalchemy import ARRAY, BigInteger, DateTime, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

Json = dict[str, Any]
Time = DateTime(timezone=True)
# A longer silence ends a session.
SESSION_GAP = timedelta(hours=4)


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


RoleName = Literal["system", "developer", "user", "assistant", "tool"]
INSTRUCTION_ROLES = frozenset({Role.SYSTEM, Role.DEVELOPER})
# In metadata: where anything but TRUSTED stands there, no fact rests on the message alone; a slip of the pen is safe.
TRUST, TRUSTED, UNTRUSTED = "trust", "trusted", "untrusted"
# In metadata: whom a message is for.
ADDRESSEE = "to"
# In metadata: what kind of an assistant's memory was imported as the message. Saved ones speak of "User".
IMPORTED_MEMORY = "imported_memory"
ImportedMemory = Literal["saved memory", "about the user", "instructions", "project"]


class Tier(StrEnum):
    """The three kinds of items that can be recalled."""

    MESSAGES = "messages"
    SUMMARIES = "summaries"
    FACTS = "facts"


def column(kind: Any, *, default: str | None = None, nullable: bool = False, **more: Any) -> Any:
    """Declare a column; its default is the database's."""
    extra = {"server_default": text(default)} if default is not None else {}
    python_default: Any = None if nullable or default is not None else ...
    return Field(python_default, sa_type=kind, nullable=nullable, sa_column_kwargs=extra, **more)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where something is asked: in conversations of these scopes, and with `unscoped` in those that have none."""

    names: tuple[str, ...]
    unscoped: bool = False

    def as_list(self) -> list[str | None]:
        """Return the scopes, and None for conversations that have none."""
        return [*self.names, *([None] if self.unscoped else [])]


class Conversation(SQLModel):
    """A conversation of a user, with its own settings; `last_seq` is the number of its newest message.

    Its `scope` is what it belongs to, such as a project; None where that is nothing in particular.
    """

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    name: str = column(Text)
    title: str | None = column(Text, nullable=True)
    channel: str | None = column(Text, nullable=True)
    scope: str | None = column(Text, nullable=True)
    settings: Json = column(JSONB, default="'{}'")
    last_seq: int = column(BigInteger, default="0")
    created_at: datetime = column(Time, default="now()")
    updated_at: datetime = column(Time, default="now()")


class Message(SQLModel):
    """A message as it was said: immutable, numbered without gaps in its conversation."""

    user_id: UUID = Field(primary_key=True)
    conversation_id: UUID = Field(primary_key=True)
    seq: int = Field(sa_type=BigInteger, primary_key=True, sa_column_kwargs={"autoincrement": False})
    id: UUID
    role: str = column(Text)
    name: str | None = column(Text, nullable=True)
    text: str | None = column(Text, nullable=True, description="the plain text; None where there was no content")
    parts: list[Json] | None = column(JSONB, nullable=True, description="the content as given, where it came in parts")
    tool_calls: list[Json] | None = column(JSONB, nullable=True)
    tool_call_id: str | None = column(Text, nullable=True)
    tokens: int = column(BigInteger, description="exact tokens of the text and of the tool calls")
    counter: str = column(Text)
    tags: list[str] = column(ARRAY(Text), default="'{}'")
    meta: Json = column(JSONB, default="'{}'", serialization_alias="metadata")
    external_id: str | None = column(Text, nullable=True)
    occurred_at: datetime = column(Time)
    recorded_at: datetime = column(Time, default="now()")

    @property
    def metadata(self) -> Json:  # type: ignore[override]  # of SQLModel's tables, of which this is none
        """The application's own data: `meta` under the name by which `add` takes it."""
        return self.meta

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own advice: mypy knows no decorated properties
    @property
    def content(self) -> str | list[Json] | None:
        """The content as it was given: a text, parts, or nothing."""
        return self.text if self.parts is None else self.parts

    def as_chat(self) -> Json:
        """Return the message in OpenAI's chat format, which Ollama takes too.

        An instruction that is not trusted instructs nobody: it is a user's message, named by its role.
        """
        is_refused = self.role in INSTRUCTION_ROLES and self.meta.get(TRUST, TRUSTED) != TRUSTED
        role, name = (Role.USER, self.role) if is_refused else (self.role, self.name)
        chat: Json = {"role": str(role), "content": self.content}
        optional = {"name": name, "tool_calls": self.tool_calls, "tool_call_id": self.tool_call_id}
        return chat | {key: value for key, value in optional.items() if value is not None}


class Summary(SQLModel):
    """A summary of messages (level 1), of several summaries (level n + 1), or one made on demand (level 0)."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    level: int = column(SmallInteger)
    from_seq: int = column(BigInteger)
    to_seq: int = column(BigInteger)
    text: str = column(Text)
    tokens: int = column(BigInteger)
    counter: str = column(Text)
    recipe: str = column(Text)
    occurred_at: datetime = column(Time, description="when the stretch began")
    occurred_until: datetime = column(Time, description="when the stretch ended")
    recorded_at: datetime = column(Time, default="now()")


class ChunkKey(NamedTuple):
    """The key of a chunk: its item, and which chunk of it."""

    item_id: UUID
    chunk_index: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """What recall ranks: a message, summary or fact, or a chunk of a long one; `start` and `stop` in characters."""

    item_id: UUID
    chunk_index: int
    tier: Tier
    conversation_id: UUID | None
    seq: int | None
    role: str | None
    speaker: str | None
    start: int
    stop: int
    occurred_at: datetime

    @property
    def key(self) -> ChunkKey:
        """The key of the chunk."""
        return ChunkKey(self.item_id, self.chunk_index)


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled item.

    `text` is the item's, verbatim, or a chunk of it from character `start` on; `sources` are the ids of its messages;
    `parts` says what each signal adds to `score`. A fact holds until `valid_to`, if that is known; its `importance` is
    pinned, normal or unimportant. Of what holds no longer `later` says what took its place, and `later_ids` names these
    facts. What is of a space has its name.
    """

    tier: Tier
    id: UUID
    text: str
    score: float
    parts: Mapping[str, float]
    sources: tuple[UUID, ...]
    occurred_at: datetime
    conversation_id: UUID | None = None
    seq: int | None = None
    role: str | None = None
    speaker: str | None = None
    start: int = 0
    valid_to: datetime | None = None
    importance: str | None = None
    later: str = ""
    later_ids: tuple[UUID, ...] = ()
    space: str | None = None

    @property
    def text_with_later(self) -> str:
        """The text, and what holds in its place."""
        return f"{self.text} (later: {self.later})" if self.later else self.text


Said = TypeVar("Said", Message, Hit)


def in_order_of_time(items: Iterable[Said]) -> list[Said]:
    """Return messages or hits by time, those of one conversation by `seq`.

    Clocks of a history go back at times: a message counts as said no earlier than those before it.
    """
    latest: dict[UUID, datetime] = {}
    places = []
    for item in sorted(items, key=lambda item: (item.seq or 0, item.occurred_at)):
        time, conversation = item.occurred_at, item.conversation_id
        if item.seq and conversation:
            time = latest[conversation] = max(time, latest.get(conversation, time))
        places.append(((time, conversation or UUID(int=0), item.seq or 0, str(item.id)), item))
    return [item for _, item in sorted(places, key=lambda place: place[0])]


Namespace = tuple[str, ...]
# 999 years: a moment beyond the year 9999 could not be read again.
MAX_TTL = timedelta(days=365_000)


@dataclass(frozen=True, slots=True)
class Document:
    """A value under a namespace and a key; `score` is its similarity to the query of a search."""

    namespace: Namespace
    key: str
    value: Json
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A value to store.

    `texts` are embedded for search, each under a path of the value; by default the whole value as JSON, and with `{}`
    it is not found by meaning. It expires `ttl` after it was last written or read, if that is given.
    """

    namespace: Namespace
    key: str
    value: Json
    texts: Mapping[str, str] | None = None
    ttl: timedelta | None = None
