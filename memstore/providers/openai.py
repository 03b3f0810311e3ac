"""Models behind any OpenAI-compatible endpoint, by the `openai` client: chat models, embedders and rerankers.

Servers differ in what they understand: an answer's schema, the name of its most tokens, a temperature. If one refuses
an option by name, another way is tried and remembered. Of the environment, the variable of a `Service` is read for its
own URL alone. No redirect is followed, and no key stands in an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from pydantic import SecretStr

from memstore._compat import with_timeout
from memstore.errors import ModelUnavailable, ProviderError, ProviderMissing
from memstore.models import Json
from memstore.plugins import require_extra
from memstore.providers import Scores, connections, services
from memstore.providers.connections import RequestRefused, ServedEmbedder, TransientError, count_in
from memstore.providers.services import ChatRequest, RawAnswer, ServedChatModel
from memstore.settings import OPENAI, Settings
from memstore.text import replace_surrogates

with require_extra("openai", "openai"):
    import openai

# Ways to ask for JSON, the surest first. llama-cpp-python's grammar follows the second alone.
_JSON_MODES = ("json_schema", "json_object_with_schema", "json_object", "text")
_ENDED = ("stop", None, "tool_calls")


@dataclass(frozen=True, slots=True)
class Service:
    """A service that speaks OpenAI's API, the `kind` of its models, and the variable that has its key.

    `has_settings` where the settings may name another server and its key. Entry points name the methods, such as
    "memstore.providers.openai:GEMINI.load"; nothing is asked of the service yet.
    """

    kind: str
    url: str
    key_variable: str
    has_settings: bool = False

    def load(self, model: str, settings: Settings) -> ServedChatModel:
        """Return the chat model of this name."""
        server = self._server(settings, settings.openai_url, settings.openai_api_key)
        return ServedChatModel(
            OpenAIChat(self._require_model(model), server),
            window=settings.openai_context_tokens,
            # On this machine Ollama's /v1 cuts in silence what is beyond its default.
            default_window=4096 if server.is_local else 16_384,
            timeout=settings.openai_timeout_seconds,
            timeout_setting="MEMSTORE_OPENAI_TIMEOUT_SECONDS",
        )

    def load_embedder(self, model: str, settings: Settings) -> ServedEmbedder:
        """Return the embedder of this name; "@URL" behind it is left out: `embedding_url` says where it is."""
        server = self._server(settings, settings.embedding_url, settings.embedding_api_key)
        name = self._require_model(model).partition("@http")[0].partition("#")[0]
        return ServedEmbedder(OpenAIEmbeddings(name, server, settings.embedding_dimensions), settings)

    def load_reranker(self, model: str, settings: Settings) -> OpenAIReranker:
        """Return the reranker of this name."""
        server = self._server(settings, settings.rerank_url, settings.rerank_api_key)
        return OpenAIReranker(self._require_model(model), server)

    def name_of(self, model: str, url: str) -> str:
        """Return the name of an embedder or a reranker: at two servers, one name may be two models."""
        return f"{self.kind}:{model}" if url == self.url else f"{self.kind}:{model}@{url}"

    def _require_model(self, model: str) -> str:
        if not model:
            raise ProviderMissing(f"Write {self.kind}:MODEL, with the name that the server has for it.")
        return model

    def _server(self, settings: Settings, url: str | None, key: SecretStr | None) -> OpenAIServer:
        """Return the server: the service's own, or one of the settings, without a URL that of chat models."""
        own_key = os.environ.get(self.key_variable, "")
        if not self.has_settings:
            if not own_key:
                raise ProviderMissing(f"{self.kind}: models need a key: set {self.key_variable}.")
            return OpenAIServer(self.url, own_key, self)
        if url in (None, settings.openai_url):
            url, key = settings.openai_url, key or settings.openai_api_key
        assert url is not None
        secret = key.get_secret_value() if key is not None else ""
        return OpenAIServer(url, secret or (own_key if url == self.url else ""), self)


OPENAI_API = Service("openai", OPENAI, "OPENAI_API_KEY", has_settings=True)
# Further services are a row here, and their entry points.
GEMINI = Service("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY")
load, load_embedder, load_reranker = OPENAI_API.load, OPENAI_API.load_embedder, OPENAI_API.load_reranker


