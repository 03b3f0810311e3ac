"""Messages in: validated, redacted, counted, numbered and stored, all or none. No model is called."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.errors import Conflict, Erased, InvalidInput
from memstore.ingest.redaction import Redactor
from memstore.ingest.validation import NewMessage, check_name, check_names, validate_message
from memstore.models import INSTRUCTION_ROLES, Conversation, Message, Role
from memstore.providers import TokenCounter
from memstore.store import messages as store
from memstore.store.database import Database, Transaction
from memstore.store.messages import as_stored
from memstore.store.watermarks import DERIVERS

OnConflict = Literal["error", "skip"]
Keep = Literal["session"]
MessageInput = Mapping[str, Any] | Message | NewMessage
UNCOUNTED_TOKENS = -1
# Of an import or a restore: what is stored in one transaction, and held in memory.
MAX_BATCH_ITEMS = 500
MAX_BATCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class ConversationRef:
    """A conversation by the names that its ids follow from; it need not exist yet.

    In a space `speaker` is the member for whom messages are stored.
    """

    user_name: str
    name: str
    title: str | None = None
    channel: str | None = None
    scope: str | None = None
    keep: Keep | None = None
    speaker: str | None = None

    def __post_init__(self) -> None:
        check_name(self.user_name, "user")
        check_name(self.name, "conversation")
        described = {"title": self.title, "channel": self.channel, "scope": self.scope}
        check_names(**{f"conversation's {name}": text for name, text in described.items()})
        if self.keep not in (None, "session"):
            raise InvalidInput(f'keep={self.keep!r:.60}: give "session", or None to keep and derive what is said.')

    @cached_property
    def user_id(self) -> UUID:
        return ids.user_id(self.user_name)

    @cached_property
    def id(self) -> UUID:
        return ids.conversation_id(self.user_id, self.name)


async def add_many(
    database: Database,
    counter: TokenCounter,
    conversation: ConversationRef,
    messages: Sequence[MessageInput],
    *,
    on_conflict: OnConflict = "error",
    max_bytes: int,
    redactor: Redactor,
) -> list[Message]:
    """Store messages in order, all or none; return them as stored, known ones included.

    A known `external_id` with the same content is the same message. With other content it is a `Conflict`, or with
    `on_conflict="skip"` the stored one is returned and nothing changes. An erased message is not stored again: `Erased`
    is raised, or with "skip" it is left out. `redactor` marks secrets before anything else is done.
    """
    _check_messages(messages, on_conflict)
    rows = await to_thread(_build_rows, messages, conversation, max_bytes, redactor)
    if not rows:
        return []
    result = await store_new(database, counter, {conversation.id: conversation}, rows, on_conflict=on_conflict)
    return [result.stored[row.id] for row in rows if row.id not in result.erased]


def hold(
    held: list[Message],
    id: UUID,
    counter: TokenCounter,
    conversation: ConversationRef,
    messages: Sequence[MessageInput],
    on_conflict: OnConflict,
    max_bytes: int,
    redactor: Redactor,
) -> list[Message]:
    """Append messages to those that a private conversation holds; return them as `add_many` does."""
    _check_messages(messages, on_conflict)
    rows = _build_rows(messages, conversation, max_bytes, redactor)
    result = partition(rows, {message.id: message for message in held}, frozenset())
    if on_conflict == "error":
        _check_conflicts(result)
    count_tokens(result.new, counter)
    for seq, row in enumerate(result.new, len(held) + 1):
        vars(row).update(seq=seq, conversation_id=id)
    held += result.new
    return [result.stored[row.id] for row in rows]


def _check_messages(messages: object, on_conflict: object) -> None:
    is_list = isinstance(messages, Iterable) and not isinstance(messages, Mapping | str)
    if on_conflict not in ("error", "skip") or not is_list:
        raise InvalidInput('Give a list of messages, and on_conflict="error" or "skip".')


async def store_new(
    database: Database,
    counter: TokenCounter,
    conversations: Mapping[UUID, ConversationRef],
    rows: Sequence[Message],
    *,
    on_conflict: OnConflict = "skip",
    imported: bool = False,
) -> Partition:
    """Store the new ones of a user's rows, all or none; return them.

    Of an import most may be known: they are looked up first, and not counted. Raises `Conflict` and `Erased` with
    `on_conflict="error"`; else known rows with other content stay as they are, and erased ones are left out.
    """
    user = rows[0].user_id
    known_rows: dict[UUID, Message] = {}
    last: dict[UUID, int] = {}
    erased: frozenset[UUID] = frozenset()
    if imported:
        async with database.user_transaction(user) as tx:
            last = await store.last_numbers(tx, conversations)
            known_rows = await store.by_ids(tx, _ids_by_name(row for row in rows if last.get(row.conversation_id)))
    while (result := partition(rows, known_rows, erased)).new:
        await to_thread(count_tokens, result.new, counter)
        wanted = {row.conversation_id for row in result.new if row.external_id is not None}
        try:
            async with database.user_transaction(user) as tx:
                locked = await _lock(tx, {id: conversations[id] for id in wanted}) if wanted else {}
                # There are messages that were not looked for.
                if any(locked[id] != last.get(id, 0) for id in wanted):
                    known_rows = await store.by_ids(tx, _ids_by_name(rows))
                    result = partition(rows, known_rows, erased)
                if on_conflict == "error":
                    _check_conflicts(result)
                # Those that were removed since they were looked for.
                count_tokens(result.new, counter)
                await _number_and_store(tx, conversations, result.new)
                return result
        except _ErasedMessages as more:
            # Nothing was stored, and no conversation was made for them alone.
            if on_conflict == "error":
                raise Erased(tuple(number for number, row in enumerate(rows, 1) if row.id in more.args[0])) from None
            erased |= more.args[0]
    return result


class Partition(NamedTuple):
    """`stored` has new and known messages by id; `conflicts` the known message by the row's place; `erased` are ids."""

    new: list[Message]
    stored: dict[UUID, Message]
    conflicts: dict[int, Message]
    erased: frozenset[UUID]


