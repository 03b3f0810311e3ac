"""Messages: what was said, in order; and what is said now, once however often it is sent."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from memstore.ingest.check import NewMessage
from memstore.ingest.keyed import LONGEST_KEY
from memstore.models import Message, Role
from memstore.server.http.asked import Body, ConversationDep, Moment
from memstore.server.http.pages import Page, PageDep, answer, place_as
from memstore.server.http.paths import CONVERSATION
from memstore.server.http.problems import documented

router = APIRouter(
    prefix=f"{CONVERSATION}/messages",
    tags=["messages"],
    responses=documented(404, 409),
)
MOST = 1000
LAST = 2**62
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        description="sent again with the same messages, nothing is stored twice",
    ),
]
Number = Annotated[int, Query(ge=1, le=LAST)]


class NewMessages(Body):
    """Messages, in order; all are stored or none."""

    messages: list[NewMessage] = Field(min_length=1, max_length=MOST)
    on_conflict: Literal["error", "skip"] = Field("error", description="what a known id with other content does")


@router.get("", response_model=Page[Message])
async def messages(
    scope: ConversationDep,
    page: PageDep,
    from_seq: Number = 1,
    to_seq: Number = LAST,
    role: Annotated[list[Role] | None, Query()] = None,
    tag: Annotated[list[str] | None, Query()] = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Response:
    """Give messages in order. What is said meanwhile is on a later page."""
    (after,) = place_as(tuple[int], page.place) or (from_seq - 1,)
    found = await scope.messages(
        from_seq=max(from_seq, min(after, LAST - 1) + 1),
        to_seq=to_seq,
        roles=role,
        tags=tag,
        since=since,
        until=until,
        limit=page.limit + 1,
    )
    return page.answer(Message, found, lambda one: [one.seq])


@router.post("", response_model=list[Message], status_code=201)
async def add(scope: ConversationDep, given: NewMessages, key: Key = None) -> Response:
    """Store messages, all or none; give them as stored, known ones included.

    A message that has an `external_id` is known by it. With an Idempotency-Key the others get one of it.
    """
    stored = await scope.add_many(given.messages, on_conflict=given.on_conflict, key=key)
    return answer(list[Message], stored, status=201)
