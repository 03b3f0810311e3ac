"""What chat models behind a server share: asking again, time limits, sizes of prompts, answers read as a schema.

A provider (`openai`, `ollama`) writes a `ChatEndpoint`: one request, one answer. `ServedChatModel` does the rest.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Protocol

from pydantic import ValidationError
from pydantic_core import from_json

from memstore.errors import ModelAnswerInvalid, ModelUnavailable, PromptTooLong
from memstore.models import Json
from memstore.providers import ChatMessage, Completion, T
from memstore.providers.connections import Retries, TransientError
from memstore.text import replace_surrogates

Prompt = list[dict[str, str]]

# Kept free in the window for the second try: what is wrong with an answer.
MAX_FEEDBACK_BYTES = 500
INFO_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a server says of a model: its full name, and its window in tokens where it tells one.

    `loaded_window` is that of a model which is loaded already, until an answer shows it.
    """

    name: str
    context_tokens: int | None = None
    loaded_window: int | None = None
    can_think: bool = False


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request: the messages, the schema of the answer (None for free text), its most tokens, and the time left."""

    messages: Sequence[Mapping[str, Any]]
    schema: Json | None
    max_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A model's answer, whether it is complete, and the tokens as the server counted them.

    `window` is the one that the server really gave the model, if it says so.
    """

    text: str
    is_whole: bool = True
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    window: int | None = None


@dataclass(slots=True)
class StreamedText:
    """The words of a streamed answer, shown as they come."""

    request: ChatRequest
    show: Callable[[str], object]
    pieces: list[str] = field(default_factory=list)
    _length: int = 0

    def add(self, piece: str) -> bool:
        """Show a piece; return whether the answer is too long. Raise `TransientError` if so, and if it has no words."""
        if piece:
            self.pieces.append(piece)
            self.show(piece)
        self._length += len(piece) or 1
        # Few tokens have as many characters.
        is_long = self._length > 16 * self.request.max_tokens
        if is_long and not self.pieces:
            raise TransientError("its answer has no words")
        return is_long


class ModelReplaced(ModelUnavailable):
    """The server has another model under this name now, and its answer is that one's."""


class ChatEndpoint(Protocol):
    """One model of one server. Blocking, and safe to share by threads.

    Raises `TransientError` for what may pass, `ModelUnavailable` for a model that is away or a key that is refused,
    `PromptTooLong` where the server says so, `ProviderError` for what it refuses otherwise.
    """

    service: str
    # Of the counter that knows the model's tokens best.
    counter_name: str
    # How it asks for JSON, for people: "json_schema", or what the server takes instead.
    json_mode: str

    def describe(self, seconds: float) -> ModelInfo:
        """Return what the server says of the model, each question answered within so many seconds."""

    def answer(self, request: ChatRequest) -> RawAnswer:
        """Return the whole answer."""

    def stream(self, request: ChatRequest, show: Callable[[str], object]) -> RawAnswer:
        """Return the whole answer, each piece shown as it comes."""


