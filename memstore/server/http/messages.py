"""Messages: what was said, in order; and what is said now, once however often it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from memstore.errors import Conflict, InvalidInput
from memstore.ids import message_id
from memstore.ingest.check import NewMessage
from memstore.memory.conversation import AsyncConversationScope
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
LONGEST_KEY = 200
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
    named = [_named(one, key, number) for number, one in enumerate(given.messages, 1)]
    if key is not None and given.on_conflict == "error":
        await _check_whole(scope, key, [one.external_id for one in named])
    return answer(list[Message], await scope.add_many(named, on_conflict=given.on_conflict), status=201)


def _named(message: NewMessage, key: str | None, number: int) -> NewMessage:
    """Give the message with an id that follows from the key, where it has none of its own."""
    if key is None or message.external_id is not None:
        return message
    if not key.isprintable() or not key.isascii():
        raise InvalidInput("Idempotency-Key: give printable ASCII, such as a UUID.")
    return message.model_copy(update={"external_id": _of_key(key, number)})


def _of_key(key: str, number: int) -> str:
    return f"key:{key}:{number}"


async def _check_whole(scope: AsyncConversationScope, key: str, external_ids: Sequence[str | None]) -> None:
    """Refuse a list that is longer or shorter than the one that is stored under its key."""
    own = [one for number, one in enumerate(external_ids, 1) if one == _of_key(key, number)]
    if not own:
        return
    asked = [own[0], own[-1], _of_key(key, len(external_ids) + 1)]
    ids = [message_id(scope.id, one) for one in asked]
    there = {one.id for one in await scope.user.messages(ids)}
    first, last, beyond = [id in there for id in ids]
    if beyond or (first and not last):
        told = "Idempotency-Key: what is stored under this one were more or fewer messages, or some of them are erased"
        raise Conflict(f"{told}. Give a new one; nothing was stored.")
