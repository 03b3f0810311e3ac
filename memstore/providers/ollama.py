"""Models that Ollama serves, over its HTTP API: chat models and embedders.

Ollama's silent ways out are closed: the window is asked for with every call (`num_ctx`), cutting is forbidden
(`truncate`, `shift`, which its own library does not offer), and the server's counts are compared with what was sent. Of
the environment, `OLLAMA_API_KEY` is read, and for other machines the proxies' variables; `OLLAMA_HOST` is ignored:
`ollama_url` counts.
"""

from __future__ import annotations

import json
import os
import ssl
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache

from memstore.errors import ModelUnavailable, ProviderError, ProviderMissing
from memstore.models import Json
from memstore.plugins import require_extra
from memstore.providers import connections, services
from memstore.providers.connections import ServedEmbedder, TransientError, count_in, hide_key
from memstore.providers.services import INFO_TIMEOUT_SECONDS, ChatRequest, RawAnswer, ServedChatModel
from memstore.settings import Settings

with require_extra("ollama", "httpx"):
    import httpx

# A queue asks again soon, and loading takes longer than most answers.
KEEP_ALIVE = "10m"


def load(model: str, settings: Settings) -> ServedChatModel:
    """Return the chat model of this name, as `ollama list` shows it. Asks the server nothing yet."""
    server = OllamaServer(settings.ollama_url)
    return ServedChatModel(
        OllamaChat(require_model(model), server, settings.ollama_num_ctx),
        window=settings.ollama_num_ctx,
        timeout=settings.ollama_timeout_seconds,
        timeout_setting="MEMSTORE_OLLAMA_TIMEOUT_SECONDS",
    )


def load_embedder(model: str, settings: Settings) -> ServedEmbedder:
    """Return the embedder of this name, as `ollama list` shows it. Asks the server nothing yet."""
    endpoint = OllamaEmbeddings(require_model(model).partition("#")[0], OllamaServer(settings.ollama_url))
    return ServedEmbedder(endpoint, settings)


def require_model(model: str) -> str:
    """Return the name of a model; raise `ProviderMissing` without one."""
    if not model:
        raise ProviderMissing("Write ollama:NAME, with the name that `ollama list` shows.")
    return model