class ServedChatModel:
    """A ChatModel on a server, which can also be chatted with. Safe to share by threads.

    `timeout` are the seconds for one answer with all its retries (of a streamed one the longest silence). `window` are
    the tokens of prompt and answer together that are not exceeded; None takes the server's, else `default_window`.
    `complete` takes twice `timeout` at most. The length of a prompt is estimated from the server's counts of earlier
    ones.
    """

    def __init__(
        self,
        endpoint: ChatEndpoint,
        *,
        window: int | None,
        default_window: int = 8192,
        timeout: float,
        timeout_setting: str,
    ) -> None:
        self._endpoint = endpoint
        self._window = window
        self._default_window = default_window
        self._timeout = timeout
        self._timeout_setting = timeout_setting
        self._cached_info: ModelInfo | None = None
        self._actual_window: int | None = None
        self._rates: deque[float] = deque(maxlen=16)

    def __repr__(self) -> str:
        return f"<ServedChatModel {self._endpoint.service}>"

    @property
    def name(self) -> str:
        """The full name, such as "openai:gpt-5-mini" or "ollama:qwen3:4b-instruct@a80c4f17acd5"."""
        return self._info.name

    @property
    def counter_name(self) -> str:
        """The name of the counter of its contexts."""
        return self._endpoint.counter_name

    @property
    def context_tokens(self) -> int:
        """The window that is really had: the setting's, or what the server tells or shows where that is less."""
        server_window = self._info.context_tokens
        window = self._window or server_window or self._default_window
        return min(window, server_window or window, self._actual_window or window)

    @property
    def abilities(self) -> str:
        """The window, how it is known, and the way in which JSON is asked for, in words."""
        tokens = self.context_tokens
        sources = {
            self._window: "set",
            self._info.context_tokens: "told by the server",
            self._actual_window: "allotted",
        }
        window = f"a window of {tokens:,} tokens ({sources.get(tokens, 'assumed')})"
        return f"{window}, JSON asked for as {self._endpoint.json_mode}"

    @property
    def advice(self) -> list[str]:
        """What would give better answers, in words."""
        tokens, advice = self.context_tokens, []
        if self._info.can_think:
            advice.append("it can think and is asked not to, which some disregard: an instruct model is safer")
        if tokens < 8192:
            advice.append("a window of 8,192 tokens or more has room for known facts")
        if self._timeout < 300:
            advice.append(
                f"{self._timeout:g} seconds are few for a model without a GPU: {self._timeout_setting}=300 or more"
            )
        return advice

    @property
    def _info(self) -> ModelInfo:
        if self._cached_info is None:
            self._cached_info = self._endpoint.describe(min(INFO_TIMEOUT_SECONDS, self._timeout))
            self._actual_window = self._actual_window or self._cached_info.loaded_window
        return self._cached_info

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Return the tokens that the prompt of these messages, and of a second try, will hardly exceed."""
        # Of o200k's tokens, English has 0.23 to a unit of `_size`, German 0.27, Chinese 0.2.
        rate = 1.15 * min(max(*self._rates, 0.2), 1.0) if self._rates else 0.5
        # 128 for the template around the messages, and a server's own words about the schema.
        return 128 + ceil((_size(messages) + MAX_FEEDBACK_BYTES) * rate)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the answer as `schema`; one that cannot be used is asked for once more, with what is wrong with it.

        Of an answer that was cut, what is whole in it is returned where `schema` allows, and `is_whole` is False.
        Raises as `ChatModel.complete` says, and `ProviderError` where the server refuses the request itself.
        """
        prompt = [{"role": each["role"], "content": replace_surrogates(each["content"])} for each in messages]
        needed = self.max_prompt_tokens(prompt) + max_tokens
        if needed > self.context_tokens:
            raise PromptTooLong(
                f"The prompt and its answer may have {needed} tokens, and {self.name} has a window of "
                f"{self.context_tokens}. Nothing was sent: give it less text, or a larger window."
            )
        request = ChatRequest(prompt, schema.model_json_schema(), max_tokens, self._timeout)
        end = time.monotonic() + 2 * self._timeout
        prompt_tokens = completion_tokens = calls = 0
        while True:
            answer = self._ask(request)
            calls += 1
            prompt_tokens += answer.prompt_tokens or 0
            completion_tokens += answer.completion_tokens or 0
            try:
                read = parse_answer(answer, schema)
            except UnusableAnswer as wrong:
                if calls == 2:
                    why = f"{self.name} gave two answers that cannot be used: {wrong}"
                    raise ModelAnswerInvalid(why, answer.text, prompt_tokens, completion_tokens, calls) from None
                left = min(self._timeout, max(0.001, end - time.monotonic()))
                request = replace(request, messages=_with_feedback(prompt, str(wrong)), seconds=left)
            else:
                return Completion(read, prompt_tokens, completion_tokens, calls, answer.is_whole)

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, show: Callable[[str], object]
    ) -> RawAnswer:
        """Return the whole answer of at most `max_tokens` tokens, each piece shown as it comes.

        Tried again is only what fails before the first piece. Raises as `complete` does; pieces may have been shown by
        then. Who stops it hangs up, and so ends the server's work.
        """
        has_begun = False
        sent = [
            {**each, "content": replace_surrogates(text) if isinstance(text := each.get("content"), str) else text}
            for each in messages
        ]
        request, retries = ChatRequest(sent, None, max_tokens, self._timeout), self._retries(self._timeout)

        def show_piece(piece: str) -> None:
            nonlocal has_begun
            has_begun = True
            show(piece)

        def ask(seconds: float) -> RawAnswer:
            try:
                return retries.in_time(self._timeout, lambda: self._endpoint.stream(request, show_piece))
            except TransientError as failure:
                if has_begun:
                    service = self._endpoint.service
                    raise ModelUnavailable(f"{service} broke off its answer: {failure}") from failure
                raise

        answer = retries.run(ask)
        self._actual_window = answer.window or self._actual_window
        return answer

    def _ask(self, request: ChatRequest) -> RawAnswer:
        try:
            answer = self._retries(request.seconds).run_in_time(
                lambda seconds: self._endpoint.answer(replace(request, seconds=seconds))
            )
        except ModelReplaced:
            self._cached_info = None
            raise
        self._actual_window = answer.window or self._actual_window
        self._prove_whole(request, answer)
        # Tokens that a server does not count are estimated: days and backfills have limits.
        prompt = answer.prompt_tokens or ceil(_size(request.messages) / 4)
        written = answer.completion_tokens or ceil(_size([{"content": answer.text}]) / 4)
        return replace(answer, prompt_tokens=prompt, completion_tokens=written)

    def _retries(self, seconds: float) -> Retries:
        advice = f" Asked again it will take as long: raise {self._timeout_setting}, or name a smaller model."
        return Retries(self._endpoint.service, seconds, advice)

    def _prove_whole(self, request: ChatRequest, answer: RawAnswer) -> None:
        """Raise PromptTooLong where the server shows that the model did not see the whole prompt; learn its size."""
        counted = answer.prompt_tokens
        if counted is not None:
            words = count_words(request.messages)
            if counted < words:
                raise PromptTooLong(
                    f"{self._endpoint.service} read {counted} tokens of a prompt of {words} words: it was cut. "
                    "The answer was thrown away. Give the server a larger window."
                )
        if answer.window is not None:
            most = self.max_prompt_tokens(request.messages) if counted is None else counted
            if most + (answer.completion_tokens or request.max_tokens) > answer.window:
                raise PromptTooLong(
                    f"{self._endpoint.service} gave {self.name} a window of {answer.window} tokens: the prompt or the "
                    "answer may have been cut. The answer was thrown away; the next prompt is shorter."
                )
        size = _size(request.messages)
        # In a shorter prompt the frame weighs more than the words.
        if counted is not None and size >= 1_000:
            self._rates.append(counted / size)


