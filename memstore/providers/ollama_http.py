"""Requests to an Ollama server through its own library, with an end: retries, time-outs, and errors of memstore's.

The library's public methods have no `truncate` and no `shift`, so its `_request` is called, through which all of them
go. Its time-outs are httpx's, which limit the silence between two bytes and not the whole: a server that sends a byte a
minute would never be done with. So a request runs in a thread that is not waited for longer than was said.
"""

from __future__ import annotations

import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NoReturn
from urllib.parse import urlsplit

from memstore._compat import with_timeout
from memstore.errors import ModelUnavailable, PromptTooLong, ProviderError
from memstore.providers.optional import brought_by

with brought_by("ollama", "ollama", "httpx"):
    import httpx
    import ollama

Json = dict[str, Any]

TRIES = 4
CONNECT = 5.0  # seconds; an answer may take minutes, an open door does not
# How llama.cpp, Ollama's runners and its cloud word it. Go's "context canceled" is something else.
_WINDOW = re.compile(r"context (?:size|length|window)|exceed_context|(?:prompt|input) (?:is )?too long", re.IGNORECASE)


class _Passing(Exception):
    """A failure that may pass, and the seconds to wait for that where the server says so."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Server:
    """One Ollama server. `timeout` are seconds for one request with its retries, `backoff` for the first pause."""

    def __init__(self, url: str, timeout: float, backoff: float) -> None:
        self.url = url
        self.timeout = timeout
        self.backoff = backoff
        host = urlsplit(url).hostname or ""
        self._here = host in ("localhost", "::1") or host.startswith("127.")

    def ask(
        self,
        method: str,
        path: str,
        model: str,
        body: Json | None = None,
        *,
        whole: Callable[[Json], bool] = lambda told: True,
        patience: float | None = None,
    ) -> Json:
        """Give the JSON object that the server answers, once it is `whole`; try again what may pass.

        Refused and broken connections, 429, 5xx, and answers that break off are tried `TRIES` times, with pauses that
        double and differ by chance, or as long as the server asks for; never beyond `patience` seconds, or `timeout`.
        Raises ModelUnavailable, PromptTooLong where the server says so, and ProviderError for what it refuses.
        """
        seconds = self.timeout if patience is None else max(0.001, min(self.timeout, patience))
        end = time.monotonic() + seconds
        for attempt in count(1):
            try:
                return self._once(method, path, model, body, whole, max(0.001, end - time.monotonic()))
            except _Passing as failure:
                self._pause(attempt, failure, end)
        raise AssertionError("count() has no end")

    def stream(self, path: str, model: str, body: Json) -> Generator[Json, None, None]:
        """Give the JSON objects of a streamed answer as they come; the last one is `done`.

        `timeout` seconds are the longest silence. Tried again is only what fails before the first object. Who stops
        reading, or is interrupted, hangs up, and so ends the server's work. Raises as `ask` does.
        """
        end = time.monotonic() + self.timeout
        for attempt in count(1):
            begun = False
            try:
                for part in self._parts(path, model, body):
                    begun = True
                    yield part
                return
            except _Passing as failure:
                if begun:
                    raise ModelUnavailable(f"Ollama at {self.url} broke off its answer: {failure}") from failure
                self._pause(attempt, failure, end)

    def _pause(self, attempt: int, failure: _Passing, end: float) -> None:
        """Wait for the next attempt; raise ModelUnavailable where there is none, or not before the end."""
        pause = self.backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        wait = pause if failure.wait is None else failure.wait
        if attempt == TRIES or time.monotonic() + wait >= end:
            raise ModelUnavailable(f"Ollama at {self.url} is away: {failure}") from failure
        time.sleep(wait)

    def _once(
        self, method: str, path: str, model: str, body: Json | None, whole: Callable[[Json], bool], seconds: float
    ) -> Json:
        with self._client(model, seconds) as client:
            told = with_timeout(seconds, lambda: client._request(dict, method, path, json=body), name="memstore-ollama")
        if "error" in told:
            _raise_if_too_long(model, str(told["error"]))
            raise _Passing(str(told["error"])[:300])
        if not whole(told):
            raise _Passing("its answer broke off")
        answer: dict[str, Any] = told
        return answer

    def _parts(self, path: str, model: str, body: Json) -> Iterator[Json]:
        with self._client(model, self.timeout) as client, _Line() as line:
            parts = client._request(dict, "POST", path, json=body, stream=True, extensions={"trace": line.note})
            for part in line.read(parts, self.timeout):
                yield part
                if part.get("done") is True:
                    return
        raise _Passing("it ended before it was done")

    @contextmanager
    def _client(self, model: str, seconds: float) -> Iterator[ollama.Client]:
        """Give a client for one request, whose errors are ours."""
        seen: list[httpx.Response] = []
        client = ollama.Client(
            self.url,
            timeout=httpx.Timeout(seconds, connect=min(CONNECT, seconds)),
            verify=_certificates(),
            trust_env=not self._here,  # a proxy's own 127.0.0.1 is another one
            follow_redirects=False,  # what was said goes to the server that was named, and to no other
            event_hooks={"response": [seen.append]},
        )
        try:
            with client:
                yield client
        except (TimeoutError, httpx.ReadTimeout) as error:
            raise ModelUnavailable(
                f"Ollama at {self.url} did not answer within {seconds:.0f} s (MEMSTORE_OLLAMA_TIMEOUT_SECONDS)."
            ) from error
        except (ConnectionError, httpx.HTTPError) as error:
            raise _Passing(f"{type(error).__name__}: {error}") from error
        except (ollama.ResponseError, AttributeError, TypeError, ValueError, RecursionError) as error:
            # Beside its own error, the library raises Python's where a body is not the JSON object it takes it for.
            if seen and not seen[-1].is_success:
                self._refuse(model, seen[-1], str(getattr(error, "error", error)))
            if isinstance(error, ollama.ResponseError):  # a line of a stream
                _raise_if_too_long(model, error.error)
                raise _Passing(error.error[:300]) from error
            raise _Passing(f"its answer is not JSON ({type(error).__name__})") from error

    def _refuse(self, model: str, response: httpx.Response, why: str) -> NoReturn:
        code, why = response.status_code, why[:300]
        if code == 404:
            raise ModelUnavailable(f"Ollama at {self.url} has no {model}: `ollama pull {model}` brings it. ({why})")
        if code in (401, 403):
            raise ModelUnavailable(f"Ollama at {self.url} refuses ({code}): {why} OLLAMA_API_KEY holds its key.")
        if code in (400, 413, 422, 500):
            _raise_if_too_long(model, why)
        if code in (408, 429) or code >= 500:
            raise _Passing(f"{code} {why}", _retry_after(response.headers.get("retry-after")))
        raise ProviderError(f"Ollama at {self.url} refuses the request ({code}): {why}")


class _Line:
    """The connection of one streamed answer, read in a thread, and hung up when who listens leaves.

    A thread, so that whoever waits can be interrupted and has an end of its own. What wakes it from waiting for bytes
    is that its socket is shut down; closing alone would not, and the server would go on until its next byte.
    """

    def __init__(self) -> None:
        self._streams: list[Any] = []
        self._parts: SimpleQueue[Json | Exception | None] = SimpleQueue()

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            with suppress(OSError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def note(self, event: str, info: Json) -> None:
        """Keep the connection as soon as there is one: the answer's first byte may be minutes away."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._streams.append(info["return_value"])

    def read(self, parts: Iterator[Json], silence: float) -> Iterator[Json]:
        """Give the parts as they come; raise TimeoutError after so many seconds without one."""
        threading.Thread(target=self._read, args=[parts], name="memstore-ollama", daemon=True).start()
        while True:
            try:
                part = self._parts.get(timeout=silence)
            except Empty:
                raise TimeoutError from None
            if part is None:
                return
            if isinstance(part, Exception):
                raise part
            yield part

    def _read(self, parts: Iterator[Json]) -> None:
        try:
            for part in parts:
                self._parts.put(part)
            self._parts.put(None)
        except Exception as error:  # whatever it is, it is raised where the parts are waited for
            self._parts.put(error)


def entry_of(told: Json, model: str) -> Json:
    """Give what a list of models says of this one; a name without a tag means its tag `latest`."""
    models = told.get("models")
    for entry in models if isinstance(models, list) else []:
        if isinstance(entry, dict) and {entry.get("model"), entry.get("name")} & {model, f"{model}:latest"}:
            return entry
    return {}


def digest_of(entry: Json) -> str:
    """Give the digest of a model's weights and template by its entry, in hex; "" where it tells none."""
    return str(entry.get("digest") or "").removeprefix("sha256:")


@cache
def _certificates() -> ssl.SSLContext:
    """Give the context of TLS, made once: reading the certificates takes 30 ms."""
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def _raise_if_too_long(model: str, why: str) -> None:
    if _WINDOW.search(why):
        raise PromptTooLong(f"The prompt does not fit into the window that Ollama gave {model}: {why[:300]}")


def _retry_after(header: str | None) -> float | None:
    """Give the seconds that a Retry-After asks for, by number or by date; None where it says nothing of use."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
