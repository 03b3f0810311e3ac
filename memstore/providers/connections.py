"""Requests to a server, asked again for what may pass and limited in time; SDK servers and embedders on them."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import ceil
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import finalize

import numpy as np

from memstore._compat import with_timeout
from memstore.errors import ModelUnavailable, PromptTooLong, ProviderError
from memstore.models import Json
from memstore.providers import Vectors
from memstore.settings import Settings
from memstore.text import replace_surrogates

R = TypeVar("R")

MAX_TRIES = 4
PAUSE_SECONDS = 0.5
# An answer may take minutes, an open door does not.
CONNECT_SECONDS = 5.0


class RequestRefused(ProviderError):
    """A request that the server does not take as it is."""


class TransientError(Exception):
    """A failure that may pass, and the seconds to wait for that where the server says so."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Retries:
    """Asks a service again for what may pass: `MAX_TRIES` times within `seconds`.

    Pauses double and differ by chance, or are as long as the server asks for. `advice` is about a service that does not
    answer in time.
    """

    service: str
    seconds: float
    advice: str = ""

    def run(self, call: Callable[[float], R]) -> R:
        """Return what `call` does within the seconds that it is given; raise `ModelUnavailable` after the last try."""
        end = time.monotonic() + self.seconds
        tries = 0
        while True:
            try:
                return call(max(0.001, end - time.monotonic()))
            except TransientError as failure:
                wait = PAUSE_SECONDS * 2**tries * random.uniform(0.5, 1.5) if failure.wait is None else failure.wait
                tries += 1
                if tries == MAX_TRIES or time.monotonic() + wait >= end:
                    raise ModelUnavailable(f"{self.service} is away: {failure}") from failure
            time.sleep(wait)

    def run_in_time(self, call: Callable[[float], R]) -> R:
        """Do as `run`, and wait for no call's thread: a server's library limits the silence between two bytes alone."""
        return self.run(lambda seconds: self.in_time(seconds, lambda: with_timeout(seconds, lambda: call(seconds))))

    def in_time(self, seconds: float, call: Callable[[], R]) -> R:
        """Return what `call` does; raise `ModelUnavailable` for its TimeoutError."""
        try:
            return call()
        except TimeoutError as error:
            raise ModelUnavailable(f"{self.service} did not answer within {seconds:.0f} s.{self.advice}") from error


def refusal(
    service: str, model: str, code: int, why: str, retry_after: str | None = None
) -> ProviderError | TransientError:
    """Return the error of a request that a server has refused with this status, and this Retry-After."""
    if code < 400:
        # Where to is not told: the URL may hold a key.
        return ProviderError(f"{service} sends requests elsewhere ({code}), which is not followed: set its URL.")
    if code == 404:
        return ModelUnavailable(f"{service} has no {model}, or the URL is not its base URL ({code}): {why[:300]}")
    if code in (401, 403):
        return ModelUnavailable(f"{service} refuses the key ({code}): {why[:300]}")
    if code in (400, 413, 422, 500) and isinstance(error := reported(model, why), PromptTooLong):
        return error
    if code in (408, 409, 425, 429) or code >= 500:
        wait = None
        with suppress(ValueError):
            wait = max(0.0, float(retry_after or ""))
        return TransientError(f"{code} {why[:300]}", wait)
    return RequestRefused(f"{service} refuses the request ({code}): {why[:300]}")


def reported(model: str, why: str) -> PromptTooLong | TransientError:
    """Return the error that an answer reports: proxies send those with a status of 200."""
    # How llama.cpp, vLLM, Ollama's runners and the clouds word it. Go's "context canceled" is something else.
    too_long = (
        "context size", "context length", "context_length", "context window", "exceed_context", "maximum context",
        "prompt too long", "prompt is too long", "input too long", "input is too long", "too many tokens",
        "too many input tokens",
    )  # fmt: skip
    if any(words in why.lower() for words in too_long):
        return PromptTooLong(f"The prompt does not fit into the window of {model}: {why[:300]}")
    return TransientError(why[:300])


def hide_key(text: str, key: str | None) -> str:
    """Return a server's words without the key, and without anything that looks like one."""
    return re.sub(r"\b(?:sk|gsk|key)-[\w*.-]{4,}|\bBearer \S+", "…", text.replace(key, "…") if key else text)


