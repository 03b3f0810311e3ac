"""Models behind any OpenAI-compatible endpoint, by the `openai` client: chat models, embedders and rerankers.

Servers differ in what they understand: an answer's schema, the name of its most tokens, a temperature. If one refuses
an option by name, another way is tried and remembered. Of the environment, `OPENAI_API_KEY` is read for OpenAI's own
URL alone. No redirect is followed, and no key stands in an error.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from pydantic import SecretStr

from memstore._compat import with_timeout
from memstore.errors import ModelUnavailable, ProviderError, ProviderMissing
from memstore.plugins import require_extra
from memstore.providers import Scores, connections, services
from memstore.providers.connections import ServedEmbedder, TransientError, hide_key
from memstore.providers.services import ChatRequest, Json, RawAnswer, ServedChatModel, count_in
from memstore.settings import OPENAI, Settings
from memstore.text import replace_surrogates

with require_extra("openai", "openai"):
    import openai

# Tokens, of a server that does not tell: on this machine Ollama's /v1 cuts in silence what is beyond its default.
WINDOW, LOCAL_WINDOW = 16_384, 4096
RERANK_SECONDS = 10.0
# Ways to ask for JSON, the surest first. llama-cpp-python's grammar follows the second alone.
_SHAPES = ("json_schema", "json_object_with_schema", "json_object", "text")
_ENDED = ("stop", None, "tool_calls")


def load(model: str, settings: Settings) -> ServedChatModel:
    """Return the chat model of this name. Asks the server nothing yet."""
    server = _server(settings)
    return ServedChatModel(
        OpenAIChat(_require_model(model), server),
        window=settings.openai_context_tokens,
        default_window=LOCAL_WINDOW if server.is_local else WINDOW,
        timeout=settings.openai_timeout_seconds,
        timeout_setting="MEMSTORE_OPENAI_TIMEOUT_SECONDS",
    )


def load_embedder(model: str, settings: Settings) -> ServedEmbedder:
    """Return the embedder of this name; "@URL" behind it is left out: `embedding_url` says where it is."""
    server = _server(settings, settings.embedding_url, settings.embedding_api_key)
    name = _require_model(model).partition("@http")[0].partition("#")[0]
    return ServedEmbedder(OpenAIEmbeddings(name, server, settings.embedding_dimensions), settings)


def load_reranker(model: str, settings: Settings) -> OpenAIReranker:
    """Return the reranker of this name. Asks the server nothing yet."""
    server = _server(settings, settings.rerank_url, settings.rerank_api_key)
    return OpenAIReranker(_require_model(model), server)


def _require_model(model: str) -> str:
    if not model:
        raise ProviderMissing("Write openai:MODEL, with the name that the server has for it.")
    return model


def _server(settings: Settings, url: str | None = None, key: SecretStr | None = None) -> OpenAIServer:
    """Return the server of a URL; without one that of chat models, with its key."""
    if url in (None, settings.openai_url):
        url, key = settings.openai_url, key or settings.openai_api_key
    assert url is not None
    secret = key.get_secret_value() if key is not None else ""
    return OpenAIServer(url, secret or (os.environ.get("OPENAI_API_KEY", "") if url == OPENAI else ""))


class OpenAIServer:
    """One server. Raises as a `ChatEndpoint` does."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.service = f"The server at {url}"
        self._key = key
        self.is_local = connections.is_local(url)

    def get(self, path: str, seconds: float) -> Any:
        """Return the JSON that the server answers."""
        with self._client("", seconds) as client:
            return client.get(path, cast_to=object)

    def post(self, path: str, model: str, body: Json, seconds: float) -> Json:
        """Return the JSON object that the server answers."""
        with self._client(model, seconds) as client:
            answer = client.post(path, body=body, cast_to=object)
        if not isinstance(answer, dict):
            raise TransientError(f"its answer is no JSON object ({type(answer).__name__})")
        if answer.get("error"):
            raise self._reported(model, answer["error"])
        return answer

    def stream(self, path: str, model: str, body: Json, seconds: float) -> Generator[Json, None, None]:
        """Yield the JSON objects of a streamed answer as they come."""
        with self._client(model, seconds) as client:
            parts = client.post(path, body=body, cast_to=object, stream=True, stream_cls=openai.Stream[object])
            with parts:
                for part in parts:
                    if isinstance(part, dict):
                        yield part

    @cached_property
    def _connected(self) -> openai.OpenAI:
        # What the library takes from its own environment would go to any server.
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
        foreign = ("OpenAI-Organization", "OpenAI-Project", *(line.split(":")[0].strip() for line in lines))
        headers: dict[str, Any] = dict.fromkeys(foreign, openai.Omit())
        # The library will not go without a key.
        key = self._key or "none"
        headers |= {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}
        # Messages go to the server that was named, and to no other. A proxy's own 127.0.0.1 is another one.
        http_client = openai.DefaultHttpxClient(follow_redirects=False, trust_env=not self.is_local)
        client = openai.OpenAI(
            api_key=key, default_headers=headers, base_url=self.url, max_retries=0, http_client=http_client
        )
        finalize(self, client.close).atexit = False
        return client

    @contextmanager
    def _client(self, model: str, seconds: float) -> Iterator[openai.OpenAI]:
        """Yield a client for one request, whose errors are ours."""
        try:
            connect = min(connections.CONNECT_SECONDS, seconds)
            yield self._connected.with_options(timeout=openai.Timeout(seconds, connect=connect))
        except openai.APITimeoutError as error:
            raise TimeoutError from error
        except openai.APIStatusError as error:
            # The server's answer may repeat the key.
            raise self._refusal(model, error) from None
        except openai.APIConnectionError as error:
            raise TransientError(hide_key(f"{error} {error.__cause__ or ''}".strip(), self._key)) from None
        except openai.APIError as error:  # within a stream
            raise self._reported(model, error.body or str(error)) from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise TransientError(f"its answer is not JSON ({type(error).__name__})") from None

    def _refusal(self, model: str, error: openai.APIStatusError) -> ProviderError | TransientError:
        code, why = error.status_code, hide_key(_message_of(error.body) or str(error), self._key)
        if error.code == "insufficient_quota":
            return ModelUnavailable(f"{self.service} says that the account has no quota left: {why[:300]}")
        # Of llama-cpp-python, for what it does not know.
        if code >= 500 and "validation error" in why:
            code = 422
        refused = connections.refusal(self.service, model, code, why, error.response.headers.get("retry-after"))
        return _Refused(str(refused)) if type(refused) is ProviderError else refused

    def _reported(self, model: str, error: object) -> ProviderError | TransientError:
        return connections.reported(model, hide_key(_message_of({"error": error}) or str(error), self._key))


