"""The recent tier: users, conversations and their messages, which are never changed; and hashes of erased ones.

A tombstone keeps an erased message or fact from coming back with the same export, import or message. It is a hash of 16
bytes with the store's own key: of the id of a message or a fact, or of a message without external id, of its text,
user, conversation and time. Without the key it reveals nothing; with it, texts can only be guessed one by one.
"""

from __future__ import annotations

import hmac
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast
from uuid import UUID

from psycopg.types.json import Jsonb

from memstore.ids import uuid7
from memstore.models import Chunk, Conversation, EventType, Json, Message
from memstore.store.database import Database, Read, Transaction, read_all, read_one
from memstore.store.rows import row_builder
from memstore.store.sql import statements
from memstore.store.tokenize import TOKENIZER_VERSION

SQL = statements("messages")
build_message, build_conversation = row_builder(Message), row_builder(Conversation)
MAX_SEQ = 2**62
TOMBSTONE_BYTES = 16
CLEARED_SETTING = "cleared"


class Numbers(NamedTuple):
    """The last number taken in a conversation, and the time at which its transaction records."""

    last_seq: int
    recorded_at: datetime
    id: UUID


async def take_numbers(
    tx: Transaction, counts: Mapping[UUID, int], times: Mapping[UUID, tuple[datetime, datetime]]
) -> dict[UUID, Numbers]:
    """Reserve so many numbers of each conversation; return the last ones, without conversations that do not exist.

    `times` are the earliest and the latest of each conversation's messages.
    """
    values: Json = {"ids": list(counts), "counts": list(counts.values())}
    bounds = {"since": [times[id][0] for id in counts], "until": [times[id][1] for id in counts]}
    taken = await tx.all(SQL["take_numbers"], Numbers, **values, **bounds)
    return {numbers.id: numbers for numbers in taken}


async def lock(tx: Transaction, conversation: UUID) -> bool:
    """Let no other writer into the conversation until the transaction ends; False where there is none."""
    return bool(await lock_several(tx, [conversation]))


async def lock_several(tx: Transaction, conversations: Iterable[UUID]) -> dict[UUID, int]:
    """Let no other writer into these conversations until the transaction ends; return what `last_numbers` gives."""
    return dict(await tx.tuples(SQL["lock_conversations"], ids=list(conversations)))


async def last_numbers(tx: Transaction, conversations: Iterable[UUID]) -> dict[UUID, int]:
    """Return the last number taken in each of these conversations, those that there are."""
    return dict(await tx.tuples(SQL["last_numbers"], ids=list(conversations)))


async def add_user(tx: Transaction, name: str) -> bool:
    """Make the user, or the space; return whether it was not there."""
    return bool(await tx.run(SQL["add_user"], name=name, tokenizer=TOKENIZER_VERSION))


async def make_user(tx: Transaction, name: str) -> None:
    """Make the user, if it is not there; it stays until the transaction ends."""
    while not (await add_user(tx, name) or await tx.run(SQL["share_user"])):
        pass  # it was there, and was erased before it was locked


async def make_conversations(
    tx: Transaction, conversations: Sequence[Conversation], *, user_name: str, derivers: Sequence[str]
) -> None:
    """Make the user, the conversations and their watermarks, where missing; they stay until the transaction ends."""
    await make_user(tx, user_name)
    # In the order in which they are locked.
    missing = sorted(conversations, key=lambda conversation: conversation.id)
    while missing:
        present = [conversation.id for conversation in missing]
        # Nothing is derived of what is kept for a session alone.
        apart = {conversation.id for conversation in missing if conversation.settings.get("keep") == "session"}
        if await tx.run_many(SQL["add_conversation"], [vars(conversation) for conversation in missing]) < len(missing):
            # Others were there, and may have been erased before this.
            present = list(await lock_several(tx, present))
            apart |= set(await tx.column(SQL["for_a_session"], ids=present))
        watermarks = [
            {"conversation_id": id, "deriver": deriver} for id in present if id not in apart for deriver in derivers
        ]
        await tx.run_many(SQL["add_derivation"], watermarks)
        missing = [conversation for conversation in missing if conversation.id not in present]