def is_local(url: str) -> bool:
    """Return whether a URL is of this machine, for which no proxy of the environment is asked."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def count_in(answer: object, key: str) -> int | None:
    """Return the number of tokens that an answer has under a key; None where it has none."""
    count = answer.get(key) if isinstance(answer, dict) else None
    return count if isinstance(count, int) and count > 0 else None


def error_text(body: object) -> str:
    """Return what the body of an error says, as Anthropic, OpenAI, vLLM, TEI and others write it."""
    while isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail")
    return body if isinstance(body, str) else json.dumps(body) if body else ""


class SDKServer:
    """A server asked by a `client` of the `library` openai or anthropic. Raises as a `ChatEndpoint` does.

    Headers that these libraries find in the environment are not sent, no redirect is followed, and no key stands in an
    error.
    """

    def __init__(
        self, library: Any, client: Callable[..., Any], service: str, url: str, key: str, headers: Json
    ) -> None:
        self.url = url
        self.service = service
        self.is_local = is_local(url)
        self._library, self._client = library, client
        self._key = key
        self._headers = headers

    def get(self, path: str, seconds: float) -> Any:
        """Return the JSON that the server answers."""
        with self._connected("", seconds) as client:
            return client.get(path, cast_to=object)

    def post(self, path: str, model: str, body: Json, seconds: float) -> Json:
        """Return the JSON object that the server answers."""
        with self._connected(model, seconds) as client:
            answer = client.post(path, body=body, cast_to=object)
        if not isinstance(answer, dict):
            raise TransientError(f"its answer is no JSON object ({type(answer).__name__})")
        if answer.get("error"):
            raise self._reported(model, answer)
        return answer

    def stream(self, path: str, model: str, body: Json, seconds: float) -> Generator[Json, None, None]:
        """Yield the JSON objects of a streamed answer as they come."""
        with self._connected(model, seconds) as client:
            parts = client.post(path, body=body, cast_to=object, stream=True, stream_cls=self._library.Stream[object])
            with parts:
                for part in parts:
                    if isinstance(part, dict):
                        yield part

    @cached_property
    def _shared_client(self) -> Any:
        lines = os.environ.get(f"{self._library.__name__.upper()}_CUSTOM_HEADERS", "").splitlines()
        unsent = dict.fromkeys((line.split(":")[0].strip() for line in lines if line), self._library.Omit())
        # A proxy's own 127.0.0.1 is another one.
        http_client = self._library.DefaultHttpxClient(follow_redirects=False, trust_env=not self.is_local)
        client = self._client(
            # The libraries will not go without a key.
            api_key=self._key or "none",
            base_url=self.url,
            max_retries=0,
            default_headers=unsent | self._headers,
            http_client=http_client,
        )
        finalize(self, client.close).atexit = False
        return client

    @contextmanager
    def _connected(self, model: str, seconds: float) -> Iterator[Any]:
        """Yield a client for one request, whose errors are ours."""
        library = self._library
        try:
            yield self._shared_client.with_options(
                timeout=library.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
            )
        except library.APITimeoutError as error:
            raise TimeoutError from error
        except library.APIStatusError as error:
            # The server's answer may repeat the key.
            why = hide_key(error_text(error.body) or str(error), self._key)
            raise self._refusal(model, error, why) from None
        except library.APIConnectionError as error:
            raise TransientError(hide_key(f"{error} {error.__cause__ or ''}".strip(), self._key)) from None
        except library.APIError as error:
            # Within a stream.
            raise self._reported(model, error.body or str(error)) from None
        except (ValueError, RecursionError) as error:
            raise TransientError(f"its answer is not JSON ({type(error).__name__})") from None

    def _refusal(self, model: str, error: Any, why: str) -> ProviderError | TransientError:
        return refusal(self.service, model, error.status_code, why, error.response.headers.get("retry-after"))

    def _reported(self, model: str, body: object) -> ProviderError | TransientError:
        return reported(model, hide_key(error_text(body) or str(body), self._key))


class EmbeddingEndpoint(Protocol):
    """One embedding model of one server; raises as a `ChatEndpoint` does."""

    service: str
    # The full one; the same name must mean the same vectors.
    name: str

    def embed(self, texts: Sequence[str], seconds: float) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""


class ServedEmbedder:
    """An Embedder on a server. Vectors are brought to unit length; a text is preceded by the prefix that is set.

    Tokens are estimated from bytes: chunks are far smaller than any window. Safe to share by threads.
    """

    def __init__(self, endpoint: EmbeddingEndpoint, settings: Settings) -> None:
        self.max_tokens = 8191
        self._endpoint = endpoint
        self._settings = settings
        self._dimensions: int | None = None

    def __repr__(self) -> str:
        return f"<ServedEmbedder {self.name}>"

    @property
    def name(self) -> str:
        """The full name, kept with every stored vector: other prefixes make other vectors."""
        prefixes = "\0".join((self._settings.embedding_query_prefix, self._settings.embedding_document_prefix))
        marked = f"#{sha256(prefixes.encode()).hexdigest()[:8]}" if prefixes != "\0" else ""
        return f"{self._endpoint.name}{marked}"

    @property
    def dimensions(self) -> int:
        """The number of components of a vector. Asks the server the first time."""
        if self._dimensions is None:
            self._dimensions = len(self._embed(["dimensions"])[0])
        return self._dimensions

    def count(self, text: str) -> int:
        """Return about the number of tokens of a text: one for each three bytes, more than most have."""
        return ceil(len(text.encode("utf-8", "surrogatepass")) / 3)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, each of length 1."""
        sent = [self._settings.embedding_document_prefix + text for text in texts]
        rows = [self._embed(sent[start : start + 32]) for start in range(0, len(sent), 32)]
        return np.concatenate(rows) if rows else np.empty((0, self.dimensions), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (dimensions,), float32, of length 1."""
        vector: Vectors = self._embed([self._settings.embedding_query_prefix + text])[0]
        return vector

    def _embed(self, texts: Sequence[str]) -> Vectors:
        # An empty input is refused by most servers, and one beyond the window by some.
        written = [replace_surrogates(text).replace("\0", " ").encode()[: 3 * self.max_tokens] for text in texts]
        sent = [text.decode("utf-8", "ignore") or " " for text in written]
        service = self._endpoint.service
        retries = Retries(service, self._settings.embedding_timeout_seconds)
        answered = retries.run_in_time(lambda seconds: self._endpoint.embed(sent, seconds))
        try:
            vectors = np.asarray(answered, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            vectors = np.empty((0, 0), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True) if vectors.ndim == 2 else np.zeros(1)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(lengths).all() or not lengths.all():
            raise ProviderError(f"{service} gave no vector for each of {len(texts)} texts: is {self.name} an embedder?")
        if self._dimensions not in (None, vectors.shape[1]):
            raise ProviderError(
                f"{service} gives vectors of {vectors.shape[1]} dimensions now, {self._dimensions} before."
            )
        return vectors / lengths
