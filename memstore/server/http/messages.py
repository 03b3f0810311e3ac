"""Messages: listed in order, and added once however often they are sent."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from memstore.ingest.check import NewMessage
from memstore.ingest.keyed import LONGEST_KEY
from memstore.models import Message, Role
from memstore.server.http.dependencies import CONVERSATION, ConversationDep, StrictModel, Timestamp
from memstore.server.http.pagination import Page, PageParams, json_response

router = APIRouter(prefix=f"{CONVERSATION}/messages", tags=["messages"])
MAX_MESSAGES = 1000
MAX_SEQ = 2**62
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        description="sent again with the same messages, nothing is stored twice",
    ),
]


class NewMessages(StrictModel):
    """Messages, in order; all are stored or none."""

    messages: list[NewMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    on_conflict: Literal["error", "skip"] = Field("error", description="what a known id with other content does")


class MessageParams(PageParams):
    """Which messages are asked for."""

    from_seq: int = Field(1, ge=1, le=MAX_SEQ)
    to_seq: int = Field(MAX_SEQ, ge=1, le=MAX_SEQ)
    role: list[Role] | None = None
    tag: list[str] | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None


@router.get("", response_model=Page[Message])
async def list_messages(conversation: ConversationDep, params: Annotated[MessageParams, Query()]) -> Response:
    """Return messages in order. What is said meanwhile is on a later page."""
    (after,) = params.position(tuple[int]) or (params.from_seq - 1,)
    messages = await conversation.messages(
        from_seq=max(params.from_seq, min(after, MAX_SEQ - 1) + 1),
        to_seq=params.to_seq,
        roles=params.role,
        tags=params.tag,
        since=params.since,
        until=params.until,
        limit=params.limit + 1,
    )
    return params.response(Message, messages, lambda message: [message.seq])


@router.post("", response_model=list[Message], status_code=201)
async def add_messages(conversation: ConversationDep, body: NewMessages, key: IdempotencyKey = None) -> Response:
    """Store messages, all or none; return them as stored, known ones included.

    A message that has an `external_id` is known by it. With an Idempotency-Key the others get one of it.
    """
    stored = await conversation.add_many(body.messages, on_conflict=body.on_conflict, key=key)
    return json_response(list[Message], stored, status=201)
