"""LlamaIndex's chat store over conversations, and a memory block of what is recalled.

    user = memstore.open().user("alice")
    memory = Memory.from_defaults(
        session_id="lisbon",
        chat_store=MemstoreChatStore(user=user),
        memory_blocks=[MemstoreMemoryBlock(user=user, max_tokens=800)],
    )

Messages that leave the short-term queue are archived, and still recalled in every session; deleted ones are erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from memstore.adapters._json import is_storable, pack, unpack
from memstore.adapters._sync_or_async import maybe_await
from memstore.formats.parts import clean_name, indent_further_lines
from memstore.models import Hit, Json, Message
from memstore.providers.tiktoken import estimate
from memstore.text import replace_invalid_chars
from memstore.tool_calls import stored_call

# Of a message's metadata, and of a conversation's settings: what is archived.
META_KEY = "llama_index"
Run = tuple[int, int]


class MemstoreChatStore(AsyncDBChatStore):
    """A chat store whose keys are conversations of a user, of a blocking or an async store."""

    user: Any

    async def get_messages(
        self,
        key: str,
        status: Optional[MessageStatus] = MessageStatus.ACTIVE,  # noqa: UP045  (pydantic reads it)
        limit: Optional[int] = None,  # noqa: UP045
        offset: Optional[int] = None,  # noqa: UP045
    ) -> list[ChatMessage]:
        """Return messages in order, of one status, or all."""
        rows = (await self._stored(key, status))[offset or 0 :]
        return [to_chat(row) for row in (rows if limit is None else rows[:limit])]

    async def count_messages(self, key: str, status: Optional[MessageStatus] = MessageStatus.ACTIVE) -> int:  # noqa: UP045
        """Return how many there are."""
        return len(await self._stored(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Add a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add messages: all or none, in order."""
        if messages:
            added = await maybe_await(self.user.conversation(key).add_many, [to_message(each) for each in messages])
            if status == MessageStatus.ARCHIVED:
                await self._archive(key, added)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace all messages, of any status, by these."""
        await self.delete_messages(key)
        await self.add_messages(key, messages, status)

    async def delete_message(self, key: str, idx: int) -> Optional[ChatMessage]:  # noqa: UP045
        """Erase the message of a number, from 1, and give it; None where there is none."""
        erased = await self._erase(key, [row for row in await self._stored(key, None) if row.seq == idx])
        return erased[0] if erased else None

    async def delete_messages(self, key: str, status: Optional[MessageStatus] = None) -> None:  # noqa: UP045
        """Erase messages with all that was derived of them; those of a status, or all."""
        await self._erase(key, await self._stored(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Erase the oldest active messages, and give them."""
        return await self._erase(key, (await self._stored(key, MessageStatus.ACTIVE))[:n])

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and give them."""
        if oldest := (await self._stored(key, MessageStatus.ACTIVE))[:n]:
            await self._archive(key, oldest)
        return [to_chat(row) for row in oldest]

    async def get_keys(self) -> list[str]:
        """Return the names of the user's conversations."""
        return [each.name for each in await maybe_await(self.user.conversations)]

    async def _stored(self, key: str, status: MessageStatus | None) -> list[Message]:
        rows: list[Message] = await maybe_await(self.user.conversation(key).messages)
        if status is None or not rows:
            return rows
        runs = await self._archived_runs(key)
        return [
            row
            for row in rows
            if (status == MessageStatus.ARCHIVED) == any(first <= row.seq <= last for first, last in runs)
        ]

    async def _archived_runs(self, key: str) -> list[Run]:
        info = await maybe_await(self.user.conversation(key).info)
        kept = (info.settings if info else {}).get(META_KEY) or {}
        return [(first, last) for first, last in kept.get("archived", ())]

    async def _archive(self, key: str, messages: Sequence[Message]) -> None:
        runs = sorted([*await self._archived_runs(key), *((row.seq, row.seq) for row in messages)])
        joined: list[Run] = []
        for first, last in runs:
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(last, joined[-1][1])
            else:
                joined.append((first, last))
        settings = {META_KEY: {"archived": [list(run) for run in joined]}}
        await maybe_await(self.user.conversation(key).update, settings=settings)

    async def _erase(self, key: str, messages: Sequence[Message]) -> list[ChatMessage]:
        """Erase messages; a conversation of which none is left goes too."""
        if messages:
            await maybe_await(self.user.erase_message, *messages)
            if not await self._stored(key, None):
                await maybe_await(self.user.conversation(key).erase)
        return [to_chat(row) for row in messages]


