"""Providers without weights: a token counter, a reranker and a chat model."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from memstore.errors import ModelAnswerInvalid, ModelUnavailable, PromptTooLong
from memstore.providers import ChatMessage, Completion, Count, Scores, T

Scripted = str | Mapping[str, Any] | BaseModel | Exception


class WordCounter:
    """A TokenCounter that people can check by hand: one token a word, and a chat rule of OpenAI's shape."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message: 3, the words of every value (JSON where it is no string), 1 for a name."""
        values = (value for value in message.values() if value is not None)
        words = sum(self.count(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for v in values)
        return 3 + words + (message.get("name") is not None)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        defined = sum(self.count(json.dumps(tool, ensure_ascii=False)) for tool in tools)
        return Count(3 + sum(map(self.count_message, messages)) + defined, "exact")


class ScriptedReranker:
    """A Reranker that scores by a function of the question and a text. `asked` are the questions, with their texts."""

    def __init__(self, score: Callable[[str, str], float], *, name: str = "scripted") -> None:
        self._score = score
        self.name = name
        self.asked: list[tuple[str, list[str]]] = []

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        self.asked.append((query, list(texts)))
        return np.array([self._score(query, text) for text in texts], dtype=np.float64)


class ScriptedChatModel:
    """A ChatModel that gives prepared answers, one a call, in order; then it is unavailable.

    An answer is a text, an object (sent as JSON), an exception to be raised, or a function of the messages that gives
    one of those. `calls` are the messages of each call. A token is a byte, and a prompt that does not fit is refused as
    a real model's is; an answer that is not of the shape asked for raises ModelAnswerInvalid, without a second try.
    """

    def __init__(
        self,
        answers: Iterable[Scripted | Callable[[Sequence[ChatMessage]], Scripted]] = (),
        *,
        name: str = "scripted",
        context_tokens: int = 8192,
    ) -> None:
        self._answers = iter(answers)
        self.name = name
        self.context_tokens = context_tokens
        self.calls: list[list[ChatMessage]] = []

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        return sum(4 + _bytes(message["content"]) for message in messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        prompt_tokens = self.max_prompt_tokens(messages)
        if prompt_tokens + max_tokens > self.context_tokens:
            raise PromptTooLong(f"{prompt_tokens} + {max_tokens} tokens exceed the window of {self.context_tokens}.")
        self.calls.append(list(messages))
        answer = next(self._answers, None)
        if callable(answer):
            answer = answer(messages)
        if answer is None:
            raise ModelUnavailable("The script has no more answers.")
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, BaseModel):
            answer = answer.model_dump()
        text = answer if isinstance(answer, str) else json.dumps(answer)
        try:
            return Completion(schema.model_validate_json(text), prompt_tokens, _bytes(text))
        except ValidationError as error:
            raise ModelAnswerInvalid(f"The script gave {error}", text, prompt_tokens, _bytes(text)) from error


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
