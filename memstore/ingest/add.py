"""Message in → counted → stored: numbered, in order, all or nothing, and no model is called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.errors import Conflict, Erased, InvalidInput
from memstore.ingest import keyed
from memstore.ingest.check import NewMessage, check_name, checked
from memstore.ingest.redaction import KEEP_ALL, Redactor
from memstore.models import Conversation, Message
from memstore.providers import TokenCounter
from memstore.store import messages as store
from memstore.store import tombstones
from memstore.store.database import Database, Transaction
from memstore.store.derivations import DERIVERS
from memstore.store.tombstones import as_stored

OnConflict = Literal["error", "skip"]
Given = Mapping[str, Any] | Message | NewMessage
UNCOUNTED = -1  # the tokens of a draft


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
    key: str | None = None,
    max_bytes: int,
    redactor: Redactor = KEEP_ALL,
) -> list[Message]:
    """Store messages in order, all or none; give them as stored, known ones included.

    A known `external_id` with the same content is the same message. With other content it is a `Conflict`, or with
    `on_conflict="skip"` the stored one is given and nothing changes. What was erased is not stored again: `Erased` is
    raised, or with "skip" it is left out of what is given. A `key` names those that have no `external_id`, and stands
    for the whole list. `redactor` marks secrets before anything else is done.
    """
    if on_conflict not in ("error", "skip") or isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        raise InvalidInput('Give a list of messages, and on_conflict="error" or "skip".')
    drafts = await to_thread(_drafts, given, place, key, max_bytes, redactor)
    await to_thread(counted, drafts, counter)
    while drafts:
        try:
            return await _added(database, place, drafts, on_conflict, key)
        except _Tombstones as found:
            if on_conflict == "error":
                raise Erased(tuple(number for number, one in enumerate(drafts, 1) if one.id in found.ids)) from None
            drafts = [draft for draft in drafts if draft.id not in found.ids]
    return []


async def _added(
    database: Database, place: Place, drafts: Sequence[Message], on_conflict: OnConflict, key: str | None
) -> list[Message]:
    whole = key if on_conflict == "error" else None
    asked = _named(drafts) + ([] if whole is None else [keyed.beyond(drafts, whole)])
    async with database.scope(place.user_id) as scope:
        known = await _known(scope, place, asked)
        if whole is not None:
            keyed.check_whole(drafts, whole, known)
        found = sorted_out(drafts, known)
        if found.conflicts and on_conflict == "error":
            number, twin = next(iter(found.conflicts.items()))
            raise Conflict(
                f"message {number + 1}: {conflict(twin)} Stored messages never change: give it another external_id, or "
                'on_conflict="skip" to keep what is stored. Nothing of this call was stored.'
            )
        for message in await _numbered(scope, {place.id: place}, found.fresh):
            known[message.id] = message
    return [known[draft.id] for draft in drafts]


async def add_new(
    database: Database, counter: TokenCounter, places: Mapping[UUID, Place], drafts: Sequence[Message]
) -> SortedOut:
    """Store those of a user's drafts that are not known, all or none, and count no others; give what was new.

    `places` are the conversations by id. What is known with other content stays, and is given as a conflict; what was
    erased is left out.
    """
    user, erased = drafts[0].user_id, frozenset[UUID]()
    async with database.scope(user) as scope:
        last = await store.last_numbers(scope, places)
        known = await store.known(scope, _named(draft for draft in drafts if last.get(draft.conversation_id)))
    while True:
        found = sorted_out(drafts, known, erased)
        if not found.fresh:
            return found
        await to_thread(counted, [draft for draft in found.fresh if draft.tokens == UNCOUNTED], counter)
        wanted = {draft.conversation_id: places[draft.conversation_id] for draft in found.fresh}
        try:
            async with database.scope(user) as scope:
                locked = await _locked(scope, wanted)
                if any(locked[id] != last.get(id, 0) for id in wanted):  # somebody else writes there: look again
                    known, last = await store.known(scope, _named(drafts)), last | locked
                    found = sorted_out(drafts, known, erased)
                # Else it was erased since it was looked for: what is fresh by now is counted and locked first.
                if all(draft.tokens != UNCOUNTED and draft.conversation_id in locked for draft in found.fresh):
                    await _numbered(scope, places, found.fresh)
                    return found
        except _Tombstones as more:  # nothing was stored, and no conversation was made for them alone
            erased |= more.ids


async def preview(database: Database, drafts: Sequence[Message]) -> SortedOut:
    """Give what `add_new` would of a user's drafts, and store nothing."""
    async with database.scope(drafts[0].user_id) as scope:
        known = await store.known(scope, _named(drafts))
        found = sorted_out(drafts, known)
        return sorted_out(drafts, known, await tombstones.erased_messages(scope, found.fresh))


class SortedOut(NamedTuple):
    """What of drafts is new, what is known with other content, and what was erased.

    `conflicts` are by their place among the drafts what is known; `erased` are ids.
    """

    fresh: list[Message]
    conflicts: dict[int, Message]
    erased: frozenset[UUID]


