"""Fakes for tests of programs that use memstore: an embedder, a token counter, a reranker and a chat model.

None has weights. `HashingEmbedder` is also the embedder "hashing:256" of the settings. `check_embedder`,
`check_counter`, `check_reranker` and `check_chat_model` are for the authors of providers: they raise AssertionError for
what breaks the promises of a Protocol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, get_args

import numpy as np
from pydantic import BaseModel, ValidationError

from memstore.errors import ModelAnswerInvalid, ModelUnavailable, PromptTooLong, ProviderMissing
from memstore.providers import (
    ChatMessage,
    ChatModel,
    Completion,
    Count,
    CountKind,
    Embedder,
    Reranker,
    Scores,
    T,
    TokenCounter,
    Vectors,
)

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


_EXAMPLES = (
    "The ferry to Ischia leaves at nine.",
    "去伊斯基亚的渡轮九点出发。",
    "👩‍👩‍👧 cafe\u0301 \u0000 \ud800",
    "<|endoftext|> <|im_start|> [CLS] </s>",
    "word " * 2_000,
    " \n\t",
    "",
)


def check_embedder(embedder: Embedder) -> None:
    """Raise AssertionError, saying what is wrong, unless this embedder keeps the promises of the Protocol."""
    _check_name_and_count(embedder)
    assert embedder.dimensions > 0 < embedder.max_tokens, "dimensions and max_tokens must be positive"
    documents = embedder.embed_documents(_EXAMPLES)
    for texts, vectors in (((), embedder.embed_documents([])), (_EXAMPLES, documents)):
        assert isinstance(vectors, np.ndarray), f"vectors must be a numpy array, not {type(vectors).__name__}"
        shape = (len(texts), embedder.dimensions)
        assert vectors.shape == shape, f"vectors have the shape {vectors.shape}, not {shape}"
        assert vectors.dtype == np.float32, f"vectors are {vectors.dtype}, not float32"
        lengths = np.linalg.norm(vectors, axis=-1)
        assert np.allclose(lengths, 1, atol=1e-3), f"vectors are not of unit length: {lengths}"
    for text, document in zip(_EXAMPLES, documents, strict=True):
        query = embedder.embed_query(text)
        assert query.shape == (embedder.dimensions,), f"embed_query gives the shape {query.shape}"
        assert np.allclose(query, embedder.embed_query(text), atol=1e-5), f"two vectors of one question: {text[:40]!r}"
        alone = embedder.embed_documents([text])[0]
        assert np.allclose(document, alone, atol=1e-3), f"the vector depends on the texts beside it: {text[:40]!r}"
    assert not np.allclose(documents[0], documents[1], atol=1e-3), "different texts have the same vector"


def check_counter(counter: TokenCounter) -> None:
    """Raise AssertionError, saying what is wrong, unless this counter keeps the promises of the Protocol."""
    _check_name_and_count(counter)
    # Counted as the one special token that it spells, it would be shorter than a word that spells none.
    special, like = counter.count("<|endoftext|>"), counter.count("<|endofbook|>")
    assert special >= min(2, like), f"special tokens are plain text: <|endoftext|> counts {special}"
    chat: list[dict[str, Any]] = [{"role": "user", "content": text} for text in _EXAMPLES]
    total = counter.count_messages(chat)
    assert isinstance(total, Count) and total.kind in get_args(CountKind), "count_messages gives a Count with its kind"
    for message in chat[:3]:  # templates strip blanks and names, and take special tokens for what they are
        alone = counter.count(message["content"])
        assert counter.count_messages([message]) > alone, "a message counts no more than its values alone"
    tool = {"type": "function", "function": {"name": "find", "description": "Finds what was said."}}
    assert counter.count_messages(chat, [tool]) >= total, "tools make the chat shorter"
    assert total >= counter.count_messages(chat[:-1]), "a message more makes the chat shorter"
    assert counter.count_messages([]) >= 0, "an empty chat has no tokens"
    counter.count_messages([{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}])


def check_reranker(reranker: Reranker) -> None:
    """Raise AssertionError, saying what is wrong, unless this reranker keeps the promises of the Protocol."""
    assert isinstance(reranker.name, str) and reranker.name, "name is empty"
    for texts in (_EXAMPLES, ()):
        scores, again = (np.asarray(reranker.scores(_EXAMPLES[0], texts)) for _ in range(2))
        assert scores.shape == (len(texts),), f"scores of {len(texts)} texts have the shape {scores.shape}"
        assert np.isfinite(scores).all(), "scores hold numbers that are not finite"
        assert np.array_equal(scores, again), "the same texts are scored otherwise a second time"


class _Word(BaseModel):
    word: str


def check_chat_model(model: ChatModel) -> None:
    """Raise AssertionError, saying what is wrong, unless this chat model keeps the promises of the Protocol.

    Asks it once, for {"word": "..."}; a fake needs one such answer.
    """
    assert isinstance(model.name, str) and model.name, "name is empty"
    assert model.context_tokens > 0, "context_tokens must be positive"
    for text in _EXAMPLES:
        alone, longer = (model.max_prompt_tokens(_chat(said)) for said in (text, f"{text} word"))
        assert longer >= alone > 0, f"a word more lowers the bound of {text[:40]!r}"
    for prompt, most in ((_chat("word " * model.context_tokens), 1), (_chat("a"), model.context_tokens + 1)):
        try:
            model.complete(prompt, _Word, max_tokens=most)
        except PromptTooLong:
            continue
        raise AssertionError("a prompt that does not fit with its answer must raise PromptTooLong")
    completion = model.complete(_chat('Answer with {"word": "..."}, and any word.'), _Word, max_tokens=64)
    assert isinstance(completion.answer, _Word), f"the answer is not of the schema: {completion.answer!r}"
    assert completion.prompt_tokens > 0 < completion.completion_tokens, "prompt_tokens or completion_tokens is 0"


def _chat(text: str) -> list[ChatMessage]:
    return [{"role": "system", "content": "You answer with JSON."}, {"role": "user", "content": text}]


def _check_name_and_count(provider: Embedder | TokenCounter) -> None:
    assert isinstance(provider.name, str) and provider.name, "name is empty"
    for text in _EXAMPLES:
        tokens = provider.count(text)
        assert isinstance(tokens, int) and tokens >= 0, f"count gives {tokens!r} for {text[:40]!r}"
        assert tokens == provider.count(text), f"count is not the same twice: {text[:40]!r}"
    assert provider.count("") == 0, f"an empty text counts {provider.count('')}, not 0"
    assert provider.count("word " * 2_000) >= 2_000, "count stops at a limit: 2,000 words have at least 2,000 tokens"