class MemstoreMemoryBlock(BaseMemoryBlock[str]):
    """What is remembered about the newest question: facts, summaries and messages, in at most `max_tokens` tokens."""

    name: str = "memory"
    description: Optional[str] = "Facts about the user, and earlier messages."  # noqa: UP045
    priority: int = 1
    user: Any
    limit: int = 20
    max_tokens: int = 1000

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        questions = [chat.content for chat in messages or () if chat.role == MessageRole.USER]
        questions = [text for text in questions if (text or "").strip()]
        if not questions:
            return ""
        hits = await maybe_await(self.user.recall, questions[-1], limit=self.limit)
        present = [chat.content or "" for chat in messages or ()]
        # A hit may be a part of one.
        absent = [hit for hit in hits if not any(hit.text in text for text in present)]
        return fit([_format_hit(hit) for hit in absent], self.max_tokens)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Do nothing: the chat store keeps messages that leave the short-term queue."""

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the least relevant, at least so many tokens; None where nothing is left."""
        return fit(content.split("\n\n"), _count_tokens(content) - tokens_to_truncate) or None


def fit(texts: Sequence[str], max_tokens: int) -> str:
    """Return the first texts that fit into the tokens, counted together."""
    kept = [*texts]
    while kept and _count_tokens("\n\n".join(kept)) > max_tokens:
        kept.pop()
    return "\n\n".join(kept)


def to_message(chat: ChatMessage) -> Json:
    """Return a chat message as memstore keeps it: its text and calls, and all of it where they do not say it."""
    role = str(getattr(chat.role, "value", chat.role))
    role = {"function": "tool", "chatbot": "assistant", "model": "assistant"}.get(role, role)
    message: Json = {"role": role, "content": replace_invalid_chars(chat.content or "")}
    if ChatMessage(role=chat.role, content=message["content"]) != chat:
        message["metadata"] = {META_KEY: pack(chat.model_dump(mode="json"))}
        if is_storable(calls := _calls(chat)):
            message |= calls
    return message


def to_chat(message: Message) -> ChatMessage:
    """Return a stored message as it came, or one of another application."""
    if META_KEY in message.meta:
        return ChatMessage.model_validate(unpack(message.meta[META_KEY]))
    return ChatMessage(role=MessageRole(message.role), content=message.text or "")


def _calls(chat: ChatMessage) -> Json:
    calls = [block for block in chat.blocks if isinstance(block, ToolCallBlock)]
    if calls:
        return {"tool_calls": [stored_call(call.tool_call_id, call.tool_name, call.tool_kwargs) for call in calls]}
    answered = chat.additional_kwargs.get("tool_call_id")
    return {"tool_call_id": str(answered)} if chat.role == MessageRole.TOOL and answered else {}


def _format_hit(hit: Hit) -> str:
    who = f"{clean_name(hit.speaker)}: " if hit.speaker and hit.tier == "messages" else ""
    lines = indent_further_lines(hit.text_with_later).splitlines()
    # An empty line ends an item.
    return f"{hit.occurred_at:%Y-%m-%d} {who}" + "\n".join(filter(None, lines))


def _count_tokens(text: str) -> int:
    return estimate([{"role": "system", "content": text}]) - estimate([{"role": "system", "content": ""}])