def sorted_out(
    drafts: Sequence[Message], known: Mapping[UUID, Message], erased: frozenset[UUID] = frozenset()
) -> SortedOut:
    """Tell new drafts from known ones and erased ones; what comes twice is new once."""
    fresh: dict[UUID, Message] = {}
    conflicts: dict[int, Message] = {}
    for number, draft in enumerate(drafts):
        if draft.id in erased:
            continue
        twin = known.get(draft.id) or fresh.get(draft.id)
        if twin is None:
            fresh[draft.id] = draft
        elif _said(twin) != _said(draft):
            conflicts[number] = twin
    return SortedOut(list(fresh.values()), conflicts, erased)


def conflict(twin: Message) -> str:
    """Say which message is known with other content."""
    where = f"message {twin.seq}" if twin.seq else "a message before it"
    return f"external_id {twin.external_id!r} is known with other content ({where})."


def _drafts(given: Sequence[Given], place: Place, key: str | None, max_bytes: int, redactor: Redactor) -> list[Message]:
    made = [draft(one, f"message {number}", place, max_bytes) for number, one in enumerate(given, 1)]
    if key is not None:
        keyed.check_key(key)
        keyed.name(made, key)
    for one in made:
        redactor.redact_message(one)
    return made


def draft(given: Given, where: str, place: Place, max_bytes: int) -> Message:
    """Give a checked message with its id, neither counted nor numbered; raise `InvalidInput` that says `where`."""
    for key, ours in (("user", place.user_name), ("conversation", place.name)):
        if isinstance(given, Mapping) and given.get(key, ours) != ours:
            raise InvalidInput(f"{where} is of the {key} {given[key]!r} and was given to {ours!r}. Nothing was stored.")
    new = checked(given, where=where, max_bytes=max_bytes)
    return store.MESSAGE(
        user_id=place.user_id,
        conversation_id=place.id,
        seq=0,
        id=ids.message_id(place.id, new.external_id),
        role=str(new.role),
        name=new.name,
        text=new.text,
        parts=new.content if isinstance(new.content, list) else None,
        tool_calls=new.tool_calls,
        tool_call_id=new.tool_call_id,
        tokens=UNCOUNTED,
        counter="",
        tags=new.tags,
        meta=new.metadata,
        external_id=new.external_id,
        occurred_at=new.occurred_at,
        recorded_at=new.occurred_at,
    )


def counted(drafts: Iterable[Message], counter: TokenCounter) -> None:
    """Say in each draft how many tokens its text and its calls have, and by which counter."""
    name = counter.name
    for draft in drafts:
        calls = draft.tool_calls
        said = json.dumps(calls, ensure_ascii=False, separators=(",", ":")) if calls else ""
        tokens = counter.count(draft.text or "") + (counter.count(said) if said else 0)
        vars(draft).update(tokens=tokens, counter=name)  # setting attributes of a model takes a fifth of counting


def _named(drafts: Iterable[Message]) -> list[UUID]:
    return [draft.id for draft in drafts if draft.external_id is not None]


async def _known(scope: Transaction, place: Place, asked: Sequence[UUID]) -> dict[UUID, Message]:
    """Give the stored ones, with the conversation locked, so that nobody stores another of them meanwhile."""
    if not asked:
        return {}
    await _locked(scope, {place.id: place})
    return await store.known(scope, asked)


async def _locked(scope: Transaction, places: Mapping[UUID, Place]) -> dict[UUID, int]:
    """Lock conversations, made where they are not there; give their last numbers."""
    last = await store.lock_several(scope, places)
    if missing := places.keys() - last:
        await make_conversations(scope, [places[id] for id in missing])
        last |= await store.lock_several(scope, missing)
    return last


def _said(message: Message) -> tuple[object, ...]:
    return message.role, message.name, as_stored(message.content), as_stored(message.tool_calls), message.tool_call_id


class _Tombstones(Exception):
    """Messages that were erased are among those to be stored."""

    def __init__(self, ids: frozenset[UUID]) -> None:
        super().__init__(ids)
        self.ids = ids


async def _numbered(scope: Transaction, places: Mapping[UUID, Place], fresh: list[Message]) -> list[Message]:
    counts = Counter(message.conversation_id for message in fresh)
    numbers = await store.take_numbers(scope, counts) if fresh else {}
    if missing := counts.keys() - numbers:
        await make_conversations(scope, [places[id] for id in missing])
        numbers |= await store.take_numbers(scope, {id: counts[id] for id in missing})
    # With the conversations locked: nothing of them is erased from here on.
    if erased := await tombstones.erased_messages(scope, fresh):
        raise _Tombstones(erased)
    last = {id: taken.last_seq - counts[id] for id, taken in numbers.items()}
    for message in fresh:
        place = message.conversation_id
        last[place] += 1
        vars(message).update(seq=last[place], recorded_at=numbers[place].recorded_at)
    await store.add(scope, fresh)
    return fresh


async def make_conversations(scope: Transaction, places: Sequence[Place]) -> None:
    """Make the user of these conversations, the conversations and their watermarks, those that are not there."""
    build = Conversation.model_construct
    made = [build(id=one.id, name=one.name, title=one.title, channel=one.channel) for one in places]
    await store.make_conversations(scope, made, user_name=places[0].user_name, derivers=DERIVERS)
