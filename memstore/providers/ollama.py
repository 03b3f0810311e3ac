"""Models that Ollama serves, by its own library: an answer that was checked, or an error that says what to do.

Ollama's silent ways out are closed: the window is asked for with every call (`num_ctx`), a prompt is sent only where it
must fit, cutting is forbidden (`truncate`, `shift`), and what the server tells afterwards is held against what was
sent. Of the environment, the library reads `OLLAMA_API_KEY`, and for other machines the proxies' variables;
`OLLAMA_HOST` counts for nothing beside `ollama_url`.
"""

from __future__ import annotations

import re
import ssl
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any, NoReturn
from urllib.parse import urlsplit

from memstore._compat import with_timeout
from memstore.errors import ModelUnavailable, PromptTooLong, ProviderError, ProviderMissing
from memstore.plugins import require_extra
from memstore.providers import ChatMessage, Completion, T
from memstore.providers.services import FEEDBACK, Prompt, RawAnswer, Retries, TransientError, complete, retry_after
from memstore.settings import Settings
from memstore.text import replace_surrogates

with require_extra("ollama", "ollama", "httpx"):
    import httpx
    import ollama

Json = dict[str, Any]

KEEP_ALIVE = "10m"  # a queue asks again soon, and loading takes longer than most answers
ASIDE = 10.0  # seconds for a question about the model, which the server answers from memory
CONNECT = 5.0  # seconds; an answer may take minutes, an open door does not

# Tokens around the texts, generously: the template's own (gpt-oss's preamble has about 100), and those of a message.
TEMPLATE = 256
PER_MESSAGE = 16

# How llama.cpp, Ollama's runners and its cloud word it. Go's "context canceled" is something else.
_TOO_LONG = re.compile(
    r"context (?:size|length|window)|exceed_context|(?:prompt|input) (?:is )?too long", re.IGNORECASE
)
_WORD = re.compile(r"\S*\w\S*")


def load(model: str, settings: Settings) -> OllamaModel:
    """Return the model of this name, as `ollama list` shows it. Asks the server nothing yet."""
    if not model:
        raise ProviderMissing("Write ollama:NAME, with the name that `ollama list` shows.")
    return OllamaModel(
        model,
        url=settings.ollama_url,
        num_ctx=settings.ollama_num_ctx,
        timeout=settings.ollama_timeout_seconds,
    )