async def update_conversation(
    tx: Transaction,
    conversation: UUID,
    settings: Json,
    *,
    title: str | None = None,
    channel: str | None = None,
    scope: str | None = None,
) -> None:
    """Set a conversation's settings, title, channel and scope, those that are given; earlier settings are logged."""
    await lock(tx, conversation)
    was = await settings_of(tx, conversation)
    if was | settings != was:
        await tx.run(SQL["add_setting_change"], id=uuid7(), conversation_id=conversation, before=was, recorded_at=None)
    texts = {"title": title, "channel": channel, "scope": scope}
    await tx.run(SQL["update_conversation"], id=conversation, settings=settings, **texts)


async def said_by(tx: Transaction, name: str) -> list[UUID]:
    """Return the ids of the messages that a speaker of this name has said."""
    return await tx.column(SQL["said_by"], name=name)


def read_conversation(conversation: UUID) -> Read[Conversation | None]:
    return read_one(SQL["conversation"], build_conversation, id=conversation)


async def conversation(tx: Transaction, conversation: UUID) -> Conversation | None:
    return await tx.get(read_conversation(conversation))


async def conversation_names(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, str]:
    return dict(await tx.tuples(SQL["conversation_names"], ids=list(ids)))


async def settings_of(tx: Transaction, conversation: UUID, *, as_of: datetime | None = None) -> Json:
    """Return the settings of a conversation as they were at a moment; {} where there is no conversation."""
    if as_of is not None:
        before: Json | None = await tx.value(SQL["settings_as_of"], dict, conversation_id=conversation, as_of=as_of)
        if before is not None:
            return before
    row = await tx.get(read_conversation(conversation))
    return row.settings if row else {}


async def reviews_facts(tx: Transaction, conversation: UUID) -> bool | None:
    """Return whether the user reviews what is derived of a conversation; None where neither has a setting."""
    return await tx.value(SQL["reviews_facts"], bool, conversation_id=conversation)


async def fact_settings(tx: Transaction, conversation: UUID | None = None) -> list[tuple[Any, Any, Any, Any]]:
    """Return `fact_instructions` and `fact_types` of the user and of a conversation; by default of each, once."""
    return await tx.tuples(SQL["fact_settings"], conversation_id=conversation) or [(None,) * 4]


async def conversations(
    tx: Transaction,
    channel: str | None = None,
    *,
    before: tuple[datetime, UUID] | None = None,
    limit: int | None = None,
) -> list[Conversation]:
    """Return the user's conversations, the latest first; those that come after one, by when that changed and its id."""
    at, id = before or (None, None)
    values = {"channel": channel, "before": at, "id": id, "limit": limit}
    return await tx.all(SQL["conversations"], build_conversation, **values)


async def add(tx: Transaction, messages: Sequence[Message]) -> None:
    """Store numbered messages, those of each conversation in order; raise watermarks, and commit."""
    if not messages:
        return
    places: dict[UUID, list[Message]] = {}
    for message in messages:
        places.setdefault(message.conversation_id, []).append(message)
    newest = [said[-1].seq for said in places.values()]
    said_at = [said[0].occurred_at for said in places.values()]
    for place, said in places.items():
        numbers = {"from_seq": said[0].seq, "to_seq": said[-1].seq}
        tx.record_event(EventType.MESSAGE_ADDED, place, **numbers, tokens=sum(message.tokens for message in said))
    pending = {"ids": list(places), "last_seqs": newest, "said_at": said_at}
    rows = [row_of(message) for message in messages]
    await tx.run_together([(SQL["add_message"], rows), (SQL["raise_watermarks"], [pending])], commit=True)


async def by_ids(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, Message]:
    rows = await tx.all(SQL["known_messages"], build_message, ids=list(ids))
    return {message.id: message for message in rows}


async def messages(
    tx: Transaction,
    conversation: UUID,
    *,
    from_seq: int = 1,
    to_seq: int = MAX_SEQ,
    roles: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    meta: Json | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
) -> list[Message]:
    """Return messages of a conversation in order; `since` is inclusive, `until` is not."""
    values = {"conversation_id": conversation, "from_seq": from_seq, "to_seq": to_seq, "since": since, "until": until}
    lists = {"roles": roles and [*map(str, roles)], "tags": tags and [*tags]}
    return await tx.all(SQL["messages"], build_message, **values, **lists, meta=meta, limit=limit)


