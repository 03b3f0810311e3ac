"""Chat models that Ollama serves: an answer that was checked, or an error that says what to do, within a set time.

Ollama's silent ways out are closed: the window is asked for with every call (`num_ctx`), a prompt is sent only where it
must fit, cutting is forbidden (`truncate`, `shift`), and what the server tells afterwards is held against what was
sent. Answers are not streamed: a stream that breaks off looks like one that ends. Of the environment, the library reads
`OLLAMA_API_KEY`, and for other machines the proxies' variables; `OLLAMA_HOST` counts for nothing beside `ollama_url`.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import ValidationError

from memstore.errors import ModelAnswerInvalid, ModelUnavailable, PromptTooLong, ProviderError, ProviderMissing
from memstore.providers import ChatMessage, Completion, T, TokenCounter
from memstore.providers.ollama_http import Json, Server, digest_of, entry_of
from memstore.settings import Settings

KEEP_ALIVE = "10m"  # a queue asks again soon, and loading takes longer than most answers
ASIDE = 10.0  # seconds for a question about the model, which the server answers from memory

# Tokens around the texts, generously: the template's own (gpt-oss's preamble has about 100), and those of a message.
TEMPLATE = 256
PER_MESSAGE = 16
FEEDBACK = 500  # bytes of what is wrong with an answer, kept free for the second try

_WORD = re.compile(r"\S*\w\S*")
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


def load(model: str, settings: Settings) -> OllamaModel:
    """Give the chat model of this name, as `ollama list` shows it. Asks the server nothing yet."""
    if not model:
        raise ProviderMissing("Write ollama:NAME, with the name that `ollama list` shows.")
    return OllamaModel(
        model,
        url=settings.ollama_url,
        num_ctx=settings.ollama_num_ctx,
        timeout=settings.ollama_timeout_seconds,
    )


@dataclass(frozen=True, slots=True)
class _Described:
    """What the server says of the model: its digest, the window that it was trained for, and whether it thinks."""

    digest: str
    trained: int | None
    thinks: bool


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked, the tokens that it may take with its answer, and when all must end."""

    prompt: list[dict[str, str]]
    shape: Json
    max_tokens: int
    needed: int
    end: float

    @property
    def patience(self) -> float:
        return self.end - time.monotonic()

    def again(self, wrong: str) -> _Request:
        """Give the request with what is wrong, in its last message: some templates refuse two of one role."""
        more = f"\n\nAn earlier answer to this could not be used. {wrong} Answer anew, with the JSON object alone."
        kept = more.encode("utf-8", "replace")[:FEEDBACK].decode("utf-8", "ignore")
        last = self.prompt[-1]
        return replace(self, prompt=[*self.prompt[:-1], last | {"content": last["content"] + kept}])

    def words(self) -> int:
        """Give the number of words, which is not above that of tokens: tokenizers join none over white space."""
        return sum(len(_WORD.findall(message["content"])) for message in self.prompt)


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    stopped: bool
    prompt_tokens: int
    completion_tokens: int


class _Unusable(Exception):
    """An answer that is not what was asked for; the message tells the model what is wrong with it."""


