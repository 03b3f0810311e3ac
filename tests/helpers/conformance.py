"""What a provider keeps of the promises of its Protocol."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from pydantic import BaseModel

from memstore.errors import PromptTooLong
from memstore.providers import ChatMessage, ChatModel, Count, CountKind, Embedder, Reranker, TokenCounter

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
    assert isinstance(reranker.name, str) and reranker.name, "name is empty"
    for texts in (_EXAMPLES, ()):
        scores, again = (np.asarray(reranker.scores(_EXAMPLES[0], texts)) for _ in range(2))
        assert scores.shape == (len(texts),), f"scores of {len(texts)} texts have the shape {scores.shape}"
        assert np.isfinite(scores).all(), "scores hold numbers that are not finite"
        assert np.array_equal(scores, again), "the same texts are scored otherwise a second time"


class _Word(BaseModel):
    word: str


def check_chat_model(model: ChatModel) -> None:
    """Ask once for {"word": "..."}."""
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