async def whole(tx: Transaction, conversation: UUID, from_seq: int, to_seq: int) -> bool:
    """Return whether every message of a range is there: numbers have no gaps but by erasure."""
    values = {"conversation_id": conversation, "from_seq": from_seq, "to_seq": to_seq}
    return await tx.value(SQL["how_many"], int, **values) == to_seq - from_seq + 1


async def last_within(tx: Transaction, conversation: UUID, from_seq: int, to_seq: int, tokens: int) -> int:
    """Return the last number of a stretch that is to have about so many tokens: a batch must fit into memory."""
    values = {"conversation_id": conversation, "from_seq": from_seq, "to_seq": to_seq, "tokens": tokens}
    return await tx.value(SQL["within"], int, **values) or to_seq


def read_newest(
    conversation: UUID, *, limit: int, before: int = MAX_SEQ, role: str | None = None, as_of: datetime | None = None
) -> Read[list[Message]]:
    """Return the read of the newest messages before a number, the newest first, or of those of a role.

    `as_of` leaves out what was recorded later.
    """
    values = {"conversation_id": conversation, "before": before, "limit": limit, "as_of": as_of}
    return read_all(SQL["newest_messages"], build_message, **values, role=role and str(role))


async def in_rising_time(tx: Transaction, messages: Sequence[Message]) -> list[Message]:
    """Return consecutive messages of a conversation, each dated later than all before it.

    Clocks of a history go back at times, and many of its messages may have one time, so their order decides. Other
    times stay as they are.
    """
    if not messages:
        return []
    conversation, first = messages[0].conversation_id, messages[0].seq
    latest = await tx.value(SQL["time_before"], datetime, conversation_id=conversation, before=first)
    rising = []
    for message in messages:
        step = timedelta(microseconds=message.seq)
        latest = max(filter(None, (latest, message.occurred_at - step)))
        is_later = latest + step == message.occurred_at
        rising.append(message if is_later else message.model_copy(update={"occurred_at": latest + step}))
    return rising


def read_before(chunks: Sequence[Chunk]) -> Read[list[Message]]:
    """Return the read of what a person or an assistant said just before the message of each chunk."""
    conversations, seqs = [chunk.conversation_id for chunk in chunks], [(chunk.seq or 0) - 1 for chunk in chunks]
    return read_all(SQL["said_at"], build_message, conversation_ids=conversations, seqs=seqs)


async def sayings(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, Message | None]:
    """Return for each of these messages the one that decides who sees it: itself, or of a tool's result its call.

    None for a result without its call.
    """
    pairs = await tx.all(SQL["sayings"], _saying, ids=list(ids))
    return dict.fromkeys(ids) | dict(pairs)


def _saying(of_id: UUID, is_result: bool, **columns: Any) -> tuple[UUID, Message | None]:
    said = build_message(**columns)
    return of_id, None if is_result and not said.tool_calls else said


async def clear(tx: Transaction, conversation_id: UUID) -> None:
    """Begin a new stretch of a conversation after its newest message, and keep where the one before began."""
    tx.check_writer()
    for last_seq in (await lock_several(tx, [conversation_id])).values():
        await update_conversation(tx, conversation_id, {CLEARED_SETTING: last_seq})


def cleared_seq(settings: Json) -> int:
    """Return the number of the last message before the stretch that these settings were kept in; 0 for none."""
    after: int = settings.get(CLEARED_SETTING) or 0
    return after


async def roles(tx: Transaction, conversation: UUID, after: int = 0) -> dict[str, tuple[int, int]]:
    """Return for each role how many messages there are after a number, and how many tokens they have."""
    rows = await tx.tuples(SQL["roles"], conversation_id=conversation, after=after)
    return {role: (messages, tokens) for role, messages, tokens in rows}