def count_words(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return a number of tokens that no prompt is below: tokenizers join no words, and few Chinese characters."""
    texts = [str(message.get("content") or "") for message in messages]
    words = sum(any(map(str.isalnum, word)) for text in texts for word in text.split())
    return words + sum(sum(map(_is_unspaced, text)) // 4 for text in texts)


def _is_unspaced(char: str) -> bool:
    """Return whether a character is of Thai, Lao, kana or Chinese, which have no blanks between words."""
    return "\u0e00" <= char <= "\u0eff" or "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff"


def _size(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of characters, one beyond ASCII counted as four."""
    texts = [str(message.get("content") or "") for message in messages]
    return sum(len(text) + 3 * sum(character > "\x7f" for character in text) for text in texts)


class UnusableAnswer(Exception):
    """An answer that is not what was asked for; the message tells the model what is wrong with it."""


def parse_answer(answer: RawAnswer, schema: type[T]) -> T:
    """Return what the answer holds, words or a fence around it forgiven; of a cut one, all but a list's last item."""
    text = answer.text
    if text.lstrip().startswith("<think>"):
        text = text.partition("</think>")[2]
    start, stop = text.find("{"), text.rfind("}")
    if start < 0 or (stop < start and answer.is_whole):
        raise UnusableAnswer("It holds no JSON object.")
    if answer.is_whole:
        try:
            return schema.model_validate_json(text[start : stop + 1])
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}".removeprefix(": ") for e in error.errors()]
            raise UnusableAnswer("; ".join(wrong[:5])[:300] + ".") from None
    try:
        read = from_json(text[start:], allow_partial=True)
        *_, last = read.values() or [None]
        if not isinstance(last, list) or not last:
            raise ValueError("it was cut where no list is")
        # It may have been cut within a number.
        last.pop()
        return schema.model_validate(read)
    except ValueError:
        raise UnusableAnswer(f"It was cut off after {answer.completion_tokens} tokens: give less.") from None


def _with_feedback(prompt: Prompt, wrong: str) -> Prompt:
    # In the last message: some templates refuse two of one role.
    more = f"\n\nAn earlier answer to this could not be used. {wrong} Answer anew, with the JSON object alone."
    kept = more.encode("utf-8", "replace")[:MAX_FEEDBACK_BYTES].decode("utf-8", "ignore")
    *rest, last = prompt
    return [*rest, last | {"content": last["content"] + kept}]


def strict_schema(schema: Any) -> Any:
    """Return a JSON schema as strict modes take it: all properties required, no others, no bounds, no defaults."""
    if isinstance(schema, list):
        return [strict_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"default", "minimum", "maximum", "title", "minLength", "maxLength", "minItems", "maxItems", "format"}
    properties = schema.get("properties")
    strict = {
        key: {name: strict_schema(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else strict_schema(value)
        for key, value in schema.items()
        if key not in left_out
    }
    if properties is not None:
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict
