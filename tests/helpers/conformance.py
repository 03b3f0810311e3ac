"""What a provider keeps of the promises of its Protocol, and when two of them find the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from memstore.errors import PromptTooLong
from memstore.models import Hit
from memstore.providers import ChatMessage, ChatModel, Count, Embedder, Reranker, TokenCounter

EXAMPLES = (
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
    assert embedder.dimensions > 0 < embedder.max_tokens
    documents = embedder.embed_documents(EXAMPLES)
    for texts, vectors in (((), embedder.embed_documents([])), (EXAMPLES, documents)):
        assert (vectors.shape, vectors.dtype) == ((len(texts), embedder.dimensions), np.float32)
        assert np.allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-3)
    for text, document in zip(EXAMPLES, documents, strict=True):
        query = embedder.embed_query(text)
        assert query.shape == (embedder.dimensions,)
        assert np.allclose(query, embedder.embed_query(text), atol=1e-5)
        assert np.allclose(document, embedder.embed_documents([text])[0], atol=1e-3), "it depends on the texts beside"
    assert not np.allclose(documents[0], documents[1], atol=1e-3)


def check_counter(counter: TokenCounter) -> None:
    _check_name_and_count(counter)
    # Counted as the one special token that it spells, it would be shorter than a word that spells none.
    assert counter.count("<|endoftext|>") >= min(2, counter.count("<|endofbook|>"))
    chat: list[dict[str, Any]] = [{"role": "user", "content": text} for text in EXAMPLES]
    total = counter.count_messages(chat)
    assert isinstance(total, Count)
    for message in chat[:3]:  # templates strip blanks and names, and take special tokens for what they are
        assert counter.count_messages([message]) > counter.count(message["content"])
    tool = {"type": "function", "function": {"name": "find", "description": "Finds what was said."}}
    assert counter.count_messages(chat, [tool]) >= total >= counter.count_messages(chat[:-1])
    assert counter.count_messages([]) >= 0
    counter.count_messages([{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}])


def check_reranker(reranker: Reranker) -> None:
    assert reranker.name
    for texts in (EXAMPLES, ()):
        scores, again = (np.asarray(reranker.scores(EXAMPLES[0], texts)) for _ in range(2))
        assert scores.shape == (len(texts),)
        assert np.isfinite(scores).all()
        assert np.array_equal(scores, again)


class Word(BaseModel):
    word: str


def check_chat_model(model: ChatModel) -> None:
    """Ask once for {"word": "..."}."""
    assert model.name
    for text in EXAMPLES:
        assert model.max_prompt_tokens(_chat(f"{text} word")) >= model.max_prompt_tokens(_chat(text)) > 0
    for prompt, most in ((_chat("word " * model.context_tokens), 1), (_chat("a"), model.context_tokens + 1)):
        with pytest.raises(PromptTooLong):
            model.complete(prompt, Word, max_tokens=most)
    completion = model.complete(_chat('Answer with {"word": "..."}, and any word.'), Word, max_tokens=64)
    assert isinstance(completion.answer, Word)
    assert completion.prompt_tokens > 0 < completion.completion_tokens


def _chat(text: str) -> list[ChatMessage]:
    return [{"role": "system", "content": "You answer with JSON."}, {"role": "user", "content": text}]


def _check_name_and_count(provider: Embedder | TokenCounter) -> None:
    assert provider.name
    for text in EXAMPLES:
        assert provider.count(text) == provider.count(text) >= 0
    assert provider.count("") == 0
    assert provider.count("word " * 2_000) >= 2_000, "it stops at a limit"


def check_alike(some: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]) -> None:
    """Assert the same hits for the same reasons: with vectors of two embedders no cosine would be what it was."""
    for one, other in zip(some, others, strict=True):
        assert [(hit.id, hit.start, hit.text) for hit in one] == [(hit.id, hit.start, hit.text) for hit in other]
        for ours, theirs in zip(one, other, strict=True):
            assert ours.parts == pytest.approx(theirs.parts, abs=2e-6)