async def everybody(database: Database, after: str = "") -> AsyncIterator[tuple[UUID, str]]:
    """Return the ids and names of all users, sorted by name; no transaction is open in between."""
    while True:
        async with database.admin_transaction() as tx:
            page: list[tuple[UUID, str]] = await tx.tuples(SQL["users"], after=after, limit=1000)
        for user in page:
            yield user
        if not page:
            return
        after = page[-1][1]


async def counts(tx: Transaction) -> dict[str, int]:
    [row] = await tx.all(SQL["counts"], dict[str, int])
    return row


async def ids_between(tx: Transaction, kind: str, first: UUID, last: UUID) -> list[UUID]:
    """Return the ids of facts, summaries, changes or receipts from one to another, both included: three at most."""
    return await tx.column(SQL["ids_between"], kind=kind, first=first, last=last)


def row_of(message: Message) -> dict[str, Any]:
    row = vars(message).copy()
    for name in ("parts", "tool_calls"):
        if row[name] is not None:
            # A list would go as an array.
            row[name] = Jsonb(row[name])
    return row


# Tombstones


async def tombstone_key(tx: Transaction) -> bytes:
    [key] = await tx.column(SQL["tombstone_key"])
    return cast(bytes, key)


def item_tombstone(key: bytes, item: UUID) -> bytes:
    return _digest(key, item.bytes)


def content_tombstone(key: bytes, message: Message) -> bytes:
    """Return the tombstone of a message without an external id: by conversation, role, words and time."""
    said = [
        str(message.conversation_id),
        message.role,
        message.name,
        as_stored(message.content),
        as_stored(message.tool_calls),
        message.tool_call_id,
        message.occurred_at.astimezone(UTC).isoformat(),
    ]
    return _digest(key, json.dumps(said, sort_keys=True).encode())


def _digest(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")[:TOMBSTONE_BYTES]


def as_stored(value: Any) -> Any:
    """Return JSON as jsonb gives it back: it knows no tuples, keys are texts, and 1e23 may come back an integer."""
    if isinstance(value, Mapping):
        return {str(key): as_stored(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_stored(member) for member in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023 else value


async def add_tombstones(tx: Transaction, erasure: UUID, digests: Collection[bytes]) -> int:
    """Keep the tombstones of an erasure; return how many."""
    buckets: defaultdict[int, bytearray] = defaultdict(bytearray)
    for digest in sorted(digests):
        buckets[_bucket(digest)] += digest
    rows = [{"bucket": bucket, "erasure_id": erasure, "digests": bytes(content)} for bucket, content in buckets.items()]
    await tx.run_many(SQL["add_tombstones"], rows)
    return len(digests)


def _bucket(digest: bytes) -> int:
    return int.from_bytes(digest[:2]) >> 4


async def _among(tx: Transaction, digests: Iterable[bytes]) -> set[bytes]:
    wanted = set(digests)
    buckets = sorted({_bucket(digest) for digest in wanted})
    packed = b"".join(await tx.column(SQL["tombstones"], buckets=buckets)) if buckets else b""
    return wanted & {packed[place : place + TOMBSTONE_BYTES] for place in range(0, len(packed), TOMBSTONE_BYTES)}


async def erased_messages(tx: Transaction, messages: Sequence[Message]) -> frozenset[UUID]:
    """Return the ids of those messages that were erased: as they are known by id, or by what they say and when.

    The id of one without an external id tells only where it was not made just now, as in an export of memstore's.
    """
    key = await _key_if_needed(tx) if messages else None
    if key is None:
        return frozenset()
    digests = [(item_tombstone(key, message.id), message.id) for message in messages]
    digests += [(content_tombstone(key, message), message.id) for message in messages if message.external_id is None]
    erased = await _among(tx, [digest for digest, _ in digests])
    return frozenset(id for digest, id in digests if digest in erased)


async def erased_items(tx: Transaction, items: Iterable[UUID]) -> set[UUID]:
    key = await _key_if_needed(tx)
    if key is None:
        return set()
    digests = {item_tombstone(key, item): item for item in items}
    return {digests[digest] for digest in await _among(tx, digests)}


async def is_anything_erased(tx: Transaction) -> bool:
    return await _key_if_needed(tx) is not None


async def _key_if_needed(tx: Transaction) -> bytes | None:
    return await tx.value(SQL["tombstone_key_if_needed"], bytes)
