"""Counts of Claude's tokens, which Anthropic's count endpoint alone can tell, by the `anthropic` client.

A context is chosen by estimates made here; its finished messages are counted by the endpoint, once, which decides the
budget. Of the environment, `ANTHROPIC_API_KEY` is read for Anthropic's own URL alone. No redirect is followed, and no
key stands in an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from memstore.errors import InvalidInput, ModelUnavailable, ProviderMissing
from memstore.models import Json
from memstore.plugins import require_extra
from memstore.providers import Count, connections
from memstore.providers.connections import RequestRefused, TransientError, count_in
from memstore.providers.tiktoken import CountCache, EstimatedCounter, as_json
from memstore.settings import ANTHROPIC, Settings
from memstore.text import TEXT_PARTS, replace_surrogates
from memstore.tool_calls import arguments_of, name_of

with require_extra("anthropic", "anthropic"):
    import anthropic

COUNT_TIMEOUT_SECONDS = 30.0


def load(model: str, settings: Settings) -> AnthropicCounter:
    """Return the counter of a model by its name at Anthropic. Asks nothing yet."""
    if not model:
        raise ProviderMissing("Write anthropic:MODEL, such as anthropic:claude-sonnet-4-5.")
    url, key = settings.anthropic_url, settings.anthropic_api_key
    secret = key.get_secret_value() if key is not None else ""
    if url == ANTHROPIC:
        secret = secret or os.environ.get("ANTHROPIC_API_KEY", "")
        if not secret:
            raise ProviderMissing(
                f"anthropic:{model} asks Anthropic, which needs a key: set MEMSTORE_ANTHROPIC_API_KEY or "
                'ANTHROPIC_API_KEY. "estimated" counts without one.'
            )
    return AnthropicCounter(model, url, secret)


class AnthropicCounter:
    """Counts finished chats by asking Anthropic; texts and single messages are estimated. Safe to share by threads.

    Raises ModelUnavailable where the endpoint is away or refuses the key, within 30 s.
    """

    def __init__(self, model: str, url: str = ANTHROPIC, key: str = "") -> None:
        self.name = f"anthropic:{model}"
        self._model = model
        service = f"The count endpoint of {url}"
        self._server = connections.SDKServer(anthropic, anthropic.Anthropic, service, url, key, {})
        # To choose by: near the truth for prose and code, so that a context is done after a few requests.
        self._near = EstimatedCounter(1.5)
        self._cache = CountCache(self._ask)

    def __repr__(self) -> str:
        return f"<AnthropicCounter {self.name}>"

    def count(self, text: str) -> int:
        """Return about the number of tokens of a text; asks nothing."""
        return self._near.count(text)

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return about what one message adds; asks nothing."""
        return self._near.count_message(message)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the tokens that Anthropic counts: "server". Of instructions alone, which it does not take, about them.

        Parts that are not Anthropic's, such as OpenAI's images, are sent as their JSON, which is "estimated".
        """
        request = as_request(messages, tools)
        if not request["messages"]:
            return self._near.count_messages(messages, tools)
        is_estimate = any(_is_foreign(part) for message in messages for part in _parts(message))
        return Count(self._cache(replace_surrogates(as_json(request))), "estimated" if is_estimate else "server")

    def _ask(self, request: str) -> int:
        retries = connections.Retries(self._server.service, COUNT_TIMEOUT_SECONDS)
        try:
            return retries.run_in_time(lambda seconds: self._request(json.loads(request), seconds))
        except ModelUnavailable as error:
            raise ModelUnavailable(f'{error} Without it, the counter "estimated" has a safe number.') from error
        except RequestRefused as error:
            raise InvalidInput(str(error)) from None

    def _request(self, body: Json, seconds: float) -> int:
        answer = self._server.post("/v1/messages/count_tokens", self._model, {"model": self._model} | body, seconds)
        tokens = count_in(answer, "input_tokens")
        if tokens is None:
            raise TransientError("its answer has no count")
        return tokens


def as_request(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Json:
    """Return messages, instructions and tools as Anthropic takes them; its own shapes stay as they are.

    Tools that are called and not defined are defined by their names: Anthropic wants them where there are calls.
    """
    system: list[Json] = []
    turns: list[Json] = []
    for message in messages:
        role = message.get("role")
        blocks = [block for part in _parts(message) if (block := _block(part))]
        if role in ("system", "developer"):
            system += blocks
            continue
        if role == "tool":
            result = {"type": "tool_result", "tool_use_id": _as_id(message.get("tool_call_id"))}
            blocks = [result | ({"content": blocks} if blocks else {})]
        for call in message.get("tool_calls") or ():
            use = {"id": _as_id(call.get("id")), "name": _as_id(name_of(call)), "input": arguments_of(call)}
            blocks.append({"type": "tool_use"} | use)
        if not turns and role == "assistant":
            # A user has the first word.
            turns.append({"role": "user", "content": [{"type": "text", "text": "[Here the conversation opens.]"}]})
        if blocks:
            turns.append({"role": "assistant" if role == "assistant" else "user", "content": blocks})
    uses = [block for turn in turns for block in turn["content"] if block.get("type") == "tool_use"]
    called = [{"name": name, "input_schema": {"type": "object"}} for name in dict.fromkeys(use["name"] for use in uses)]
    optional = {"system": system, "tools": [*map(_definition, tools)] or called}
    return {"messages": turns} | {key: value for key, value in optional.items() if value}


def _parts(message: Mapping[str, Any]) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list | tuple) else [str(content or "")]


def _is_foreign(part: object) -> bool:
    """Return whether a part is OpenAI's, and no text."""
    foreign = ("image_url", "input_image", "input_audio", "audio", "file", "input_file", "refusal")
    return isinstance(part, Mapping) and part.get("type") in foreign


def _block(part: object) -> Json | None:
    """Return a part as a block of Anthropic's; None for a blank text, which is refused."""
    if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS:
        part = str(part.get("text") or "")
    elif isinstance(part, Mapping) and not _is_foreign(part):
        return dict(part)
    text = part if isinstance(part, str) else as_json(part)
    return {"type": "text", "text": text} if text.strip() else None


def _as_id(name: object) -> str:
    characters = str(name or "call")
    return "".join(char if char in "_-" or (char.isascii() and char.isalnum()) else "_" for char in characters)


def _definition(tool: Mapping[str, Any]) -> Json:
    """Return the definition of a tool as Anthropic takes it."""
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    described = {"description": function["description"]} if function.get("description") else {}
    return {"name": name_of(tool)} | described | {"input_schema": function.get("parameters") or {"type": "object"}}
