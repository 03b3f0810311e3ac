"""Conversations: listed, described, summarized."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from memstore.errors import NotFound
from memstore.memory.conversation import AsyncConversationScope
from memstore.models import Conversation, Json, Summary
from memstore.server.http.asked import Body, ConversationDep, UserDep, Whole
from memstore.server.http.pages import Page, PageDep, answer, place_as
from memstore.server.http.paths import CONVERSATIONS
from memstore.server.http.problems import documented

router = APIRouter(prefix=CONVERSATIONS, tags=["conversations"], responses=documented(404))
HIGHEST_LEVEL = 100


class Description(Body):
    """What is to be set of a conversation; what is left out stays."""

    title: str | None = None
    channel: str | None = None
    strategies: list[str | Json] | None = Field(None, description="what compresses it; [] takes them away")
    sections: list[Json] | None = Field(None, description="what sections of its contexts may take; [] takes them away")
    settings: Json | None = Field(None, description="settings of its own; null takes one away")


class Range(Body):
    """Messages by number, both included; all so far where nothing is said."""

    from_seq: Whole | None = Field(None, ge=1)
    to_seq: Whole | None = Field(None, ge=1)


@router.get("", response_model=Page[Conversation])
async def conversations(user: UserDep, page: PageDep, channel: Annotated[str | None, Query()] = None) -> Response:
    """Give a user's conversations, the latest first. One in which something is said meanwhile goes to the front."""
    before = place_as(tuple[datetime, UUID], page.place)
    found = await user.conversations(channel=channel, before=before, limit=page.limit + 1)
    return page.answer(Conversation, found, lambda one: [one.updated_at, one.id])


@router.get("/{conversation:name}", response_model=Conversation)
async def conversation(scope: ConversationDep) -> Response:
    """Give a conversation's title, channel, settings and size."""
    return answer(Conversation, await _there(scope))


@router.patch("/{conversation:name}", response_model=Conversation)
async def describe(scope: ConversationDep, given: Description) -> Response:
    """Set title, channel, strategies, sections or settings; a conversation that is new is made."""
    await scope.describe(**given.model_dump(exclude_unset=True))
    return answer(Conversation, await _there(scope))


@router.get("/{conversation:name}/summaries", response_model=list[Summary])
async def summaries(
    scope: ConversationDep, level: Annotated[int | None, Query(ge=0, le=HIGHEST_LEVEL)] = None
) -> Response:
    """Give the summaries by level and in order; level 0 are those that were asked for."""
    return answer(list[Summary], await scope.summaries(level=level))


@router.post("/{conversation:name}/summaries", response_model=Summary, status_code=201)
async def summarize(scope: ConversationDep, given: Range) -> Response:
    """Summarize a range of messages now; the same range is summarized once."""
    return answer(Summary, await scope.summarize(given.from_seq, given.to_seq), status=201)


async def _there(scope: AsyncConversationScope) -> Conversation:
    found = await scope.info()
    if found is None:
        raise NotFound("Nothing was said in this conversation yet: it is made with its first message.")
    return found
