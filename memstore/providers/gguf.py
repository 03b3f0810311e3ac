"""A tokenizer built from what a GGUF file says of it, which Ollama tells under `/api/show` when asked to be verbose.

Two kinds are known: byte-level BPE ("gpt2"), whose text is cut first by a pattern that goes by a name, and
SentencePiece ("llama"), whose merges follow from the scores of its tokens. What is not known for certain is not built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from memstore.providers.prompt_counter import Vocabulary

PREFIX = "tokenizer.ggml."
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # of tokenizer.ggml.token_type

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE, _SPACES = r"[^\r\n\p{L}\p{N}]?", r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"


def _by_words(digits: str) -> str:
    return rf"{_SUFFIX}|{_BEFORE}\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


def _by_case(digits: str, suffix: str) -> str:
    words = rf"{_BEFORE}{_UPPER}*{_LOWER}+{suffix}|{_BEFORE}{_UPPER}+{_LOWER}*{suffix}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


# The patterns of llama.cpp (`llama-vocab.cpp`) by the names that "tokenizer.ggml.pre" has for them.
_GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt-2": _GPT_2,
    "llama-bpe": _by_words(r"\p{N}{1,3}"),
    "qwen2": _by_words(r"\p{N}"),
    "deepseek-r1-qwen": _by_words(r"\p{N}"),
    "tekken": _by_case(r"\p{N}", ""),
    "gpt-4o": _by_case(r"\p{N}{1,3}", f"{_SUFFIX}?"),
}
WHOLE_WORDS = {"llama-bpe", "tekken"}  # take a word that is in the vocabulary as it is, whatever its merges say


def vocabulary(info: Mapping[str, Any]) -> Vocabulary | None:
    """Give the tokenizer of a model by its "model_info"; None where that is not told or is of another kind."""
    told = {key.removeprefix(PREFIX): value for key, value in info.items() if key.startswith(PREFIX)}
    tokens = told.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        return None
    build = {"gpt2": _byte_level, "llama": _sentencepiece}.get(str(told.get("model")))
    tokenizer = build(tokens, told) if build else None
    if tokenizer is None:
        return None
    kinds = told.get("token_type") or []
    tokenizer.add_special_tokens(_of_kind(tokens, kinds, CONTROL, special=True))
    tokenizer.add_tokens(_of_kind(tokens, kinds, USER_DEFINED, special=False))
    return Vocabulary(tokenizer, _bos(tokens, told))


def _byte_level(tokens: Sequence[str], told: Mapping[str, Any]) -> Tokenizer | None:
    pattern, merges = PATTERNS.get(str(told.get("pre"))), told.get("merges")
    if pattern is None or not isinstance(merges, list):
        return None
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(ids, pairs, ignore_merges=told.get("pre") in WHOLE_WORDS))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def _sentencepiece(tokens: Sequence[str], told: Mapping[str, Any]) -> Tokenizer | None:
    scores = told.get("scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        return None
    ids = {token: number for number, token in enumerate(tokens)}
    kinds = told.get("token_type") or []
    unknown = next((token for token, kind in zip(tokens, kinds, strict=False) if kind == UNKNOWN), None)
    model = models.BPE(ids, _merges(tokens, scores, ids), unk_token=unknown, fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    blank = [normalizers.Prepend("▁")] if told.get("add_space_prefix", True) else []
    tokenizer.normalizer = normalizers.Sequence([*blank, normalizers.Replace(" ", "▁")])
    return tokenizer


def _merges(tokens: Sequence[str], scores: Sequence[float], ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """Give the merges, the best first: SentencePiece joins the two neighbours whose token has the highest score."""
    ranked = sorted(range(len(tokens)), key=lambda number: -scores[number])
    return [
        (token[:cut], token[cut:])
        for token in (tokens[number] for number in ranked)
        for cut in range(1, len(token))
        if token[:cut] in ids and token[cut:] in ids
    ]


def _of_kind(tokens: Sequence[str], kinds: Sequence[int], kind: int, *, special: bool) -> list[AddedToken]:
    chosen = [token for token, its in zip(tokens, kinds, strict=False) if its == kind and token]
    return [AddedToken(token, special=special, normalized=False) for token in chosen]


def _bos(tokens: Sequence[str], told: Mapping[str, Any]) -> str | None:
    """Give the token that is put before a prompt: by default SentencePiece has one and byte-level BPE has none."""
    number = told.get("bos_token_id")
    adds = told.get("add_bos_token", told.get("model") == "llama")
    return tokens[number] if adds and isinstance(number, int) and 0 <= number < len(tokens) else None