class _Refused(ProviderError):
    """A request that the server does not take as it is."""


def _message_of(body: object) -> str:
    """Return what the body of an error says, as OpenAI, vLLM, TEI and others write it."""
    while isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail")
    return body if isinstance(body, str) else json.dumps(body) if body else ""


class OpenAIChat:
    """A chat model of an OpenAI-compatible server."""

    def __init__(self, model: str, server: OpenAIServer) -> None:
        self.service = server.service
        self.counter_name = f"openai:{model}"
        self._model = model
        self._server = server
        self.shape = _SHAPES[0]
        # OpenAI's newer models take the second name alone, older servers know the first alone.
        is_own = any(host in server.url for host in ("api.openai.com", ".azure.com"))
        self._most = "max_completion_tokens" if is_own else "max_tokens"
        self._left_out: set[str] = set()
        self._lock = Lock()

    def describe(self, seconds: float) -> services.ModelInfo:
        """Return the name, and the window where the server lists it."""
        try:
            listing = with_timeout(seconds, lambda: self._server.get("/models", seconds))
        except (ProviderError, TransientError, TimeoutError):
            # Not every server has one, or shows it to this key.
            listing = None
        return services.ModelInfo(f"openai:{self._model}", window_of(listing, self._model))

    def answer(self, request: ChatRequest) -> RawAnswer:
        """Return the whole answer."""
        answer = self._ask(
            request, lambda body: self._server.post("/chat/completions", self._model, body, request.seconds)
        )
        choice, usage = _choice_of(answer), answer.get("usage")
        if not choice:
            raise TransientError("its answer has no choices")
        counts = count_in(usage, "prompt_tokens"), count_in(usage, "completion_tokens")
        return RawAnswer(_text_of(choice.get("message")), choice.get("finish_reason") in _ENDED, *counts)

    def stream(self, request: ChatRequest, show: Callable[[str], object]) -> RawAnswer:
        """Return the whole answer, each piece shown as it comes."""
        text = services.StreamedText(request, show)
        usage: Json = {}
        ended: object = None

        def read(body: Json) -> None:
            nonlocal usage, ended
            # Interrupted, it hangs up at once.
            with closing(self._server.stream("/chat/completions", self._model, body, request.seconds)) as parts:
                for part in parts:
                    usage = part.get("usage") or usage
                    choice = _choice_of(part)
                    ended = choice.get("finish_reason") or ended
                    if text.add(_text_of(choice.get("delta"))):
                        ended = "length"
                        return

        try:
            self._ask(request, read)
        except TimeoutError:
            # A server may have said the end, and hold the line.
            if ended is None:
                raise
        if ended is None:
            raise TransientError("it ended before it was done")
        # An emoji may have come in two halves.
        whole = "".join(text.pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        counts = count_in(usage, "prompt_tokens"), count_in(usage, "completion_tokens")
        return RawAnswer(whole, ended in _ENDED, *counts)

    def _ask(self, request: ChatRequest, send: Callable[[Json], Any]) -> Any:
        while True:
            body = self._body(request)
            try:
                return send(body)
            except _Refused as error:
                with self._lock:
                    # Whether another thread has met the same.
                    is_other = self._body(request) != body
                    can_adapt = is_other or self._adapt(str(error), request)
                if not can_adapt:
                    raise ProviderError(str(error)) from None

    def _body(self, request: ChatRequest) -> Json:
        body: Json = {"model": self._model, "messages": list(request.messages), self._most: request.max_tokens}
        if request.schema is None:
            counted = {} if "stream_options" in self._left_out else {"stream_options": {"include_usage": True}}
            return body | {"stream": True} | counted
        if "temperature" not in self._left_out:
            body["temperature"] = 0
        schema = services.strict_schema(request.schema)
        if self.shape == "json_schema":
            named = {"name": "answer", "schema": schema, "strict": True}
            return body | {"response_format": {"type": "json_schema", "json_schema": named}}
        first, *rest = request.messages
        instructions = f"{first['content']}\n\nThe schema of the JSON object: {json.dumps(schema)}"
        body["messages"] = [{**first, "content": instructions}, *rest]
        if self.shape == "text":
            return body
        shape = {"type": "json_object"} | ({"schema": schema} if self.shape == "json_object_with_schema" else {})
        return body | {"response_format": shape}

    def _adapt(self, why: str, request: ChatRequest) -> bool:
        """Note what the server has refused by its name; return whether there is another way to ask."""
        if "max_tokens" in why or "max_completion_tokens" in why:
            other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[self._most]
            if other in self._left_out:
                return False
            self._left_out.add(self._most)
            self._most = other
            return True
        for name in ("temperature", "stream_options"):
            if name in why and name not in self._left_out:
                self._left_out.add(name)
                return True
        if request.schema is not None and re.search(r"response_format|json_schema|json_object", why):
            later = _SHAPES[_SHAPES.index(self.shape) + 1 :]
            if later:
                self.shape = later[0]
                return True
        return False


def window_of(listing: object, model: str) -> int | None:
    """Return the window of a model by the server's list of models, where that tells it."""
    entries = listing.get("data") if isinstance(listing, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model:
            # As vLLM, OpenRouter, Groq and Mistral call it; then llama.cpp.
            names = ("max_model_len", "context_length", "context_window", "max_context_length")
            windows = [*(count_in(entry, name) for name in names), count_in(entry.get("meta"), "n_ctx")]
            return next(filter(None, windows), None)
    return None


def _text_of(message: object) -> str:
    content = (message.get("content") or message.get("refusal")) if isinstance(message, dict) else None
    # Some servers give parts.
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _choice_of(answer: Json) -> Json:
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


class OpenAIEmbeddings:
    """An embedding model of an OpenAI-compatible server, which is part of its name where it is not OpenAI's own."""

    def __init__(self, model: str, server: OpenAIServer, dimensions: int | None) -> None:
        self._model = model
        self._server = server
        self._dimensions = dimensions
        self.name = f"openai:{model}" if server.url == OPENAI else f"openai:{model}@{server.url}"
        self.service = server.service

    def embed(self, texts: Sequence[str], seconds: float) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        body: Json = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        # Not every server takes it, so it is sent where it is set.
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        data = self._server.post("/embeddings", self._model, body, seconds).get("data")
        rows = [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
        # Rows without an index are in the order of the texts.
        if all(row.get("index") is None for row in rows):
            return [row.get("embedding") or () for row in rows]
        placed = {row["index"]: row.get("embedding") or () for row in rows if type(row.get("index")) is int}
        return [placed[place] for place in range(len(texts))] if placed.keys() == set(range(len(texts))) else ()


class OpenAIReranker:
    """A Reranker that answers at /rerank as Cohere's does: vLLM, llama.cpp, Jina, OpenRouter."""

    def __init__(self, model: str, server: OpenAIServer) -> None:
        self._model = model
        self._server = server
        self.name = f"openai:{model}" if server.url == OPENAI else f"openai:{model}@{server.url}"

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the server's score of each text: shape (texts,)."""
        if not texts:
            return np.empty(0)
        body = {
            "model": self._model,
            "query": replace_surrogates(query) or " ",
            "documents": [replace_surrogates(text) or " " for text in texts],
            "top_n": len(texts),
        }
        service = self._server.service
        answer = connections.Retries(service, RERANK_SECONDS).run_in_time(
            lambda seconds: self._server.post("/rerank", self._model, body, seconds)
        )
        scores = np.full(len(texts), np.nan)
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            rows = {row["index"]: float(row["relevance_score"]) for row in answer.get("results") or answer["data"]}
            scores[:] = [rows[index] for index in range(len(texts))]
        if not np.isfinite(scores).all():
            raise ProviderError(f"{service} gave no score for each of {len(texts)} texts.")
        return scores
