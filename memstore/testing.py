"""Fakes for tests of programs that use memstore: an embedder, a token counter, a reranker and a chat model.

None has weights. `HashingEmbedder` is also the embedder "hashing:256" of the settings. `check_embedder`,
`check_counter`, `check_reranker` and `check_chat_model` are for the authors of providers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Protocol, get_args

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
_EXAMPLES = (
    "The ferry to Ischia leaves at nine.",
    "Die Fähre nach Ischia fährt um neun.",
    "去伊斯基亚的渡轮九点出发。",
    "مرحبا بالعالم",
    "👩‍👩‍👧 cafe\u0301 \u0000 \ud800",
    "<|endoftext|> <|im_start|> [CLS] </s>",
    "word " * 2_000,
    " \n\t",
    "",
)


def load_embedder(model: str) -> HashingEmbedder:
    """Return the embedder "hashing:MODEL", where MODEL is the number of dimensions; 256 for ""."""
    if model and not (model.isdecimal() and int(model) > 0):
        raise ProviderMissing(f"Write hashing:256, with the number of dimensions for 256; {model!r} is none.")
    return HashingEmbedder(int(model or 256))


class HashingEmbedder:
    """An Embedder without weights: words and their trigrams, hashed into signed buckets.

    Texts that share words are near, those that share roots (walk, walking) less so; meaning counts for nothing. Vectors
    are the same on every machine and in every process.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions = dimensions

    def __repr__(self) -> str:
        return f"<HashingEmbedder {self.name}>"

    @property
    def name(self) -> str:
        """The full name, "hashing:256" for 256 dimensions."""
        return f"hashing:{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        return self._dimensions

    @property
    def max_tokens(self) -> int:
        """The window: 256 words. What is beyond it is not seen, as with real models."""
        return 256

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(_WORD.findall(text))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, unit length; (0, dimensions) for none."""
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            self._fill(vector, text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, that of the same document: shape (dimensions,), float32, unit length."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector

    def _fill(self, vector: Vectors, text: str) -> None:
        for word in _WORD.findall(text.casefold())[: self.max_tokens]:
            for number, weight in _features(word):
                vector[(number >> 1) % self._dimensions] += weight if number & 1 else -weight
        length = np.linalg.norm(vector)
        if length == 0:  # a text without words, or one whose words cancel out
            vector[0] = 1
        else:
            vector /= length


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

    def __repr__(self) -> str:
        return f"<WordCounter {self.name}>"

    @property
    def name(self) -> str:
        """The full name, "words"."""
        return "words"

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
        self._name = name
        self.asked: list[tuple[str, list[str]]] = []

    @property
    def name(self) -> str:
        """The full name, as given."""
        return self._name

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
        self._name = name
        self._context_tokens = context_tokens
        self.calls: list[list[ChatMessage]] = []

    @property
    def name(self) -> str:
        """The full name, as given."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """The window, as given."""
        return self._context_tokens

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Return the bytes of the messages, and 4 for each."""
        return sum(4 + _bytes(message["content"]) for message in messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the next answer of the script, read as `schema`."""
        prompt_tokens = self.max_prompt_tokens(messages)
        if prompt_tokens + max_tokens > self._context_tokens:
            raise PromptTooLong(f"{prompt_tokens} + {max_tokens} tokens exceed the window of {self._context_tokens}.")
        self.calls.append(list(messages))
        text = self._next(messages)
        try:
            return Completion(schema.model_validate_json(text), prompt_tokens, _bytes(text))
        except ValidationError as error:
            raise ModelAnswerInvalid(f"The script gave {error}", text, prompt_tokens, _bytes(text)) from error

    def _next(self, messages: Sequence[ChatMessage]) -> str:
        answer = next(self._answers, None)
        if callable(answer):
            answer = answer(messages)
        if answer is None:
            raise ModelUnavailable("The script has no more answers.")
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, BaseModel):
            return answer.model_dump_json()
        return answer if isinstance(answer, str) else json.dumps(answer)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


class _Counts(Protocol):
    @property
    def name(self) -> str: ...
    def count(self, text: str) -> int: ...


def check_embedder(embedder: Embedder) -> None:
    """Raise AssertionError, saying what is wrong, unless this embedder keeps the promises of the Protocol."""
    _check_name_and_count(embedder)
    assert embedder.dimensions > 0, f"dimensions must be positive, not {embedder.dimensions}"
    assert embedder.max_tokens > 0, f"max_tokens must be positive, not {embedder.max_tokens}"
    _check_vectors(embedder, embedder.embed_documents([]), (0, embedder.dimensions), "embed_documents of no texts")
    documents = embedder.embed_documents(_EXAMPLES)
    _check_vectors(embedder, documents, (len(_EXAMPLES), embedder.dimensions), "embed_documents")
    for text, document in zip(_EXAMPLES, documents, strict=True):
        query = embedder.embed_query(text)
        _check_vectors(embedder, query, (embedder.dimensions,), f"embed_query of {text[:40]!r}")
        assert np.allclose(query, embedder.embed_query(text), atol=1e-5), f"two vectors of one question: {text[:40]!r}"
        alone = embedder.embed_documents([text])[0]
        assert np.allclose(document, alone, atol=1e-3), f"the vector depends on the texts beside it: {text[:40]!r}"
    assert not np.allclose(documents[0], documents[2], atol=1e-3), "different texts have the same vector"


def check_counter(counter: TokenCounter) -> None:
    """Raise AssertionError, saying what is wrong, unless this counter keeps the promises of the Protocol."""
    _check_name_and_count(counter)
    # Counted as the one special token that it spells, it would be shorter than a word that spells none.
    special, like = counter.count("<|endoftext|>"), counter.count("<|endofbook|>")
    assert special >= min(2, like), f"special tokens are plain text: <|endoftext|> counts {special}"
    chat: list[dict[str, Any]] = [{"role": "user", "content": text} for text in _EXAMPLES]
    nothing = counter.count_messages([])
    _check_whole(lambda: nothing, "count_messages of no messages")
    assert isinstance(nothing, Count), f"count_messages must give a Count with its kind, not {nothing!r}"
    assert nothing.kind in get_args(CountKind), (
        f"a count is of the kind {nothing.kind!r}, not of {', '.join(get_args(CountKind))}"
    )
    for message in chat[:4]:  # templates strip blanks and names, and take special tokens for what they are
        alone = counter.count(message["content"])
        both = counter.count_messages([message])
        assert both > alone, f"a message counts {both}, its values alone {alone}: {message['content'][:40]!r}"
    tool = {"type": "function", "function": {"name": "find", "description": "Finds what was said."}}
    assert counter.count_messages(chat, [tool]) >= counter.count_messages(chat), "tools make the chat shorter"
    total = counter.count_messages(chat)
    assert total >= counter.count_messages(chat[:-1]), "a message more makes the chat shorter"
    empty = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    _check_whole(lambda: counter.count_messages([empty]), "count_messages with tool calls and without content")


def check_reranker(reranker: Reranker) -> None:
    """Raise AssertionError, saying what is wrong, unless this reranker keeps the promises of the Protocol."""
    assert isinstance(reranker.name, str), f"name must be a str, not {reranker.name!r}"
    assert reranker.name, "name is empty"
    for query in _EXAMPLES:
        for texts in (_EXAMPLES, ()):
            found = np.asarray(reranker.scores(query, texts))
            assert found.shape == (len(texts),), f"scores of {len(texts)} texts have the shape {found.shape}"
            assert np.isfinite(found).all(), f"scores hold numbers that are not finite ({reranker.name})"
    once, again = (np.asarray(reranker.scores(_EXAMPLES[0], _EXAMPLES)) for _ in range(2))
    assert np.array_equal(once, again), "the same texts are scored otherwise a second time"


class _Word(BaseModel):
    word: str


def check_chat_model(model: ChatModel) -> None:
    """Raise AssertionError, saying what is wrong, unless this chat model keeps the promises of the Protocol.

    Asks it once, for {"word": "..."}; a fake needs one such answer.
    """
    assert isinstance(model.name, str), f"name must be a str, not {model.name!r}"
    assert model.name, "name is empty"
    window = _check_whole(lambda: model.context_tokens, "context_tokens")
    assert window > 0, "context_tokens must be positive"
    for text in _EXAMPLES:
        alone = _check_whole(partial(model.max_prompt_tokens, _chat(text)), f"bound of {text[:40]!r}")
        longer = _check_whole(partial(model.max_prompt_tokens, _chat(f"{text} word")), "max_prompt_tokens")
        assert longer >= alone, f"a word more lowers the bound of {text[:40]!r}"
    assert model.max_prompt_tokens(_chat("a")) > 0, "a message is bound to 0 tokens"
    for prompt, most in ((_chat("word " * window), 1), (_chat("a"), window + 1)):
        try:
            model.complete(prompt, _Word, max_tokens=most)
        except PromptTooLong:
            continue
        raise AssertionError("a prompt that does not fit with its answer must raise PromptTooLong")
    made = model.complete(_chat('Answer with {"word": "..."}, and any word.'), _Word, max_tokens=64)
    assert isinstance(made, Completion), f"complete must give a Completion, not {made!r}"
    assert isinstance(made.answer, _Word), f"the answer is not of the schema: {made.answer!r}"
    assert _check_whole(lambda: made.prompt_tokens, "prompt_tokens") > 0, "prompt_tokens is 0"
    assert _check_whole(lambda: made.completion_tokens, "completion_tokens") > 0, "completion_tokens is 0"


def _chat(text: str) -> list[ChatMessage]:
    return [{"role": "system", "content": "You answer with JSON."}, {"role": "user", "content": text}]


def _check_name_and_count(counts: _Counts) -> None:
    assert isinstance(counts.name, str), f"name must be a str, not {counts.name!r}"
    assert counts.name, "name is empty"
    for text in _EXAMPLES:
        found = _check_whole(partial(counts.count, text), f"count of {text[:40]!r}")
        assert found == counts.count(text), f"count is not the same twice: {text[:40]!r}"
    assert counts.count("") == 0, f"an empty text counts {counts.count('')}, not 0"
    assert counts.count("word " * 2_000) >= 2_000, "count stops at a limit: 2,000 words have at least 2,000 tokens"


def _check_whole(count: Callable[[], int], what: str) -> int:
    found = count()
    assert isinstance(found, int), f"{what} must be an int, not {found!r}"
    assert found >= 0, f"{what} is negative: {found}"
    return found


def _check_vectors(embedder: Embedder, vectors: Vectors, shape: tuple[int, ...], what: str) -> None:
    assert isinstance(vectors, np.ndarray), f"{what} must be a numpy array, not {type(vectors).__name__}"
    assert vectors.shape == shape, f"{what} has the shape {vectors.shape}, not {shape}"
    assert vectors.dtype == np.float32, f"{what} is {vectors.dtype}, not float32"
    assert np.isfinite(vectors).all(), f"{what} holds numbers that are not finite ({embedder.name})"
    lengths = np.linalg.norm(vectors, axis=-1)
    assert np.allclose(lengths, 1, atol=1e-3), f"{what} is not of unit length: {lengths.min():.4f}…{lengths.max():.4f}"