def partition(rows: Sequence[Message], known_rows: Mapping[UUID, Message], erased: frozenset[UUID]) -> Partition:
    """Part rows into new, known and erased ones; a row that comes twice is new once."""
    stored = dict(known_rows)
    new: list[Message] = []
    conflicts: dict[int, Message] = {}
    for number, row in enumerate(rows):
        if row.id in erased:
            continue
        if row.id not in stored:
            stored[row.id] = row
            new.append(row)
        elif _content_key(stored[row.id]) != _content_key(row):
            conflicts[number] = stored[row.id]
    return Partition(new, stored, conflicts, erased)


def describe_conflict(message: Message) -> str:
    where = f"message {message.seq}" if message.seq else "a message before it"
    return f"external_id {message.external_id!r} is known with other content ({where})."


def _check_conflicts(result: Partition) -> None:
    for number, message in result.conflicts.items():
        error = Conflict(
            f"message {number + 1}: {describe_conflict(message)} Stored messages never change: give it another "
            'external_id, or on_conflict="skip" to keep what is stored. Nothing of this call was stored.'
        )
        error.number = number + 1
        raise error


def _build_rows(
    messages: Sequence[MessageInput], conversation: ConversationRef, max_bytes: int, redactor: Redactor
) -> list[Message]:
    rows = []
    for number, message in enumerate(messages, 1):
        try:
            rows.append(build_row(message, conversation, max_bytes))
        except InvalidInput as error:
            raise InvalidInput(f"message {number}: {error} Nothing of this call was stored.") from None
    redactor.reject_secret_names(user=conversation.user_name, conversation=conversation.name)
    for row in rows:
        redactor.redact_message(row)
    return rows