class OllamaServer:
    """One server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.service = f"Ollama at {url}"

    def ask(self, path: str, model: str, body: Json | None = None, *, seconds: float = INFO_TIMEOUT_SECONDS) -> Json:
        """Return the JSON object that the server answers, asked again within `seconds` for what may pass."""
        return connections.Retries(self.service, seconds).run_in_time(
            lambda left: self.request(path, model, body, left)
        )

    def request(self, path: str, model: str, body: Json | None, seconds: float) -> Json:
        """Return the JSON object that the server answers; without a body it is a GET.

        Raises as a `ChatEndpoint` does, and TimeoutError after so many seconds of silence.
        """
        with self._response(path, model, body, seconds) as response:
            return _parse(model, response.read())

    def stream(self, path: str, model: str, body: Json, seconds: float) -> Generator[Json, None, None]:
        """Yield the JSON objects of a streamed answer; who stops reading hangs up, and so ends the server's work."""
        with self._response(path, model, body, seconds) as response:
            for line in response.iter_lines():
                part = _parse(model, line)
                yield part
                if part.get("done") is True:
                    return
        raise TransientError("it ended before it was done")

    @contextmanager
    def _response(self, path: str, model: str, body: Json | None, seconds: float) -> Iterator[httpx.Response]:
        """Yield the answer to a request, of which only the head was read; errors are ours."""
        key = _key()
        client = httpx.Client(
            timeout=httpx.Timeout(seconds, connect=min(connections.CONNECT_SECONDS, seconds)),
            verify=_certificates(),
            # A proxy's own 127.0.0.1 is another one.
            trust_env=not connections.is_local(self.url),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )
        method = "GET" if body is None else "POST"
        try:
            with client, client.stream(method, f"{self.url}{path}", json=body) as response:
                if not response.is_success:
                    raise self._refusal(model, response, response.read())
                yield response
        except httpx.ReadTimeout as error:
            raise TimeoutError from error
        except httpx.ConnectError as error:
            raise TransientError(f"{error}; is it running there?") from error
        except httpx.HTTPError as error:
            raise TransientError(f"{type(error).__name__}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise TransientError(f"its answer is not JSON ({type(error).__name__})") from error

    def _refusal(self, model: str, response: httpx.Response, content: bytes) -> ProviderError | TransientError:
        code, why = response.status_code, content.decode("utf-8", "replace")
        with suppress(ValueError):
            why = connections.error_text(json.loads(content)) or why
        # The server's answer may repeat the key.
        why = hide_key(why, _key())
        if code == 404:
            return ModelUnavailable(f"{self.service} has no {model}: `ollama pull {model}` brings it. ({why[:300]})")
        if code in (401, 403):
            why = f"{why[:200]} OLLAMA_API_KEY holds it."
        return connections.refusal(self.service, model, code, why, response.headers.get("retry-after"))


def _parse(model: str, text: str | bytes) -> Json:
    """Return the JSON object of an answer, or of a line of a stream; raise the error that it reports."""
    answer = json.loads(text)
    if not isinstance(answer, dict):
        raise TransientError("its answer is no JSON object")
    if "error" in answer:
        raise connections.reported(model, hide_key(str(answer["error"]), _key()))
    return answer


def _key() -> str | None:
    return os.environ.get("OLLAMA_API_KEY")


# Reading the certificates takes 30 ms.
@cache
def _certificates() -> ssl.SSLContext:
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def entry_of(listing: Json, model: str) -> Json:
    """Return what a list of models says of this one; a name without a tag means its tag `latest`."""
    models = listing.get("models")
    for entry in models if isinstance(models, list) else []:
        if isinstance(entry, dict) and {entry.get("model"), entry.get("name")} & {model, f"{model}:latest"}:
            return entry
    return {}


def digest_of(entry: Json) -> str:
    """Return the digest of a model's weights and template by its entry, in hex; "" where it tells none."""
    return str(entry.get("digest") or "").removeprefix("sha256:")


class OllamaChat:
    """A chat model of an Ollama server, asked for a window of `num_ctx` tokens."""

    json_mode = "json_schema"

    def __init__(self, model: str, server: OllamaServer, num_ctx: int) -> None:
        self.service = server.service
        self.counter_name = f"ollama:{model}"
        self._model = model
        self._server = server
        self._num_ctx = num_ctx
        self._can_think = False
        self._digest = ""

    def describe(self, seconds: float) -> services.ModelInfo:
        """Return the name, with 12 digits of the digest, the window that it was trained for, and the one it has."""
        shown = self._server.ask("/api/show", self._model, {"model": self._model}, seconds=seconds)
        abilities = shown.get("capabilities") or ["completion"]
        if "completion" not in abilities:
            raise ProviderMissing(f"{self._model} cannot chat, only {', '.join(abilities)}: name another model.")
        self._can_think = "thinking" in abilities
        self._digest = digest_of(entry_of(self._server.ask("/api/tags", self._model, seconds=seconds), self._model))
        about = shown.get("model_info")
        about = about if isinstance(about, dict) else {}
        trained = count_in(about, f"{about.get('general.architecture')}.context_length")
        name = f"ollama:{self._model}" + f"@{self._digest[:12]}" * bool(self._digest)
        loaded = count_in(self._loaded_entry(seconds), "context_length") or 0
        # Below Ollama's default it is another program's, and is loaded anew with what is asked for.
        return services.ModelInfo(name, trained, loaded if loaded >= 4096 else None, self._can_think)

    def answer(self, request: ChatRequest) -> RawAnswer:
        """Return the whole answer, and the window that the server gave the model for it."""
        end = time.monotonic() + request.seconds
        body = self._body(request) | {"stream": False}
        if self._can_think:
            # Thoughts would be taken from the answer's tokens.
            body["think"] = False
        answer = self._server.request("/api/chat", self._model, body, request.seconds)
        if answer.get("done") is not True:
            raise TransientError("its answer broke off")
        loaded = self._loaded_entry((end - time.monotonic()) / 2)
        if self._digest and digest_of(loaded) not in ("", self._digest):
            raise services.ModelReplaced(f"{self._model} was pulled anew while it was asked: derive again.")
        counted = count_in(answer, "prompt_eval_count")
        if (counted or 0) < services.count_words(request.messages):
            counted = self._recount(request, end - time.monotonic()) or counted
        is_whole = answer.get("done_reason") in ("stop", None)
        counts = counted, count_in(answer, "eval_count"), count_in(loaded, "context_length")
        return RawAnswer(_text_of(answer), is_whole, *counts)

    def stream(self, request: ChatRequest, show: Callable[[str], object]) -> RawAnswer:
        """Return the whole answer, each piece shown as it comes."""
        text = services.StreamedText(request, show)
        last: Json = {}
        # "think" is left alone: the prompt that was counted is one without it, and it changes some.
        body = self._body(request) | {"stream": True}
        # Interrupted, it hangs up at once.
        with closing(self._server.stream("/api/chat", self._model, body, request.seconds)) as parts:
            for last in parts:
                if text.add(_text_of(last)):
                    break
        is_whole = last.get("done") is True and last.get("done_reason") in ("stop", None)
        window = count_in(self._loaded_entry(request.seconds), "context_length")
        counts = count_in(last, "prompt_eval_count"), count_in(last, "eval_count"), window
        return RawAnswer("".join(text.pieces), is_whole, *counts)

    def _body(self, request: ChatRequest) -> Json:
        options = {"num_ctx": self._num_ctx, "num_predict": request.max_tokens}
        body: Json = {
            "model": self._model,
            "messages": list(request.messages),
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
            "options": options,
        }
        if request.schema is not None:
            # A quote repeats the prompt; the server's default penalty of 1.1 works against that.
            chosen = {"temperature": 0, "seed": 1, "repeat_penalty": 1.0}
            body |= {"format": request.schema, "options": options | chosen}
        return body

    def _recount(self, request: ChatRequest, seconds: float) -> int | None:
        """Return the tokens that the server reads of the prompt when it cannot have its beginning in its cache.

        Some versions count only what the cache did not hold (0.30.0 was one), so that a low count alone proves nothing.
        """
        first, *rest = request.messages
        fresh = [{**first, "content": f"{uuid.uuid4().hex}\n{first['content']}"}, *rest]
        body = self._body(ChatRequest(fresh, request.schema, 1, seconds)) | {"stream": False}
        with suppress(TimeoutError):
            answer = self._server.request("/api/chat", self._model, body, max(0.001, seconds))
            return count_in(answer, "prompt_eval_count")
        return None

    def _loaded_entry(self, seconds: float) -> Json:
        """Return what the server says of the model as it is loaded; nothing where it does not."""
        with suppress(ProviderError):
            seconds = max(0.001, min(INFO_TIMEOUT_SECONDS, seconds))
            return entry_of(self._server.ask("/api/ps", self._model, seconds=seconds), self._model)
        return {}


class OllamaEmbeddings:
    """An embedding model of an Ollama server. Its vectors are kept under its name alone, wherever the server is."""

    def __init__(self, model: str, server: OllamaServer) -> None:
        self.service = server.service
        self.name = f"ollama:{model}"
        self._model = model
        self._server = server

    def embed(self, texts: Sequence[str], seconds: float) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        body = {"model": self._model, "input": list(texts), "keep_alive": KEEP_ALIVE}
        answer = self._server.request("/api/embed", self._model, body, seconds)
        vectors: Sequence[Sequence[float]] = answer.get("embeddings") or ()
        return vectors


def _text_of(answer: Json) -> str:
    message = answer.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else ""
