"""Message in → counted → stored: numbered, in order, all or nothing, and no model is called."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from uuid import UUID

from memstore import ids
from memstore.errors import Conflict, Erased, InvalidInput
from memstore.ingest.check import NewMessage, check_name, checked
from memstore.models import Conversation, Message
from memstore.providers import TokenCounter
from memstore.store import messages as store
from memstore.store import tombstones
from memstore.store.database import Database, Transaction
from memstore.store.derivations import DERIVERS
from memstore.store.tombstones import as_stored
from memstore.waiting import in_thread

OnConflict = Literal["error", "skip"]
Given = Mapping[str, Any] | Message | NewMessage


@dataclass(frozen=True)
class Place:
    """A conversation by the names that its ids follow from; it need not exist yet."""

    user_name: str
    name: str
    title: str | None = None
    channel: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that cannot be kept."""
        check_name(self.user_name, "user")
        check_name(self.name, "conversation")
        for kind, text in (("title", self.title), ("channel", self.channel)):
            if text is not None:
                check_name(text, f"conversation's {kind}")

    @cached_property
    def user_id(self) -> UUID:
        """The user's id."""
        return ids.user_id(self.user_name)

    @cached_property
    def id(self) -> UUID:
        """The conversation's id."""
        return ids.conversation_id(self.user_id, self.name)


async def add_many(
    database: Database,
    counter: TokenCounter,
    place: Place,
    given: Sequence[Given],
    *,
    on_conflict: OnConflict = "error",
    max_bytes: int,
) -> list[Message]:
    """Store messages in order, all or none; give them as stored, known ones included.

    A known `external_id` with the same content is the same message. With other content it is a `Conflict`, or with
    `on_conflict="skip"` the stored one is given and nothing changes. What was erased is not stored again: `Erased` is
    raised, or with "skip" it is left out of what is given.
    """
    if on_conflict not in ("error", "skip") or isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        raise InvalidInput('Give a list of messages, and on_conflict="error" or "skip".')
    drafts = await in_thread(_drafts, given, place, counter, max_bytes)
    while drafts:
        try:
            async with database.scope(place.user_id) as scope:
                known = await _known(scope, place, drafts)
                fresh = _fresh(drafts, known, on_conflict)
                for message in await _numbered(scope, place, fresh):
                    known[message.id] = message
            return [known[draft.id] for draft in drafts]
        except _Tombstones as found:
            if on_conflict == "error":
                raise _erased(drafts, found.ids) from None
            drafts = [draft for draft in drafts if draft.id not in found.ids]
    return []


async def look_at(
    database: Database, counter: TokenCounter, place: Place, given: Sequence[Given], *, max_bytes: int
) -> list[Message]:
    """Give what `add_many` would, and raise what it would, and store nothing: what would be new has a `seq` of 0."""
    drafts = await in_thread(_drafts, given, place, counter, max_bytes)
    named = [draft.id for draft in drafts if draft.external_id is not None]
    async with database.scope(place.user_id) as scope:
        known = await store.known(scope, named) if named else {}
        new = _fresh(drafts, known, "error")
        if erased := await tombstones.erased_messages(scope, new):
            raise _erased(drafts, {new[place].id for place in erased})
    fresh = {draft.id: draft for draft in new}
    return [known.get(draft.id) or fresh[draft.id] for draft in drafts]


def _drafts(given: Sequence[Given], place: Place, counter: TokenCounter, max_bytes: int) -> list[Message]:
    return [_draft(one, f"message {number}", place, counter, max_bytes) for number, one in enumerate(given, 1)]


def _draft(given: Given, where: str, place: Place, counter: TokenCounter, max_bytes: int) -> Message:
    """Give the message with its id and tokens, not yet numbered."""
    for key, ours in (("user", place.user_name), ("conversation", place.name)):
        if isinstance(given, Mapping) and given.get(key, ours) != ours:
            raise InvalidInput(f"{where} is of the {key} {given[key]!r} and was given to {ours!r}. Nothing was stored.")
    new = checked(given, where=where, max_bytes=max_bytes)
    text = new.text
    calls = json.dumps(new.tool_calls, ensure_ascii=False, separators=(",", ":")) if new.tool_calls else ""
    return Message.model_construct(
        user_id=place.user_id,
        conversation_id=place.id,
        seq=0,
        id=ids.message_id(place.id, new.external_id),
        role=str(new.role),
        name=new.name,
        text=text,
        parts=new.content if isinstance(new.content, list) else None,
        tool_calls=new.tool_calls,
        tool_call_id=new.tool_call_id,
        tokens=counter.count(text or "") + (counter.count(calls) if calls else 0),
        counter=counter.name,
        tags=new.tags,
        meta=new.metadata,
        external_id=new.external_id,
        occurred_at=new.occurred_at,
        recorded_at=new.occurred_at,
    )


async def _known(scope: Transaction, place: Place, drafts: Sequence[Message]) -> dict[UUID, Message]:
    """Give the stored ones, with the conversation locked, so that nobody stores another of them meanwhile."""
    named = [draft.id for draft in drafts if draft.external_id is not None]
    if not named:
        return {}
    if not await store.lock(scope, place.id):
        await make_conversation(scope, place)
        await store.lock(scope, place.id)
    return await store.known(scope, named)


def _fresh(drafts: Sequence[Message], known: Mapping[UUID, Message], on_conflict: OnConflict) -> list[Message]:
    fresh: dict[UUID, Message] = {}
    for number, draft in enumerate(drafts, 1):
        twin = known.get(draft.id) or fresh.get(draft.id)
        if twin is None:
            fresh[draft.id] = draft
        elif on_conflict == "error" and _said(twin) != _said(draft):
            raise Conflict(
                f"message {number}: external_id {draft.external_id!r} is known with other content "
                f"(message {twin.seq or 'earlier in this call'}). Stored messages never change: give it another "
                'external_id, or on_conflict="skip" to keep what is stored. Nothing of this call was stored.'
            )
    return list(fresh.values())


def _said(message: Message) -> tuple[object, ...]:
    return message.role, message.name, as_stored(message.content), as_stored(message.tool_calls), message.tool_call_id


class _Tombstones(Exception):
    """Messages that were erased are among those to be stored."""

    def __init__(self, ids: Collection[UUID]) -> None:
        super().__init__(ids)
        self.ids = ids


def _erased(drafts: Sequence[Message], ids: Collection[UUID]) -> Erased:
    return Erased(tuple(number for number, draft in enumerate(drafts, 1) if draft.id in ids))


async def _numbered(scope: Transaction, place: Place, fresh: list[Message]) -> list[Message]:
    if not fresh:
        return []
    numbers = await store.take_numbers(scope, place.id, len(fresh))
    if numbers is None:
        await make_conversation(scope, place)
        numbers = await store.take_numbers(scope, place.id, len(fresh))
    assert numbers is not None
    # With the conversation locked: nothing of it is erased from here on.
    if erased := await tombstones.erased_messages(scope, fresh):
        raise _Tombstones({fresh[place].id for place in erased})
    first = numbers.last_seq - len(fresh) + 1
    for seq, message in enumerate(fresh, first):
        message.seq, message.recorded_at = seq, numbers.recorded_at
    await store.add(scope, fresh)
    return fresh


async def make_conversation(scope: Transaction, place: Place) -> None:
    """Make the user, the conversation and its watermarks, those of them that are not there."""
    conversation = Conversation.model_construct(id=place.id, name=place.name, title=place.title, channel=place.channel)
    await store.make_conversation(scope, conversation, user_name=place.user_name, derivers=DERIVERS)