class OllamaServer:
    """One server. `timeout` are seconds for one request with its retries, `backoff` for the first pause."""

    def __init__(self, url: str, timeout: float, backoff: float = 0.5) -> None:
        self.url = url
        self.timeout = timeout
        self._backoff = backoff
        host = urlsplit(url).hostname or ""
        self._is_local = host in ("localhost", "::1") or host.startswith("127.")

    def ask(
        self, path: str, model: str, body: Json | None = None, *, seconds: float | None = None, until_done: bool = False
    ) -> Json:
        """Return the JSON object that the server answers, or the one that says `done`; without a body it is a GET.

        Refused and broken connections, 429, 5xx, and what is no whole answer are tried again, never beyond `seconds`,
        or `timeout`. Raises ModelUnavailable, PromptTooLong where the server says so, ProviderError where it refuses.
        """
        seconds = self.timeout if seconds is None else max(0.001, min(self.timeout, seconds))
        return self._retries(seconds).run(lambda left: self._ask_once(path, model, body, left, until_done))

    def stream(self, path: str, model: str, body: Json) -> Generator[Json, None, None]:
        """Yield the JSON objects of a streamed answer as they come; the last one is `done`.

        `timeout` is the longest silence. Tried again is only what fails before the first object. Who stops reading
        hangs up, and so ends the server's work. Raises as `ask` does.
        """
        retries, end = self._retries(self.timeout), time.monotonic() + self.timeout
        for attempt in count(1):
            has_begun = False
            try:
                with self._client(model, self.timeout) as client:
                    for part in client._request(dict, "POST", path, json=body, stream=True):
                        has_begun = True
                        yield part
                        if part.get("done") is True:
                            return
                raise TransientError("it ended before it was done")
            except TransientError as failure:
                if has_begun:
                    raise ModelUnavailable(f"Ollama at {self.url} broke off its answer: {failure}") from failure
                retries.pause(attempt, failure, end)

    def _retries(self, seconds: float) -> Retries:
        return Retries(f"Ollama at {self.url}", seconds, self._backoff)

    def _ask_once(self, path: str, model: str, body: Json | None, seconds: float, until_done: bool) -> Json:
        # The library's public methods have no `truncate` and no `shift`; all of them go through `_request`. Its
        # time-outs limit the silence between two bytes, not the whole, so it runs in a thread that is not waited for.
        with self._client(model, seconds) as client:
            method = "GET" if body is None else "POST"
            request = partial(client._request, dict, method, path, json=body)
            answer: Json = with_timeout(seconds, request, name="memstore-ollama")
        if "error" in answer:
            _raise_if_too_long(model, str(answer["error"]))
            raise TransientError(str(answer["error"])[:300])
        if until_done and answer.get("done") is not True:
            raise TransientError("its answer broke off")
        return answer

    @contextmanager
    def _client(self, model: str, seconds: float) -> Iterator[ollama.Client]:
        """Yield a client for one request, whose errors are ours."""
        seen: list[httpx.Response] = []
        client = ollama.Client(
            self.url,
            timeout=httpx.Timeout(seconds, connect=min(CONNECT, seconds)),
            verify=_certificates(),
            trust_env=not self._is_local,  # a proxy's own 127.0.0.1 is another one
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
            raise TransientError(f"{type(error).__name__}: {error}") from error
        except (ollama.ResponseError, AttributeError, TypeError, ValueError, RecursionError) as error:
            # Beside its own error, the library raises Python's where a body is not the JSON object it takes it for.
            if seen and not seen[-1].is_success:
                self._refuse(model, seen[-1], str(getattr(error, "error", error)))
            if isinstance(error, ollama.ResponseError):  # a line of a stream
                _raise_if_too_long(model, error.error)
                raise TransientError(error.error[:300]) from error
            raise TransientError(f"its answer is not JSON ({type(error).__name__})") from error

    def _refuse(self, model: str, response: httpx.Response, why: str) -> NoReturn:
        code, why = response.status_code, why[:300]
        if code == 404:
            raise ModelUnavailable(f"Ollama at {self.url} has no {model}: `ollama pull {model}` brings it. ({why})")
        if code in (401, 403):
            raise ModelUnavailable(f"Ollama at {self.url} refuses ({code}): {why} OLLAMA_API_KEY holds its key.")
        if code in (400, 413, 422, 500):
            _raise_if_too_long(model, why)
        if code in (408, 429) or code >= 500:
            raise TransientError(f"{code} {why}", retry_after(response.headers.get("retry-after")))
        raise ProviderError(f"Ollama at {self.url} refuses the request ({code}): {why}")


def _raise_if_too_long(model: str, why: str) -> None:
    if _TOO_LONG.search(why):
        raise PromptTooLong(f"The prompt does not fit into the window that Ollama gave {model}: {why[:300]}")


@cache  # reading the certificates takes 30 ms
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


@dataclass(frozen=True, slots=True)
class _Description:
    """What the server says of the model: its digest, the window that it was trained for, and whether it thinks."""

    digest: str
    trained: int | None
    thinks: bool


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """A whole answer, why it ended ("stop", or "length" at its most tokens), and the server's own counts of tokens.

    `prompt_tokens` is None where the server does not tell.
    """

    text: str
    ended: str
    prompt_tokens: int | None
    answer_tokens: int | None


class OllamaModel:
    """A ChatModel on an Ollama server, which can also be chatted with. Safe to share by threads.

    `num_ctx` is the window in tokens, `timeout` the seconds for one answer with all its retries (of a streamed one the
    longest silence), `backoff` the first pause before a retry. In a prompt a token is taken for a byte, which holds for
    every tokenizer over bytes or with a fallback to them. `complete` takes twice `timeout` at most, and the first time
    up to 20 s more for what the server says of the model.
    """

    def __init__(
        self, model: str, *, url: str, num_ctx: int = 8192, timeout: float = 300.0, backoff: float = 0.5
    ) -> None:
        self._model = model
        self._server = OllamaServer(url, timeout, backoff)
        self._num_ctx = num_ctx
        self._overhead = TEMPLATE + FEEDBACK
        self._allotted: int | None = None
        self._known: _Description | None = None

    @property
    def name(self) -> str:
        """The full name, such as "ollama:qwen3:4b@a80c4f17acd5": with 12 digits of the digest where the server has one.

        Asks the server the first time; raises ModelUnavailable where it is away or has no such model.
        """
        digest = self._description().digest
        return f"{self.counter_name}@{digest[:12]}" if digest else self.counter_name

    @property
    def counter_name(self) -> str:
        """The name of the counter of its contexts, such as "ollama:qwen3:4b"."""
        return f"ollama:{self._model}"

    @property
    def context_tokens(self) -> int:
        """The window that is really had: `num_ctx`, or what the model was trained for where that is less.

        Asks the server the first time. Less again while the server shows that it allots less.
        """
        return min(self._num_ctx, self._description().trained or self._num_ctx, self._allotted or self._num_ctx)

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Return a number of tokens that the prompt of these messages, and of a second try, does not exceed."""
        sizes = (len(message["content"].encode("utf-8", "surrogatepass")) for message in messages)
        return self._overhead + sum(PER_MESSAGE + size for size in sizes)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the answer as `schema`; one that cannot be used is asked for once more, with what is wrong with it.

        Raises as `ChatModel.complete` says, and ProviderError where Ollama refuses the request itself.
        """
        prompt = [{"role": each["role"], "content": replace_surrogates(each["content"])} for each in messages]
        needed = self.max_prompt_tokens(prompt) + max_tokens
        if needed > self.context_tokens:
            raise PromptTooLong(
                f"The prompt and its answer may have {needed} tokens, and {self._model} has a window of "
                f"{self.context_tokens}. Nothing was sent: give it less text, or raise MEMSTORE_OLLAMA_NUM_CTX."
            )
        request = _Request(schema.model_json_schema(), max_tokens, needed, time.monotonic() + 2 * self._server.timeout)
        return complete(self._model, prompt, schema, lambda prompt: self._ask(prompt, request))

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, show: Callable[[str], object]
    ) -> StreamedAnswer:
        """Return the whole answer of at most `max_tokens` tokens, each piece shown as it comes. Thoughts are not shown.

        Raises ModelUnavailable where the server is away, silent for too long, or breaks off; PromptTooLong where it
        says so; ProviderError for what it refuses. Pieces may have been shown by then.
        """
        pieces: list[str] = []
        last: Json = {}
        # "think" is left alone: the prompt that was counted is one without it, and it changes some.
        body = self._body(messages, {"num_predict": max_tokens}) | {"stream": True}
        with closing(self._server.stream("/api/chat", self._model, body)) as parts:  # interrupted, it hangs up at once
            for last in parts:
                if piece := _text_of(last):
                    pieces.append(piece)
                    show(piece)
        self._allotted = _count(self._loaded_entry(ASIDE), "context_length") or self._allotted
        ended = str(last.get("done_reason") or "stop")
        return StreamedAnswer("".join(pieces), ended, _count(last, "prompt_eval_count"), _count(last, "eval_count"))

    def _ask(self, prompt: Prompt, request: _Request) -> RawAnswer:
        body = self._body(prompt, request.options) | {"format": request.schema}
        if self._description().thinks:
            body["think"] = False  # thoughts would be taken from the answer's tokens
        answer = self._chat(body, request)
        counted = _count(answer, "prompt_eval_count")
        self._prove_whole(prompt, request, counted)
        return RawAnswer(
            _text_of(answer),
            answer.get("done_reason") in ("stop", None),
            request.needed - request.max_tokens if counted is None else counted,
            _count(answer, "eval_count") or 0,
        )

    def _chat(self, body: Json, request: _Request) -> Json:
        return self._server.ask("/api/chat", self._model, body, seconds=request.seconds_left, until_done=True)

    def _body(self, prompt: Sequence[Mapping[str, Any]], options: Json) -> Json:
        return {
            "model": self._model,
            "messages": list(prompt),
            "stream": False,
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
            "options": {"num_ctx": self._num_ctx} | options,
        }

    def _prove_whole(self, prompt: Prompt, request: _Request, counted: int | None) -> None:
        """Raise PromptTooLong where the server shows that the model did not see the whole prompt.

        It shows so by a window smaller than what was asked for, or by fewer tokens than the prompt has words. Where it
        shows neither, that the prompt fitted rests on `max_prompt_tokens`.
        """
        loaded = self._loaded_entry(min(ASIDE, request.seconds_left))
        digest = digest_of(loaded)
        if digest and self._description().digest not in ("", digest):
            self._known = None
            raise ModelUnavailable(f"{self._model} was pulled anew while it was asked: derive again.")
        self._allotted = _count(loaded, "context_length")
        if self._allotted is not None and self._allotted < request.needed:
            raise PromptTooLong(
                f"Ollama gave {self._model} a window of {self._allotted} tokens, and the prompt and its answer may "
                f"have {request.needed}: it may have been cut. The answer was thrown away; the next prompt is shorter."
            )
        if counted is not None and counted + request.max_tokens > self.context_tokens:
            self._overhead += counted + request.max_tokens - request.needed
            raise PromptTooLong(
                f"The prompt had {counted} tokens, more than its bound: the template of {self._model} is longer than "
                "was allowed for. The answer was thrown away; the next prompt is shorter."
            )
        # Not above the tokens: tokenizers join no words over white space.
        words = sum(len(_WORD.findall(message["content"])) for message in prompt)
        if (counted or 0) < words and (again := self._recount(prompt, request)) is not None and again < words:
            raise PromptTooLong(
                f"Ollama read {again} tokens of a prompt of {words} words: it was cut. The answer was thrown away. "
                "Raise MEMSTORE_OLLAMA_NUM_CTX, or update Ollama."
            )

    def _recount(self, prompt: Prompt, request: _Request) -> int | None:
        """Return the tokens that the server reads of the prompt when it cannot have its beginning in its cache.

        Some versions count only what the cache did not hold (0.30.0 was one), so that a low count alone proves nothing.
        """
        first, *others = prompt
        fresh = [first | {"content": f"{uuid.uuid4().hex}\n{first['content']}"}, *others]
        body = self._body(fresh, request.options | {"num_predict": 1})
        return _count(self._chat(body, request), "prompt_eval_count")

    def _loaded_entry(self, seconds: float) -> Json:
        """Return what the server says of the model as it is loaded; nothing where it does not."""
        with suppress(ProviderError):
            return entry_of(self._server.ask("/api/ps", self._model, seconds=seconds), self._model)
        return {}

    def _description(self) -> _Description:
        if self._known is None:
            shown = self._server.ask("/api/show", self._model, {"model": self._model}, seconds=ASIDE)
            abilities = shown.get("capabilities") or ["completion"]
            if "completion" not in abilities:
                raise ProviderMissing(f"{self._model} cannot chat, only {', '.join(abilities)}: name another model.")
            listing = self._server.ask("/api/tags", self._model, seconds=ASIDE)
            about = shown.get("model_info")
            about = about if isinstance(about, dict) else {}
            trained = _count(about, f"{about.get('general.architecture')}.context_length")
            self._known = _Description(digest_of(entry_of(listing, self._model)), trained, "thinking" in abilities)
        return self._known


@dataclass(frozen=True, slots=True)
class _Request:
    """In which shape is to be answered, the tokens that prompt and answer may take, and when all must end."""

    schema: Json
    max_tokens: int
    needed: int
    end: float

    @property
    def seconds_left(self) -> float:
        return self.end - time.monotonic()

    @property
    def options(self) -> Json:
        # A quote repeats the prompt; the server's default penalty of 1.1 works against that.
        return {"num_predict": self.max_tokens, "temperature": 0, "seed": 1, "repeat_penalty": 1.0}


def _text_of(answer: Json) -> str:
    message = answer.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else ""


def _count(answer: Json, key: str) -> int | None:
    value = answer.get(key)
    return value if isinstance(value, int) and value > 0 else None