def build_row(message: MessageInput, conversation: ConversationRef, max_bytes: int) -> Message:
    """Return a checked message with its id, neither counted nor numbered; raise `InvalidInput` for a bad one."""
    for key, ours in (("user", conversation.user_name), ("conversation", conversation.name)):
        if isinstance(message, Mapping) and message.get(key, ours) != ours:
            raise InvalidInput(f"it is of the {key} {message[key]!r} and was given to {ours!r}.")
    new = validate_message(message, max_bytes=max_bytes)
    speaker = conversation.speaker
    if speaker is not None and new.name not in (None, speaker):
        raise InvalidInput(f"it is said by {new.name!r}, and {speaker!r} may not speak for others in this space.")
    if speaker is not None and new.role in INSTRUCTION_ROLES:
        raise InvalidInput(f"it has the role {new.role}, and would instruct every member: only the application may.")
    return store.build_message(
        user_id=conversation.user_id,
        conversation_id=conversation.id,
        seq=0,
        id=ids.message_id(conversation.id, new.external_id),
        role=str(new.role),
        name=speaker if new.role == Role.USER and speaker else new.name,
        text=new.text,
        parts=new.content if isinstance(new.content, list) else None,
        tool_calls=new.tool_calls,
        tool_call_id=new.tool_call_id,
        tokens=UNCOUNTED_TOKENS,
        counter="",
        tags=new.tags,
        meta=new.metadata,
        external_id=new.external_id,
        occurred_at=new.occurred_at,
        recorded_at=new.occurred_at,
    )


def count_tokens(rows: Iterable[Message], counter: TokenCounter) -> None:
    name = counter.name
    for row in rows:
        if row.tokens != UNCOUNTED_TOKENS:
            continue
        tokens = counter.count(row.text or "")
        if row.tool_calls:
            tokens += counter.count(json.dumps(row.tool_calls, ensure_ascii=False, separators=(",", ":")))
        # Setting attributes of a model takes a fifth of counting.
        vars(row).update(tokens=tokens, counter=name)


def _ids_by_name(rows: Iterable[Message]) -> list[UUID]:
    return [row.id for row in rows if row.external_id is not None]


async def _lock(tx: Transaction, conversations: Mapping[UUID, ConversationRef]) -> dict[UUID, int]:
    """Lock conversations, so that nobody else writes there, and make missing ones; return their last numbers."""
    last = await store.lock_several(tx, conversations)
    if missing := conversations.keys() - last:
        await make_conversations(tx, [conversations[id] for id in missing])
        last |= await store.lock_several(tx, missing)
    return last


def _content_key(message: Message) -> tuple[object, ...]:
    return message.role, message.name, as_stored(message.content), as_stored(message.tool_calls), message.tool_call_id


class _ErasedMessages(Exception):
    """Raised if some of the messages were erased: its argument are their ids."""


async def _number_and_store(
    tx: Transaction, conversations: Mapping[UUID, ConversationRef], rows: Sequence[Message]
) -> None:
    moments: dict[UUID, list[datetime]] = {}
    for row in rows:
        moments.setdefault(row.conversation_id, []).append(row.occurred_at)
    counts = {id: len(said_at) for id, said_at in moments.items()}
    times = {id: (min(said_at), max(said_at)) for id, said_at in moments.items()}
    numbers = await store.take_numbers(tx, counts, times) if counts else {}
    if missing := counts.keys() - numbers:
        await make_conversations(tx, [conversations[id] for id in missing])
        numbers |= await store.take_numbers(tx, {id: counts[id] for id in missing}, times)
    # With the conversations locked: nothing of them is erased from here on.
    if erased := await store.erased_messages(tx, rows):
        raise _ErasedMessages(erased)
    last = {id: taken.last_seq - counts[id] for id, taken in numbers.items()}
    for row in rows:
        last[row.conversation_id] += 1
        vars(row).update(seq=last[row.conversation_id], recorded_at=numbers[row.conversation_id].recorded_at)
    await store.add(tx, rows)


async def make_conversations(tx: Transaction, conversations: Sequence[ConversationRef]) -> None:
    """Make the user of these conversations, the conversations and their watermarks, where missing."""
    made = [
        Conversation.model_construct(
            id=ref.id,
            name=ref.name,
            title=ref.title,
            channel=ref.channel,
            scope=ref.scope,
            # Maintenance erases a day later what nobody has erased.
            settings={"keep": "session", "message_retention_days": 1} if ref.keep == "session" else {},
        )
        for ref in conversations
    ]
    await store.make_conversations(tx, made, user_name=conversations[0].user_name, derivers=DERIVERS)
