"""Tokenizers built from what a GGUF file tells are the ones that it was made of."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from memstore.providers import tiktoken
from memstore.providers.huggingface import Vocabulary
from memstore.providers.ollama_counter import PATTERNS, build_vocabulary
from tests.helpers.tokenizers import CORPUS, SPECIAL, as_gguf, byte_level, sentencepiece

texts = st.lists(st.one_of(st.sampled_from([*CORPUS, *SPECIAL, " ", "\n", "\ud800"]), st.text(max_size=20)), max_size=6)


def built(info: dict[str, Any]) -> Vocabulary:
    made = build_vocabulary(info)
    assert made is not None
    return made


@pytest.mark.parametrize("pre", sorted(PATTERNS))
@settings(deadline=None, max_examples=60)
@given(parts=texts)
def test_byte_level_bpe(pre: str, parts: list[str]) -> None:
    tokenizer, text = byte_level(pre), "".join(parts)
    own = built(as_gguf(tokenizer, model="gpt2", pre=pre))
    whole = text.replace("\ud800", "\ufffd")
    assert own.count_prompt(text) == len(tokenizer.encode(whole, add_special_tokens=False))


def joined(text: str, scores: dict[str, float]) -> int:
    """Count as SentencePiece does: of all neighbours that make a token, those of the highest score, the first ones."""
    pieces = list("▁" + text.replace(" ", "▁")) if text else []
    while True:
        pairs = [(scores[one + two], -n) for n, (one, two) in enumerate(pairwise(pieces)) if one + two in scores]
        if not pairs:
            return sum(1 if piece in scores else len(piece.encode()) for piece in pieces)
        at = -max(pairs)[1]
        pieces[at : at + 2] = ["".join(pieces[at : at + 2])]


@settings(deadline=None, max_examples=200)
@given(parts=texts)
def test_sentencepiece(parts: list[str]) -> None:
    # No piece of a text is one of the tokens that stand for a byte, whatever it looks like.
    text = "".join(parts).replace("\ud800", "").replace("<0x", "<0")
    info = as_gguf(sentencepiece(), model="llama", merges=None, add_bos_token=False)
    scores = dict(zip(info["tokenizer.ggml.tokens"], info["tokenizer.ggml.scores"], strict=True))
    assert built(info).count_text(text) == joined(text, scores)


@pytest.mark.parametrize(("pre", "encoding"), [("gpt-4o", "o200k_base"), ("llama-bpe", "cl100k_base")])
@settings(deadline=None, max_examples=100)
@given(parts=texts)
def test_texts_are_cut_as_openai_cuts_them(pre: str, encoding: str, parts: list[str]) -> None:
    """Llama 3 took the pattern of cl100k_base over, llama.cpp's "gpt-4o" is that of o200k_base."""
    text = "".join(parts).replace("\ud800", "")
    pattern = tiktoken._encoding(encoding)._pat_str.replace("{1,3}+", "{1,3}")  # "possessive" there, "repeated" here
    theirs = Split(Regex(pattern), "isolated")
    ours = Split(Regex(PATTERNS[pre]), "isolated")
    assert ours.pre_tokenize_str(text) == theirs.pre_tokenize_str(text)


@pytest.mark.parametrize(
    "told",
    [
        {"model": "gpt2", "pre": "of another model"},
        {"model": "gpt2", "pre": "qwen2", "merges": None},
        {"model": "bert"},
        {"model": "llama", "scores": None},
        {"model": "gpt2", "pre": "qwen2", "tokens": None},
    ],
)
def test_what_is_not_known_for_certain_is_not_built(told: dict[str, Any]) -> None:
    assert build_vocabulary(as_gguf(byte_level(), **told)) is None
    assert build_vocabulary({}) is None
