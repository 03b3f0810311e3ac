"""Users, their conversations, and messages, which are stored once however often they are sent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, BeforeValidator, Field

from memstore.errors import NotFound
from memstore.ingest.validation import NewMessage, drop_empty_keys
from memstore.models import Conversation, Json, Message, Role, Summary, Usage
from memstore.server.http import dependencies
from memstore.server.http.dependencies import ConversationDep, Page, PageParams, StoreDep, StrictModel, UserDep
from memstore.store.messages import MAX_SEQ

users = APIRouter(tags=["users"])
conversations = APIRouter(prefix=f"{dependencies.USER}/conversations", tags=["conversations"])
messages = APIRouter(prefix=f"{dependencies.CONVERSATION}/messages", tags=["messages"])


class UserStats(BaseModel):
    """A user, by name and in numbers."""

    name: str
    stats: dict[str, int]
    usage: list[Usage]


@users.get("/users", dependencies=dependencies.OPERATOR)
async def list_users(store: StoreDep, params: Annotated[PageParams, Query()]) -> Page[str]:
    """Return the names of all users, sorted. The operator's."""
    (after,) = params.position(tuple[str]) or ("",)
    names: list[str] = []
    async for name in store.users(after=after):
        names.append(name)
        if len(names) > params.limit:
            break
    return params.page(names, lambda name: [name])


@users.get(dependencies.USER)
async def get_user_stats(user: UserDep, store: StoreDep) -> UserStats:
    """Return how much is stored of a user, zeros before the first message, and what calls of chat models cost."""
    name = user.name
    return UserStats(name=name, stats=await store.stats(user=name), usage=await store.usage(user=name))


@users.get("/stats", dependencies=dependencies.OPERATOR)
async def get_stats(store: StoreDep) -> dict[str, int | list[Usage]]:
    """Return how much is stored of all users together, and what calls of chat models cost. The operator's."""
    return {**await store.stats(), "usage": await store.usage()}


class ConversationEdit(StrictModel):
    """The settings of a conversation to be set; those left out stay."""

    title: str | None = None
    channel: str | None = None
    scope: str | None = Field(None, min_length=1, description="what it belongs to, such as a project")
    strategy: str | Json | list[str | Json] | None = Field(None, description="what compresses it; []: nothing")
    sections: list[Json] | None = Field(None, description="limits of the sections of its contexts; [] removes them")
    settings: Json | None = Field(None, description="settings of its own; null takes one away")


class ConversationParams(PageParams):
    channel: str | None = None


@conversations.get("")
async def list_conversations(user: UserDep, params: Annotated[ConversationParams, Query()]) -> Page[Conversation]:
    """Return a user's conversations, the latest first. One in which something is said meanwhile goes to the front."""
    before = params.position(tuple[datetime, UUID])
    rows = await user.conversations(channel=params.channel, before=before, limit=params.limit + 1)
    return params.page(rows, lambda row: [row.updated_at, row.id])


@conversations.get("/{conversation:name}")
async def get_conversation_info(conversation: ConversationDep) -> Conversation:
    """Return a conversation's title, channel, scope, settings and size."""
    info = await conversation.info()
    if info is None:
        raise NotFound("Nothing was said in this conversation yet: it is made with its first message.")
    return info


@conversations.patch("/{conversation:name}")
async def edit_conversation(conversation: ConversationDep, body: ConversationEdit) -> Conversation:
    """Set title, channel, scope, strategy, sections or settings; a conversation that is new is made."""
    await conversation.update(**body.model_dump(exclude_unset=True))
    return await get_conversation_info(conversation)


@conversations.get("/{conversation:name}/summaries")
async def list_summaries(
    conversation: ConversationDep, level: Annotated[int | None, Query(ge=0, le=100)] = None
) -> list[Summary]:
    """Return the summaries by level and in order; level 0 are those that were asked for."""
    return await conversation.summaries(level=level)


class NewMessages(StrictModel):
    """Messages, in order; all are stored or none."""

    messages: list[Annotated[NewMessage, BeforeValidator(drop_empty_keys)]] = Field(min_length=1, max_length=1000)
    on_conflict: Literal["error", "skip"] = Field(
        "error", description="a known id with other content: refused, or skipped"
    )


class MessageParams(PageParams):
    from_seq: int = Field(1, ge=1, le=MAX_SEQ)
    role: list[Role] | None = None


@messages.get("")
async def list_messages(conversation: ConversationDep, params: Annotated[MessageParams, Query()]) -> Page[Message]:
    """Return messages in order. Messages added meanwhile are on a later page."""
    (after,) = params.position(tuple[int]) or (params.from_seq - 1,)
    first = max(params.from_seq, min(after, MAX_SEQ - 1) + 1)
    rows = await conversation.messages(from_seq=first, roles=params.role, limit=params.limit + 1)
    return params.page(rows, lambda message: [message.seq])


@messages.post("", status_code=201)
async def add_messages(conversation: ConversationDep, body: NewMessages) -> list[Message]:
    """Store messages, all or none; return them as stored, known ones included.

    A message that has an `external_id` is known by it: sent again, it is not stored again.
    """
    return await conversation.add_many(body.messages, on_conflict=body.on_conflict)
