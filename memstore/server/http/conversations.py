"""Conversations: listed, described, summarized."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from memstore.client.conversation import AsyncConversationScope
from memstore.errors import NotFound
from memstore.models import Conversation, Json, Summary
from memstore.server.http.dependencies import CONVERSATIONS, ConversationDep, StrictInt, StrictModel, UserDep
from memstore.server.http.pagination import Page, PageParams, json_response

router = APIRouter(prefix=CONVERSATIONS, tags=["conversations"])
MAX_LEVEL = 100


class ConversationEdit(StrictModel):
    """What is to be set of a conversation; what is left out stays."""

    title: str | None = None
    channel: str | None = None
    strategies: list[str | Json] | None = Field(None, description="what compresses it; [] takes them away")
    sections: list[Json] | None = Field(None, description="what sections of its contexts may take; [] takes them away")
    settings: Json | None = Field(None, description="settings of its own; null takes one away")


class MessageRange(StrictModel):
    """Messages by number, both included; all so far where nothing is said."""

    from_seq: StrictInt | None = Field(None, ge=1)
    to_seq: StrictInt | None = Field(None, ge=1)


class ConversationParams(PageParams):
    """Which conversations are asked for."""

    channel: str | None = None


@router.get("", response_model=Page[Conversation])
async def list_conversations(user: UserDep, params: Annotated[ConversationParams, Query()]) -> Response:
    """Return a user's conversations, the latest first. One in which something is said meanwhile goes to the front."""
    before = params.position(tuple[datetime, UUID])
    conversations = await user.conversations(channel=params.channel, before=before, limit=params.limit + 1)
    return params.response(Conversation, conversations, lambda row: [row.updated_at, row.id])


@router.get("/{conversation:name}", response_model=Conversation)
async def get_conversation_info(conversation: ConversationDep) -> Response:
    """Return a conversation's title, channel, settings and size."""
    return json_response(Conversation, await _info(conversation))


@router.patch("/{conversation:name}", response_model=Conversation)
async def edit_conversation(conversation: ConversationDep, body: ConversationEdit) -> Response:
    """Set title, channel, strategies, sections or settings; a conversation that is new is made."""
    await conversation.describe(**body.model_dump(exclude_unset=True))
    return json_response(Conversation, await _info(conversation))


async def _info(conversation: AsyncConversationScope) -> Conversation:
    info = await conversation.info()
    if info is None:
        raise NotFound("Nothing was said in this conversation yet: it is made with its first message.")
    return info


@router.get("/{conversation:name}/summaries", response_model=list[Summary])
async def list_summaries(
    conversation: ConversationDep, level: Annotated[int | None, Query(ge=0, le=MAX_LEVEL)] = None
) -> Response:
    """Return the summaries by level and in order; level 0 are those that were asked for."""
    return json_response(list[Summary], await conversation.summaries(level=level))


@router.post("/{conversation:name}/summaries", response_model=Summary, status_code=201)
async def summarize(conversation: ConversationDep, body: MessageRange) -> Response:
    """Summarize a range of messages now; the same range is summarized once."""
    return json_response(Summary, await conversation.summarize(body.from_seq, body.to_seq), status=201)
