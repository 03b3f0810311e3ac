"""Counts of Claude's tokens, which Anthropic's count endpoint alone can tell, by the `anthropic` client.

A context is chosen by estimates made here; its finished messages are counted by the endpoint, once, which decides the
budget. Of the environment, `ANTHROPIC_API_KEY` is read for Anthropic's own URL alone. No redirect is followed, and no
key stands in an error.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import finalize

from memstore.errors import InvalidInput, ModelUnavailable, ProviderMissing
from memstore.plugins import require_extra
from memstore.providers import Count, connections
from memstore.providers.connections import TransientError, hide_key
from memstore.providers.tiktoken import CountCache, EstimatedCounter, as_json
from memstore.settings import ANTHROPIC, Settings
from memstore.text import TEXT_PARTS, replace_surrogates
from memstore.tool_calls import arguments_of, name_of

with require_extra("anthropic", "anthropic"):
    import anthropic

Json = dict[str, Any]

COUNT_TIMEOUT_SECONDS = 30.0
# A user has the first word.
OPENING = "[Here the conversation opens.]"
_OPENAI_PARTS = {"image_url", "input_image", "input_audio", "audio", "file", "input_file", "refusal"}
_UNNAMED = re.compile(r"[^A-Za-z0-9_-]")


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
        self._model, self._url, self._key = model, url, key
        self._service = f"The count endpoint of {url}"
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
        request, is_own = as_request(messages, tools)
        if not request["messages"]:
            return self._near.count_messages(messages, tools)
        return Count(self._cache(replace_surrogates(as_json(request))), "server" if is_own else "estimated")

    def _ask(self, request: str) -> int:
        retries = connections.Retries(self._service, COUNT_TIMEOUT_SECONDS)
        try:
            return retries.run_in_time(lambda seconds: self._request(json.loads(request), seconds))
        except ModelUnavailable as error:
            raise ModelUnavailable(f'{error} Without it, the counter "estimated" has a safe number.') from error

    def _request(self, body: Json, seconds: float) -> int:
        timeout = anthropic.Timeout(seconds, connect=min(connections.CONNECT_SECONDS, seconds))
        try:
            counted: object = self._client.messages.count_tokens(model=self._model, timeout=timeout, **body)
        except anthropic.APITimeoutError as error:
            raise TimeoutError from error
        except anthropic.APIStatusError as error:
            code, why = error.status_code, hide_key(str(error.message), self._key)
            retry_after = error.response.headers.get("retry-after")
            refused = connections.refusal(self._service, self._model, code, why, retry_after)
            if code < 400 or isinstance(refused, ModelUnavailable | TransientError):
                raise refused from None
            raise InvalidInput(f"{self._service} does not take these messages ({code}): {why[:300]}") from None
        except anthropic.APIConnectionError as error:
            raise TransientError(hide_key(f"{error} {error.__cause__ or ''}".strip(), self._key)) from None
        except (anthropic.AnthropicError, ValueError) as error:
            raise TransientError(f"its answer is not JSON ({type(error).__name__})") from None
        tokens = getattr(counted, "input_tokens", None)
        if type(tokens) is not int or tokens < 0:
            raise TransientError("its answer has no count")
        return tokens

    @cached_property
    def _client(self) -> anthropic.Anthropic:
        # What the library takes from its own environment would go to any server.
        lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines()
        unsent: dict[str, Any] = {line.split(":")[0].strip(): anthropic.Omit() for line in lines if line}
        is_local = connections.is_local(self._url)
        http_client = anthropic.DefaultHttpxClient(follow_redirects=False, trust_env=not is_local)
        key = self._key or "none"
        client = anthropic.Anthropic(
            api_key=key, base_url=self._url, max_retries=0, default_headers=unsent, http_client=http_client
        )
        finalize(self, client.close).atexit = False
        return client


def as_request(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> tuple[Json, bool]:
    """Return messages, instructions and tools as Anthropic takes them, and whether every part is one that it knows.

    Messages in Anthropic's own shape stay as they are. Tools that are called and not defined are defined by their
    names: Anthropic wants them where there are calls.
    """
    system: list[Json] = []
    turns: list[Json] = []
    is_own = True
    # Of calls that wait for their results, where calls and results have no ids.
    ids: list[str] = []
    names: dict[str, None] = {}
    for message in messages:
        role, content = message.get("role"), message.get("content")
        parts = content if isinstance(content, list | tuple) else [{"type": "text", "text": str(content or "")}]
        is_own = is_own and not any(isinstance(part, Mapping) and part.get("type") in _OPENAI_PARTS for part in parts)
        blocks = [block for part in parts if (block := _block(part))]
        if role in ("system", "developer"):
            system += blocks
            continue
        if role == "tool":
            id = message.get("tool_call_id") or (ids.pop(0) if ids else "call")
            result: Json = {"type": "tool_result", "tool_use_id": _UNNAMED.sub("_", str(id))}
            blocks = [result | ({"content": blocks} if blocks else {})]
        for call in message.get("tool_calls") or ():
            id = _UNNAMED.sub("_", str(call.get("id") or f"call_{len(turns)}_{len(ids)}"))
            ids += [] if call.get("id") else [id]
            name = _UNNAMED.sub("_", name_of(call))
            blocks.append({"type": "tool_use", "id": id, "name": name, "input": arguments_of(call)})
        names |= {str(block["name"]): None for block in blocks if block.get("type") == "tool_use"}
        if not blocks:
            continue
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [{"type": "text", "text": OPENING}]})
        turns.append({"role": "assistant" if role == "assistant" else "user", "content": blocks})
    request: Json = {"messages": turns} | ({"system": system} if system else {})
    defined = [_definition(tool) for tool in tools] or [_definition({"name": name}) for name in names]
    return request | ({"tools": defined} if defined else {}), is_own


def _block(part: object) -> Json | None:
    """Return a part as a block of Anthropic's; None for a blank text, which is refused."""
    if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS:
        part = str(part.get("text") or "")
    elif isinstance(part, Mapping) and part.get("type") not in _OPENAI_PARTS:
        return dict(part)
    text = part if isinstance(part, str) else as_json(part)
    return {"type": "text", "text": text} if text.strip() else None


def _definition(tool: Mapping[str, Any]) -> Json:
    """Return the definition of a tool as Anthropic takes it; one that is has no "function"."""
    function = tool.get("function")
    if isinstance(function, Mapping):
        schema = function.get("parameters") or {"type": "object"}
        description = {"description": str(function["description"])} if function.get("description") else {}
        return {"name": name_of(tool)} | description | {"input_schema": schema}
    return dict(tool) if "type" in tool else {"input_schema": {"type": "object"}} | dict(tool)