class OllamaModel:
    """A ChatModel on an Ollama server, by the library `ollama`. Safe to share by threads.

    `num_ctx` is the window in tokens, `timeout` the seconds for one answer with all its retries, `backoff` the first
    pause before a retry in seconds. `counter`, where the model's own tokenizer is at hand, makes `bound` a closer one;
    without it a token is taken for a byte, which holds for every tokenizer over bytes or with a fallback to them.
    `complete` takes twice `timeout` at most, as an answer that cannot be used is asked for again, and the first time up
    to 20 s more for what the server says of the model.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str,
        num_ctx: int = 8192,
        timeout: float = 300.0,
        backoff: float = 0.5,
        counter: TokenCounter | None = None,
    ) -> None:
        self._model = model
        self._server = Server(url, timeout, backoff)
        self._num_ctx = num_ctx
        self._counter = counter
        self._around = TEMPLATE + FEEDBACK
        self._allotted: int | None = None
        self._known: _Described | None = None

    @property
    def name(self) -> str:
        """The full name, such as "ollama:qwen3:4b@a80c4f17acd5": with 12 digits of the digest where the server has one.

        Asks the server the first time; raises ModelUnavailable where it is away or has no such model.
        """
        digest = self._description().digest
        return f"ollama:{self._model}@{digest[:12]}" if digest else f"ollama:{self._model}"

    @property
    def context_tokens(self) -> int:
        """The window that is really had: `num_ctx`, or what the model was trained for where that is less.

        Asks the server the first time. Less again while the server shows that it allots less.
        """
        return min(self._num_ctx, self._description().trained or self._num_ctx, self._allotted or self._num_ctx)

    def bound(self, messages: Sequence[ChatMessage]) -> int:
        """Give a number of tokens that the prompt of these messages does not exceed, that of a second try included."""
        return self._around + sum(PER_MESSAGE + self._at_most(message["content"]) for message in messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Give the answer as `schema`; one that cannot be used is asked for once more, with what is wrong with it.

        Raises as `ChatModel.complete` says, and ProviderError where Ollama refuses the request itself.
        """
        request = self._request(messages, schema.model_json_schema(), max_tokens)
        first = self._ask(request)
        try:
            return Completion(_read(first, schema), first.prompt_tokens, first.completion_tokens)
        except _Unusable as wrong:
            second = self._ask(request.again(str(wrong)))
        spent = first.prompt_tokens + second.prompt_tokens, first.completion_tokens + second.completion_tokens
        try:
            return Completion(_read(second, schema), *spent, calls=2)
        except _Unusable as wrong:
            raise ModelAnswerInvalid(
                f"{self._model} answered twice with what cannot be used: {wrong} A larger model may do better.",
                second.text,
                *spent,
                calls=2,
            ) from None

    def _at_most(self, text: str) -> int:
        return len(text.encode("utf-8", "replace")) if self._counter is None else self._counter.count(text)

    def _request(self, messages: Sequence[ChatMessage], shape: Json, max_tokens: int) -> _Request:
        """Give the request, if it is proved to fit; raise PromptTooLong if not."""
        prompt = [{"role": each["role"], "content": _sendable(each["content"])} for each in messages]
        needed = self.bound(prompt) + max_tokens
        if needed > self.context_tokens:
            raise PromptTooLong(
                f"The prompt and its answer may have {needed} tokens, and {self._model} has a window of "
                f"{self.context_tokens}. Nothing was sent: give it less text, or raise MEMSTORE_OLLAMA_NUM_CTX."
            )
        return _Request(prompt, shape, max_tokens, needed, time.monotonic() + 2 * self._server.timeout)

    def _ask(self, request: _Request) -> _Answer:
        body = self._body(request.prompt, request.max_tokens) | {"format": request.shape}
        if self._description().thinks:
            body["think"] = False  # thoughts would be taken from the answer's tokens
        told = self._chat(body, request)
        message = told.get("message")
        text = message.get("content") if isinstance(message, dict) else None
        counted = _count(told, "prompt_eval_count")
        self._prove_whole(request, counted)
        return _Answer(
            text if isinstance(text, str) else "",
            told.get("done_reason") in ("stop", None),
            request.needed - request.max_tokens if counted is None else counted,
            _count(told, "eval_count") or 0,
        )

    def _chat(self, body: Json, request: _Request) -> Json:
        return self._server.ask("POST", "/api/chat", self._model, body, whole=_is_done, patience=request.patience)

    def _body(self, prompt: list[dict[str, str]], max_tokens: int) -> Json:
        return {
            "model": self._model,
            "messages": prompt,
            "stream": False,
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
            "options": {
                "num_ctx": self._num_ctx,
                "num_predict": max_tokens,
                "temperature": 0,
                "seed": 1,
                "repeat_penalty": 1.0,  # a quote repeats the prompt; the server's default of 1.1 works against that
            },
        }

    def _prove_whole(self, request: _Request, counted: int | None) -> None:
        """Raise PromptTooLong where the server shows that the model did not see the whole prompt.

        It shows so by a window smaller than what was asked for, or by fewer tokens than the prompt has words. Where it
        shows neither, that the prompt fitted rests on `bound`.
        """
        self._allotted = self._ask_allotted(request)
        if self._allotted is not None and self._allotted < request.needed:
            raise PromptTooLong(
                f"Ollama gave {self._model} a window of {self._allotted} tokens, and the prompt and its answer may "
                f"have {request.needed}: it may have been cut. The answer was thrown away; the next prompt is shorter."
            )
        if counted is not None and counted + request.max_tokens > self.context_tokens:
            self._around += counted + request.max_tokens - request.needed
            raise PromptTooLong(
                f"The prompt had {counted} tokens, more than its bound: the template of {self._model} is longer than "
                "was allowed for. The answer was thrown away; the next prompt is shorter."
            )
        words = request.words()
        if (counted or 0) < words and (again := self._recount(request)) is not None and again < words:
            raise PromptTooLong(
                f"Ollama read {again} tokens of a prompt of {words} words: it was cut. The answer was thrown away. "
                "Raise MEMSTORE_OLLAMA_NUM_CTX, or update Ollama."
            )

    def _ask_allotted(self, request: _Request) -> int | None:
        """Give the window that the loaded model has, where the server tells it; notice when it is another model now."""
        told: Json = {}
        with suppress(ProviderError):
            told = self._server.ask("GET", "/api/ps", self._model, patience=min(ASIDE, request.patience))
        entry = entry_of(told, self._model)
        digest = digest_of(entry)
        if digest and self._description().digest not in ("", digest):
            self._known = None
            raise ModelUnavailable(f"{self._model} was pulled anew while it was asked: derive again.")
        return _count(entry, "context_length")

    def _recount(self, request: _Request) -> int | None:
        """Give the tokens that the server reads of the prompt when it cannot have its beginning in its cache.

        Some versions count only what the cache did not hold (0.30.0 was one), so that a low count alone proves nothing.
        """
        first, *others = request.prompt
        fresh = [first | {"content": f"{uuid.uuid4().hex}\n{first['content']}"}, *others]
        return _count(self._chat(self._body(fresh, 1), request), "prompt_eval_count")

    def _description(self) -> _Described:
        if self._known is None:
            shown = self._server.ask("POST", "/api/show", self._model, {"model": self._model}, patience=ASIDE)
            abilities = shown.get("capabilities") or ["completion"]
            if "completion" not in abilities:
                raise ProviderMissing(f"{self._model} cannot chat, only {', '.join(abilities)}: name another model.")
            listed = self._server.ask("GET", "/api/tags", self._model, patience=ASIDE)
            digest = digest_of(entry_of(listed, self._model))
            self._known = _Described(digest, _trained(shown), "thinking" in abilities)
        return self._known


def _sendable(text: str) -> str:
    """Give the text with "?" for lone surrogates, which no UTF-8 has; every other character keeps its place."""
    return text.encode("utf-8", "replace").decode()


def _is_done(told: Json) -> bool:
    return told.get("done") is True


def _read(answer: _Answer, schema: type[T]) -> T:
    """Give what the answer holds. Words or a fence around the JSON are forgiven: some models ignore `format`."""
    if not answer.stopped:
        raise _Unusable(f"It was cut off after {answer.completion_tokens} tokens: give less.")
    text = _THOUGHT.sub("", answer.text)
    start, stop = text.find("{"), text.rfind("}")
    if start < 0 or stop < start:
        raise _Unusable("It holds no JSON object.")
    try:
        return schema.model_validate_json(text[start : stop + 1])
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in error.errors()]
        raise _Unusable("; ".join(wrong[:5])[:300] + ".") from None


def _trained(shown: Json) -> int | None:
    about = shown.get("model_info")
    about = about if isinstance(about, dict) else {}
    return _count(about, f"{about.get('general.architecture')}.context_length")


def _count(told: Json, key: str) -> int | None:
    value = told.get(key)
    return value if isinstance(value, int) and value > 0 else None
