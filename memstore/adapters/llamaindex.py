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

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from memstore.adapters._either import called
from memstore.models import Hit, Json, Message
from memstore.providers.fits import estimate
from memstore.text import replace_invalid_chars

KEY = "llama_index"  # of a message's metadata, and of a conversation's settings: what is archived
ROLES = {"function": "tool", "chatbot": "assistant", "model": "assistant"}  # that memstore calls otherwise
ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED
Run = tuple[int, int]


class MemstoreChatStore(AsyncDBChatStore):
    """A chat store whose keys are conversations of a user, of a blocking or an async store."""

    user: Any

    async def get_messages(
        self,
        key: str,
        status: Optional[MessageStatus] = ACTIVE,  # noqa: UP045  (pydantic reads it)
        limit: Optional[int] = None,  # noqa: UP045
        offset: Optional[int] = None,  # noqa: UP045
    ) -> list[ChatMessage]:
        """Give messages in order; those of a status, or all with None."""
        found = (await self._stored(key, status))[offset or 0 :]
        return [chat_of(one) for one in (found if limit is None else found[:limit])]

    async def count_messages(self, key: str, status: Optional[MessageStatus] = ACTIVE) -> int:  # noqa: UP045
        """Give how many there are."""
        return len(await self._stored(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = ACTIVE) -> None:
        """Add a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE) -> None:
        """Add messages: all or none, in order."""
        if messages:
            added = await called(self.user.conversation(key).add_many, [message_of(one) for one in messages])
            if status == ARCHIVED:
                await self._archive(key, added)

    async def set_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE) -> None:
        """Erase what there is, of any status, and put these in its place."""
        await self.delete_messages(key)
        await self.add_messages(key, messages, status)

    async def delete_message(self, key: str, idx: int) -> Optional[ChatMessage]:  # noqa: UP045
        """Erase the message of a number, from 1, and give it; None where there is none."""
        found = [one for one in await self._stored(key, None) if one.seq == idx]
        erased = await self._erased(key, found)
        return erased[0] if erased else None

    async def delete_messages(self, key: str, status: Optional[MessageStatus] = None) -> None:  # noqa: UP045
        """Erase messages with all that was derived of them; those of a status, or all."""
        await self._erased(key, await self._stored(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Erase the oldest active messages, and give them."""
        return await self._erased(key, (await self._stored(key, ACTIVE))[:n])

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and give them."""
        oldest = (await self._stored(key, ACTIVE))[:n]
        if oldest:
            await self._archive(key, oldest)
        return [chat_of(one) for one in oldest]

    async def get_keys(self) -> list[str]:
        """Give the names of the user's conversations."""
        return [one.name for one in await called(self.user.conversations)]

    async def _stored(self, key: str, status: MessageStatus | None) -> list[Message]:
        conversation = self.user.conversation(key)
        found: list[Message] = await called(conversation.messages)
        if status is None or not found:
            return found
        runs = await self._archived(key)
        return [one for one in found if (status == ARCHIVED) == any(first <= one.seq <= last for first, last in runs)]

    async def _archived(self, key: str) -> list[Run]:
        told = await called(self.user.conversation(key).info)
        return [(first, last) for first, last in ((told.settings if told else {}).get(KEY) or {}).get("archived", ())]

    async def _archive(self, key: str, messages: Sequence[Message]) -> None:
        """Note numbers of messages as runs: as a rule there is one."""
        runs = sorted([*await self._archived(key), *((one.seq, one.seq) for one in messages)])
        joined: list[Run] = []
        for first, last in runs:
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(last, joined[-1][1])
            else:
                joined.append((first, last))
        await called(self.user.conversation(key).describe, settings={KEY: {"archived": [list(run) for run in joined]}})

    async def _erased(self, key: str, messages: Sequence[Message]) -> list[ChatMessage]:
        """Erase messages; a conversation of which none is left goes too."""
        if messages:
            await called(self.user.erase_message, *messages)
            if not await self._stored(key, None):
                await called(self.user.conversation(key).erase)
        return [chat_of(one) for one in messages]


class MemstoreMemoryBlock(BaseMemoryBlock[str]):
    """What is remembered about the newest question: facts, summaries and messages, at most `max_tokens` of them.

    With another chat store than memstore's, `keep=True` has what leaves the short-term queue kept and derived.
    """

    name: str = "memory"
    description: Optional[str] = "What is known of the user and was said before."  # noqa: UP045
    priority: int = 1
    user: Any
    limit: int = 20
    max_tokens: int = 1000
    keep: bool = False

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [one.content for one in messages or () if one.role == MessageRole.USER and (one.content or "").strip()]
        if not said:
            return ""
        hits = await called(self.user.recall, said[-1], limit=self.limit)
        present = {one.content for one in messages or ()}
        return fitting([_line(hit) for hit in hits if hit.text not in present], self.max_tokens)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if self.keep:
            for message in messages:
                session = message.additional_kwargs.get("session_id", "default")
                await called(self.user.conversation(session).add_many, [message_of(message)])

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the least relevant, at least so many tokens; None where nothing is left."""
        return fitting(content.split("\n\n"), _tokens(content) - tokens_to_truncate) or None


def fitting(texts: Sequence[str], most: int) -> str:
    """Give as many of the first texts as have at most so many tokens, counted as they stand together."""
    kept = [*texts]
    while kept and _tokens("\n\n".join(kept)) > most:
        kept.pop()
    return "\n\n".join(kept)


def message_of(chat: ChatMessage) -> Json:
    """Give a chat message as memstore keeps it: its text, and all of it where that does not say it."""
    role = str(getattr(chat.role, "value", chat.role))
    message: Json = {"role": ROLES.get(role, role), "content": replace_invalid_chars(chat.content or "")}
    if ChatMessage(role=chat.role, content=message["content"]) != chat:
        message["metadata"] = {KEY: chat.model_dump(mode="json")}
    return message


def chat_of(message: Message) -> ChatMessage:
    """Give a stored message as it came, or what was said elsewhere."""
    if KEY in message.meta:
        return ChatMessage.model_validate(message.meta[KEY])
    return ChatMessage(role=MessageRole(message.role), content=message.text or "")


def _line(hit: Hit) -> str:
    who = f"{hit.speaker}: " if hit.speaker and hit.tier == "messages" else ""
    return f"{hit.occurred_at:%Y-%m-%d} {who}{hit.text}".replace("\n\n", "\n")


def _tokens(text: str) -> int:
    return estimate([{"role": "system", "content": text}]) - estimate([{"role": "system", "content": ""}])
