"""Sessions of the OpenAI Agents SDK, stored as conversations, and a token budget for the model's input.

    user = memstore.open().user("alice")
    session = MemstoreSession("lisbon", user)
    shown = RunConfig(session_input_callback=memory_callback(session, budget=4000))
    await Runner.run(agent, "What should I avoid eating?", session=session, run_config=shown)

A session returns items exactly as they were added. They are derived and recalled like any other conversation, in every
session of the user: `memory_callback` puts facts, summaries and messages of other sessions into the model's input.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any

from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from memstore.adapters._json import is_storable, pack, unpack
from memstore.adapters._sync_or_async import maybe_await
from memstore.models import Json, Message, Role
from memstore.providers.tiktoken import estimate
from memstore.text import replace_invalid_chars

# Of a message's metadata: what its role, text and calls do not say.
META_KEY = "openai_agents"
Callback = Callable[[list[Json], list[Json]], Coroutine[Any, Any, list[Json]]]


class MemstoreSession:
    """A `Session`: the conversation named `session_id` of a user, from a blocking or an async store.

    Over a blocking store it may be used in any event loop. `clear_session` begins a new stretch: the session is empty,
    and its messages are still recalled until `forget`, or `user.erase`, erases them. `pop_item` erases.
    """

    def __init__(
        self, session_id: str, user: Any, session_settings: SessionSettings | dict[str, Any] | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self.conversation = user.conversation(session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, or the newest `limit` of them, in order."""
        limit = resolve_session_limit(limit, self.session_settings)
        messages = await maybe_await(self.conversation.recent, None if limit is None else max(limit, 0))
        items = [item for message in messages for item in to_items(message)]
        return items if limit is None else items[max(len(items) - limit, 0) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add items: all or none, in order."""
        if items:
            await maybe_await(self.conversation.add_many, [*to_messages(items)])

    async def pop_item(self) -> Any | None:
        """Erase the newest item, with all that was derived from it, and return it; None if there is none."""
        while newest := await maybe_await(self.conversation.recent, 1):
            certificate = await maybe_await(self.conversation.user.erase_message, newest[0])
            # Without a count somebody else has popped it.
            if certificate.counts.get("messages"):
                *other_items, last = to_items(newest[0])
                await self.add_items(other_items)
                return last
        return None

    async def clear_session(self) -> None:
        """Empty the session; its messages are still recalled."""
        await maybe_await(self.conversation.clear)

    async def forget(self) -> Any:
        """Erase the session with all that was derived from it; return the certificate."""
        return await maybe_await(self.conversation.erase)


def memory_callback(session: MemstoreSession, *, budget: int, **options: Any) -> Callback:
    """Return a `session_input_callback` that shows a model what is remembered, in at most `budget` tokens.

    The newest turns, summaries, facts and what else is recalled about the new question come before the new input;
    `options` are as in `conversation.context`, such as `model`. Without a question, as after a tool's answer that a
    person has approved, the history is shown as it is. Raises `BudgetTooSmall` where the input alone is more.
    """

    async def callback(history: list[Json], new_input: list[Json]) -> list[Json]:
        messages = [*to_messages(new_input)]
        questions = (_text(message) for message in reversed(messages) if message["role"] == "user")
        question = next(filter(None, questions), None)
        if question is None:
            return [*history, *new_input]
        reserve = await asyncio.to_thread(_count_beside, messages, question) + options.get("reserve", 0)
        asked = options | {"budget": budget, "reserve": reserve, "format": "openai"}
        chats = (await maybe_await(session.conversation.context, question, **asked)).messages
        # Without the question: new input asks it.
        del chats[max(place for place, chat in enumerate(chats) if chat["role"] == "user")]
        items = chain.from_iterable(map(_items, chats))
        # The runner stores what is not in here.
        history[:] = [item for item in items if item.get("content") != ""]
        return [*history, *new_input]

    return callback


def to_messages(items: Iterable[Json]) -> Iterator[Json]:
    """Yield items as messages: the calls of one answer together, as chat APIs have them, other items one by one."""
    for is_work, group in groupby(items, key=lambda item: item.get("type") in ("function_call", "reasoning")):
        run = [*group]
        messages = [to_message(item) for item in run]
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        if is_work and len(run) > 1 and len(calls) == sum(item["type"] == "function_call" for item in run) > 0:
            kept = {META_KEY: {"item": pack(run)}}
            messages = [{"role": "assistant", "content": None, "tool_calls": calls, "metadata": kept}]
        yield from messages


def to_message(item: Json) -> Json:
    """Return an item of the Responses API as a message: its words as text, the rest as metadata."""
    message = _message(item)
    if message is None or not is_storable(item) or len(_items(message)) != 1:
        return _opaque(item, message)
    [back] = _items(message)
    if any(key not in item or item[key] != value for key, value in back.items()):
        return _opaque(item, message)
    more = {key: value for key, value in item.items() if key not in back}
    return message | {"metadata": {META_KEY: {"more": more}} if more else {}}


def to_items(message: Message) -> list[Json]:
    """Return a stored message as items: one, or the calls of an answer with their reasoning."""
    kept = message.meta.get(META_KEY, {})
    if "item" in kept:
        item = unpack(kept["item"])
        return item if isinstance(item, list) else [item]
    chat = {"role": message.role, "content": message.content}
    calls = {"tool_calls": message.tool_calls, "tool_call_id": message.tool_call_id}
    first, *other_items = _items(chat | calls)
    return [first | kept.get("more", {}), *other_items]


def _opaque(item: Json, made: Json | None) -> Json:
    """Return an item as it is kept: whole, or as text where Postgres' JSON cannot hold it."""
    made = made or {"role": "assistant"}
    plain: Json = {"role": made["role"], "content": replace_invalid_chars(_text(made))}
    if made["role"] == "tool":
        plain["tool_call_id"] = replace_invalid_chars(str(made["tool_call_id"]))
    return plain | {"metadata": {META_KEY: {"item": pack(item)}}}


def _message(item: Json) -> Json | None:
    """Return an item as a message; None for other items: reasoning, calls of hosted tools, …"""
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        calls = [{"id": item.get("call_id"), "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if kind == "function_call_output":
        said = item.get("output")
        return {"role": "tool", "content": said if _is_content(said) else "", "tool_call_id": item.get("call_id")}
    if kind == "message" and item.get("role") in tuple(Role) and _is_content(item.get("content")):
        return {"role": item["role"], "content": item["content"]}
    return None


def _is_content(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(part, dict) for part in value))


def _items(chat: Json) -> list[Json]:
    if chat["role"] == "tool":
        return [{"type": "function_call_output", "call_id": chat.get("tool_call_id"), "output": chat["content"]}]
    said: list[Json] = [] if chat.get("content") is None else [{"role": chat["role"], "content": chat["content"]}]
    for call in chat.get("tool_calls") or ():
        said.append({"type": "function_call", "call_id": call.get("id"), **call.get("function", {})})
    return said


def _text(chat: Json) -> str:
    content = chat.get("content") or ""
    parts = [{"text": content}] if isinstance(content, str) else content
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _count_beside(messages: Sequence[Json], question: str) -> int:
    """Return the tokens of the new input without its question, which is counted with the context."""
    chats = [{key: value for key, value in message.items() if key != "metadata"} for message in messages]
    return max(estimate(chats) - estimate([{"role": "user", "content": question}]), 0)
