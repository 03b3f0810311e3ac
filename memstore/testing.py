"""Fakes for tests of programs that use memstore: an embedder, a token counter, a reranker and a chat model.

None has weights. `HashingEmbedder` is also the embedder "hashing:256" of the settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from memstore.errors import ModelAnswerInvalid, ModelUnavailable, PromptTooLong, ProviderMissing
from memstore.providers import ChatMessage, Completion, Count, Scores, T, Vectors

Scripted = str | Mapping[str, Any] | BaseModel | Exception

_WORD = re.compile(r"\w+")


def load_embedder(model: str) -> HashingEmbedder:
    """Return the embedder "hashing:MODEL", where MODEL is the number of dimensions; 256 for ""."""
    if model and not (model.isdecimal() and int(model) > 0):
        raise ProviderMissing(f"Write hashing:256, with the number of dimensions for 256; {model!r} is none.")
    return HashingEmbedder(int(model or 256))


class HashingEmbedder:
    """An Embedder without weights: words and their trigrams, hashed into signed buckets.

    Texts that share words are near, those that share roots (walk, walking) less so; meaning counts for nothing. Vectors
    are the same on every machine and in every process. What is beyond the window, 256 words, is not seen.
    """

    max_tokens = 256

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"hashing:{dimensions}"

    def __repr__(self) -> str:
        return f"<HashingEmbedder {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(_WORD.findall(text))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, unit length."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.casefold())[: self.max_tokens]:
                for number, weight in _features(word):
                    vector[(number >> 1) % self.dimensions] += weight if number & 1 else -weight
            length = np.linalg.norm(vector)
            if length == 0:  # a text without words, or one whose words cancel out
                vector[0] = 1
            else:
                vector /= length
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, that of the same document: shape (dimensions,), float32, unit length."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@lru_cache(maxsize=4096)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    marked = f"<{word}>"
    trigrams = {marked[i : i + 3] for i in range(len(marked) - 2)}
    # A word and all its trigrams weigh 1 each in squares: one shared word counts more than any shared ending.
    return ((_hash(f"w{word}"), 1.0), *((_hash(f"t{part}"), len(trigrams) ** -0.5) for part in sorted(trigrams)))


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class WordCounter:
    """A TokenCounter that people can check by hand: one token a word, and a chat rule of OpenAI's shape."""

    name = "words"

    def count(self, text: str) -> int:
        """Return the number of words, which white space parts."""
        return len(text.split())

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message: 3, the words of every value (JSON where it is no string), 1 for a name."""
        values = (value for value in message.values() if value is not None)
        words = sum(self.count(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for v in values)
        return 3 + words + (message.get("name") is not None)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the tokens of the finished chat: the sum of `count_message`, 3 for the reply, the words of tools."""
        defined = sum(self.count(json.dumps(tool, ensure_ascii=False)) for tool in tools)
        return Count(3 + sum(map(self.count_message, messages)) + defined, "exact")


class ScriptedReranker:
    """A Reranker that scores by a function of the question and a text. `asked` are the questions, with their texts."""

    def __init__(self, score: Callable[[str, str], float], *, name: str = "scripted") -> None:
        self._score = score
        self.name = name
        self.asked: list[tuple[str, list[str]]] = []

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the function's score of each text: shape (texts,)."""
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
        """Return the bytes of the messages, and 4 for each."""
        return sum(4 + _bytes(message["content"]) for message in messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the next answer of the script, read as `schema`."""
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
