"""pydantic-ai's `ConversationStore` over a user's documents.

    store = MemstoreConversationStore(memstore.open().user("alice"))
    conversation = await store.load("lisbon") or Conversation(conversation_id="lisbon")
    result = await agent.run("What should I avoid eating?", conversation=conversation)
    await store.save(result)

Questions and answers also become messages of memstore's conversation of that name, to be derived and recalled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, TextPart, UserPromptPart

from memstore.adapters._json import pack, unpack
from memstore.adapters._sync_or_async import maybe_await
from memstore.errors import Conflict
from memstore.models import Document, Json, NewDocument
from memstore.text import replace_invalid_chars

RECORDS, ENTRIES = ("pydantic-ai", "records"), ("pydantic-ai", "entries")
RECORD = TypeAdapter(ConversationRecord)
ENTRY = TypeAdapter(ConversationEntry)


class MemstoreConversationStore(ConversationStore):
    """A conversation store of a user, of a blocking or an async store.

    A record and its new entries are written in one transaction. Deleting a conversation removes entries that no other
    history reaches, and erases rows derived from it.
    """

    def __init__(self, user: Any) -> None:
        self._user = user
        self._documents = user.documents()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None where there is none."""
        document = await maybe_await(self._documents.get, RECORDS, conversation_id)
        return None if document is None else RECORD.validate_python(document.value)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return the records, those of a scope, the latest first."""
        where = {} if scope is None else {"scope": scope}
        records = [RECORD.validate_python(document.value) for document in await self._all(RECORDS, where)]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries, in place of the one of `expected_revision`; all or nothing."""
        name, head = record.conversation_id, record.head_id
        if head is not None and head not in {entry.id for entry in new_entries} and not await self._entry(head):
            raise ConversationConflict(name)
        new = [NewDocument(RECORDS, name, RECORD.dump_python(record, mode="json"), {})]
        for entry in new_entries:
            value = _dump(entry) | {"parent_id": entry.parent_id, "of": name}
            new.append(NewDocument(ENTRIES, entry.id, value, {}))
        await self._write(name, expected_revision, new)
        messages = [message for entry in new_entries for message in to_messages(entry)]
        if messages:
            await maybe_await(self._user.conversation(name).add_many, messages, on_conflict="skip")

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Remove a record, entries that no other history reaches, and rows derived from them."""
        entries = {document.key: document.value for document in await self._all(ENTRIES)}
        reached: set[str] = set()
        for record in await self.read_records():
            if record.conversation_id != conversation_id:
                for id in (record.head_id, *record.branches):
                    while id is not None and id in entries and id not in reached:
                        reached.add(id)
                        id = entries[id]["parent_id"]
        gone = [(ENTRIES, id) for id, value in entries.items() if value["of"] == conversation_id and id not in reached]
        await self._write(conversation_id, expected_revision, [], [(RECORDS, conversation_id), *gone])
        await maybe_await(self._user.conversation(conversation_id).erase)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry; LookupError where there is none."""
        document = await self._entry(entry_id)
        if document is None:
            raise LookupError(entry_id)
        return _read(document)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to one, in order, or the last `limit` of them."""
        if head_id is None or limit == 0:
            return []
        head = await self.read_entry(head_id)
        if head.parent_id is None or limit == 1:
            return [head]
        stored = {document.key: document for document in await self._all(ENTRIES)}
        entries = [head]
        while entries[-1].parent_id is not None and (limit is None or len(entries) < limit):
            entries.append(_read(stored[entries[-1].parent_id]))
        return entries[::-1]

    async def _entry(self, id: str) -> Document | None:
        document: Document | None = await maybe_await(self._documents.get, ENTRIES, id)
        return document

    async def _all(self, namespace: tuple[str, ...], where: Json | None = None) -> list[Document]:
        options = {"where": where, "limit": 1_000_000, "refresh": False}
        documents: list[Document] = await maybe_await(self._documents.search, namespace, **options)
        return documents

    async def _write(
        self,
        name: str,
        revision: str | None,
        new: Sequence[NewDocument],
        gone: Sequence[tuple[tuple[str, ...], str]] = (),
    ) -> None:
        def unchanged(there: Mapping[tuple[tuple[str, ...], str], Document]) -> bool:
            stored = there.get((RECORDS, name))
            return (None if stored is None else stored.value["revision"]) == revision

        try:
            await maybe_await(self._documents.write, new, gone, unchanged=unchanged)
        except Conflict:
            raise ConversationConflict(name) from None


def to_messages(entry: ConversationEntry) -> list[Json]:
    """Return an entry as messages: the user's question, and the model's answer in words."""
    text = "\n".join(_texts(entry.message))
    if not text.strip():
        return []
    role = "user" if isinstance(entry.message, ModelRequest) else "assistant"
    return [{"role": role, "content": replace_invalid_chars(text), "external_id": entry.id}]


def _texts(message: ModelMessage) -> list[str]:
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts += [piece for piece in content if isinstance(piece, str)]
    return texts


def _dump(entry: ConversationEntry) -> Json:
    packed = pack(ENTRY.dump_python(entry, mode="json"))
    return {"json": packed} if isinstance(packed, str) else packed


def _read(document: Document) -> ConversationEntry:
    entry = {key: value for key, value in document.value.items() if key != "of"}
    return ENTRY.validate_python(unpack(entry.get("json", entry)))
