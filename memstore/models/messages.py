"""Conversations, messages and summaries, as rows."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import computed_field
from sqlalchemy import ARRAY, BigInteger, DateTime, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

Json = dict[str, Any]
Time = DateTime(timezone=True)


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


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


class Conversation(SQLModel):
    """A conversation of a user, with its own settings; `last_seq` is the number of its newest message."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    name: str = column(Text)
    title: str | None = column(Text, nullable=True)
    channel: str | None = column(Text, nullable=True)
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
    meta: Json = column(JSONB, default="'{}'")
    external_id: str | None = column(Text, nullable=True)
    occurred_at: datetime = column(Time)
    recorded_at: datetime = column(Time, default="now()")

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own advice: mypy knows no decorated properties
    @property
    def content(self) -> str | list[Json] | None:
        """The content as it was given: a text, parts, or nothing."""
        return self.text if self.parts is None else self.parts

    def as_chat(self) -> Json:
        """Return the message in OpenAI's chat format, which Ollama takes too."""
        chat: Json = {"role": self.role, "content": self.content}
        optional = {"name": self.name, "tool_calls": self.tool_calls, "tool_call_id": self.tool_call_id}
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