class OpenAIServer(connections.SDKServer):
    """One server that speaks OpenAI's API."""

    def __init__(self, url: str, key: str, api: Service = OPENAI_API) -> None:
        self.api = api
        headers = {
            "Authorization": f"Bearer {key or 'none'}",
            "Accept-Encoding": "identity",
            # Of OPENAI_ORG_ID and OPENAI_PROJECT_ID, which are OpenAI's.
            "OpenAI-Organization": openai.Omit(),
            "OpenAI-Project": openai.Omit(),
        }
        super().__init__(openai, openai.OpenAI, f"The server at {url}", url, key, headers)

    def _refusal(self, model: str, error: openai.APIStatusError, why: str) -> ProviderError | TransientError:
        if error.code == "insufficient_quota":
            return ModelUnavailable(f"{self.service} says that the account has no quota left: {why[:300]}")
        # Of llama-cpp-python, for what it does not know.
        if error.status_code >= 500 and "validation error" in why:
            return connections.refusal(self.service, model, 422, why)
        return super()._refusal(model, error, why)


class OpenAIChat:
    """A chat model of an OpenAI-compatible server."""

    def __init__(self, model: str, server: OpenAIServer) -> None:
        self.service = server.service
        self.counter_name = f"{server.api.kind}:{model}"
        self._model = model
        self._server = server
        self.json_mode = _JSON_MODES[0]
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
        return services.ModelInfo(self.counter_name, window_of(listing, self._model))

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
            except RequestRefused as error:
                with self._lock:
                    # Whether another thread has met the same.
                    is_other = self._body(request) != body
                    can_adapt = is_other or self._adapt(str(error), request)
                if not can_adapt:
                    raise

    def _body(self, request: ChatRequest) -> Json:
        body: Json = {"model": self._model, "messages": list(request.messages), self._most: request.max_tokens}
        if request.schema is None:
            counted = {} if "stream_options" in self._left_out else {"stream_options": {"include_usage": True}}
            return body | {"stream": True} | counted
        if "temperature" not in self._left_out:
            body["temperature"] = 0
        schema = services.strict_schema(request.schema)
        if self.json_mode == "json_schema":
            named = {"name": "answer", "schema": schema, "strict": True}
            return body | {"response_format": {"type": "json_schema", "json_schema": named}}
        first, *rest = request.messages
        instructions = f"{first['content']}\n\nThe schema of the JSON object: {json.dumps(schema)}"
        body["messages"] = [{**first, "content": instructions}, *rest]
        if self.json_mode == "text":
            return body
        shape = {"type": "json_object"} | ({"schema": schema} if self.json_mode == "json_object_with_schema" else {})
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
        is_about_json = any(name in why for name in ("response_format", "json_schema", "json_object"))
        if request.schema is None or not is_about_json or self.json_mode == _JSON_MODES[-1]:
            return False
        self.json_mode = _JSON_MODES[_JSON_MODES.index(self.json_mode) + 1]
        return True


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
        self.name = server.api.name_of(model, server.url)
        self.service = server.service

    def embed(self, texts: Sequence[str], seconds: float) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        body: Json = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        # Not every server takes it, so it is sent where it is set.
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        rows: list[Json] = self._server.post("/embeddings", self._model, body, seconds).get("data") or []
        # Those without an index are in the order of the texts.
        return [row["embedding"] for row in sorted(rows, key=lambda row: row.get("index") or 0)]


class OpenAIReranker:
    """A Reranker that answers at /rerank as Cohere's does: vLLM, llama.cpp, Jina, OpenRouter."""

    def __init__(self, model: str, server: OpenAIServer) -> None:
        self._model = model
        self._server = server
        self.name = server.api.name_of(model, server.url)

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
        answer = connections.Retries(service, 10.0).run_in_time(
            lambda seconds: self._server.post("/rerank", self._model, body, seconds)
        )
        scores = np.full(len(texts), np.nan)
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            rows = {row["index"]: float(row["relevance_score"]) for row in answer.get("results") or answer["data"]}
            scores[:] = [rows[index] for index in range(len(texts))]
        if not np.isfinite(scores).all():
            raise ProviderError(f"{service} gave no score for each of {len(texts)} texts.")
        return scores
