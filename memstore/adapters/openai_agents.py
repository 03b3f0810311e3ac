"""Sessions of the OpenAI Agents SDK, kept as conversations, and a budget for what of them a model is shown.

    user = memstore.open().user("alice")
    session = MemstoreSession("lisbon", user)
    shown = RunConfig(session_input_callback=remembered(session, budget=4000))
    await Runner.run(agent, "What should I avoid eating?", session=session, run_config=shown)

A session gives back exactly what was put in. What is in it is derived and recalled like any other conversation, in
every session of the user: `remembered` puts facts, summaries and what was said elsewhere into the model's input.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from memstore.adapters._either import called
from memstore.models import Json, Message, Role
from memstore.providers.fits import estimate
from memstore.text import INVALID_CHARS, replace_invalid_chars

KEY = "openai_agents"  # of a message's metadata: what its role, text and calls do not say
CALL, RESULT = "function_call", "function_call_output"
Callback = Callable[[list[Json], list[Json]], Coroutine[Any, Any, list[Json]]]


class MemstoreSession:
    """A `Session`: the conversation named `session_id` of a user, from a blocking or an async store.

    Over a blocking store it may be used in any event loop. `clear_session` begins a new stretch: the session is empty,
    and what was said stays recalled until `forget`, or `user.erase`, erases it. `pop_item` erases.
    """

    def __init__(
        self, session_id: str, user: Any, session_settings: SessionSettings | dict[str, Any] | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self.conversation = user.conversation(session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Give the items, or the newest `limit` of them, in order."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is None:
            found = await called(self.conversation.get_all)
        else:
            found = await called(self.conversation.get_recent, max(most, 0))
        items = [item for message in found for item in items_of(message)]
        return items if most is None else items[max(len(items) - most, 0) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add items: all or none, in order."""
        if items:
            await called(self.conversation.add_many, [message_of(item) for item in items])

    async def pop_item(self) -> Any | None:
        """Erase the newest item, with all that was derived of it, and give it; None where there is none."""
        while found := await called(self.conversation.get_recent, 1):
            certificate = await called(self.conversation.user.erase_message, found[0])
            if certificate.counts.get("messages"):  # else somebody else has popped it
                return items_of(found[0])[-1]
        return None

    async def clear_session(self) -> None:
        """Empty the session; what was said in it is still recalled."""
        await called(self.conversation.clear)

    async def forget(self) -> Any:
        """Erase the session with all that was derived of it; give the certificate."""
        return await called(self.conversation.erase)


def remembered(session: MemstoreSession, *, budget: int, **asked: Any) -> Callback:
    """Give a `session_input_callback` that shows a model what is remembered, in at most `budget` tokens.

    The newest turns, summaries, facts and what else is recalled about the new question come before the new input;
    `asked` is as in `conversation.context`, such as `model` or `system`. Without a question, as after a tool's answer
    that a person has approved, the history is shown as it is. Raises `BudgetTooSmall` where the input alone is more.
    """

    async def callback(history: list[Json], new_input: list[Json]) -> list[Json]:
        given = [message_of(item) for item in new_input]
        question = next((said for one in reversed(given) if one["role"] == "user" and (said := _text(one))), None)
        if question is None:
            return [*history, *new_input]
        beside = await asyncio.to_thread(_tokens_beside, given, question)
        reserve = beside + asked.get("reserve", 0)
        context = await called(
            session.conversation.context, question, budget=budget, **(asked | {"reserve": reserve, "format": "openai"})
        )
        return [*(item for chat in context.messages[:-1] for item in _items(chat)), *new_input]

    return callback


def message_of(item: Json) -> Json:
    """Give an item of the Responses API as a message: what it says as text, the rest of it as metadata."""
    made = _message(item)
    if made is None or not _is_storable(item) or len(_items(made)) != 1:
        return _opaque(item, made)
    told = _items(made)[0]
    if any(key not in item or item[key] != value for key, value in told.items()):
        return _opaque(item, made)
    more = {key: value for key, value in item.items() if key not in told}
    return made | {"metadata": {KEY: {"more": more}} if more else {}}


def items_of(message: Message) -> list[Json]:
    """Give a stored message as items: one, but for messages with several calls that no session has stored."""
    kept = message.meta.get(KEY, {})
    if "item" in kept:
        item = kept["item"]
        return [json.loads(item) if isinstance(item, str) else item]
    chat = {"role": message.role, "content": message.content}
    calls = {"tool_calls": message.tool_calls, "tool_call_id": message.tool_call_id}
    first, *others = _items(chat | calls)
    return [first | kept.get("more", {}), *others]


def _opaque(item: Json, made: Json | None) -> Json:
    """Give an item that is kept whole, beside what of it is text; as a text where Postgres' JSON does not hold it."""
    plain: Json = {
        "role": "assistant" if made is None else made["role"],
        "content": replace_invalid_chars(_text(made or {})),
    }
    if made is not None and made["role"] == "tool":
        plain["tool_call_id"] = replace_invalid_chars(str(made["tool_call_id"]))
    return plain | {"metadata": {KEY: {"item": item if _is_storable(item) else json.dumps(item)}}}


def _is_storable(item: Json) -> bool:
    text = json.dumps(item, ensure_ascii=False)
    return "\\u0000" not in text and not INVALID_CHARS.search(text)


def _message(item: Json) -> Json | None:
    """Give the message that an item is; None for what is none: reasoning, calls of hosted tools, …"""
    kind = item.get("type", "message")
    if kind == CALL:
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        calls = [{"id": item.get("call_id"), "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if kind == RESULT:
        said = item.get("output")
        return {"role": "tool", "content": said if _is_content(said) else "", "tool_call_id": item.get("call_id")}
    if kind == "message" and item.get("role") in tuple(Role) and _is_content(item.get("content")):
        return {"role": item["role"], "content": item["content"]}
    return None


def _is_content(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(part, dict) for part in value))


def _items(chat: Json) -> list[Json]:
    """Give a chat message as items."""
    if chat["role"] == "tool":
        return [{"type": RESULT, "call_id": chat.get("tool_call_id"), "output": chat["content"]}]
    said: list[Json] = [] if chat.get("content") is None else [{"role": chat["role"], "content": chat["content"]}]
    calls = [
        {"type": CALL, "call_id": call.get("id"), **call.get("function", {})} for call in chat.get("tool_calls") or ()
    ]
    return said + calls


def _text(chat: Json) -> str:
    content = chat.get("content") or ""
    parts = [{"text": content}] if isinstance(content, str) else content
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _tokens_beside(given: Sequence[Json], question: str) -> int:
    """Give how many tokens the new input has beside its question: that is counted with the context."""
    chats = [{key: value for key, value in one.items() if key != "metadata"} for one in given]
    return max(estimate(chats) - estimate([{"role": "user", "content": question}]), 0)
