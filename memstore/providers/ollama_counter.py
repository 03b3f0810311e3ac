"""Counts of models that Ollama serves: the server renders the prompt, and the model's own tokenizer counts it here.

Ollama has no endpoint that counts. `_debug_render_only` (undocumented) gives the prompt of a chat without running it,
and a verbose `/api/show` what the model's GGUF file says of its tokenizer: byte-level BPE ("gpt2"), whose text is cut
by a pattern that goes by a name, or SentencePiece ("llama"), whose merges follow from the scores of its tokens. Where
either is missing or unknown, or the server away, the count is an upper bound by bytes.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from memstore.errors import InvalidInput, ModelUnavailable, ProviderError
from memstore.providers import Count, tiktoken
from memstore.providers.huggingface import Vocabulary, as_template
from memstore.providers.ollama import OllamaServer, digest_of, entry_of, require_model
from memstore.providers.tiktoken import BytesCounter, CountCache
from memstore.settings import Settings

# A verbose /api/show has 10 MB, rendering loads the model.
SLOW_REQUEST_SECONDS = 30.0
MODEL_CHECK_SECONDS = 60.0
SERVER_RETRY_SECONDS = 30.0

# Of tokenizer.ggml.token_type.
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4


def load(model: str, settings: Settings) -> OllamaCounter:
    """Return the counter of a model, as `ollama list` shows it; a digest after "@" is left out. Asks nothing yet."""
    name = require_model(model.partition("@")[0])
    return OllamaCounter(name, OllamaServer(settings.ollama_url), settings.ollama_num_ctx)


@dataclass
class _Model:
    """One version of the model: its digest, its tokenizer where that can be built, and what was counted by it."""

    digest: str
    vocabulary: Vocabulary | None
    count_chat: CountCache
    seen: float = field(default_factory=time.monotonic)
    overhead: int | None = None
    renders: bool = True


class _NotRendered(Exception):
    """The server does not render without running."""


class OllamaCounter:
    """Counts the tokens of the prompts that an Ollama server makes. Safe to share by threads.

    Prompts are counted once for each version (digest) of the model. A call may wait for the server up to 30 s; one that
    does not answer is not asked again for 30 s.
    """

    def __init__(self, model: str, server: OllamaServer, num_ctx: int) -> None:
        self.name = f"ollama:{model}"
        self._model = model
        self._server = server
        self._num_ctx = num_ctx
        self._bytes = BytesCounter()
        self._lock = threading.RLock()
        self._cached_model: _Model | None = None
        self._away_until = 0.0

    def __repr__(self) -> str:
        return f"<OllamaCounter {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of tokens of a text by the model's tokenizer; a bound by bytes where that is not had."""
        model = self._current()
        if model is None or model.vocabulary is None:
            return self._bytes.count(text)
        return model.vocabulary.count_text(text)

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return what one message is expected to add: its values, and what the template puts around a short one."""
        model = self._current()
        if model is None or model.vocabulary is None:
            return self._bytes.count_message(message)
        if model.overhead is None:
            model.overhead = model.vocabulary.message_overhead(self.count_messages)
        return model.vocabulary.count_message(message, model.overhead)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the tokens of the prompt that the server renders: "exact" where its own tokenizer has counted them.

        Otherwise "upper_bound": by the bytes of the rendered prompt, or of the messages where nothing is rendered. With
        images "estimated". Raises InvalidInput where the server refuses the messages.
        """
        model = self._current()
        tokens = None if model is None else self._count_rendered(model, messages, tools)
        if model is None or tokens is None:
            return self._bytes.count_messages(messages, tools)
        if not tiktoken.only_text(messages):
            return Count(tokens, "estimated")
        return Count(tokens, "upper_bound" if model.vocabulary is None else "exact")

    def _count_rendered(
        self, model: _Model, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> int | None:
        """Return the tokens of the rendered prompt; None where the server does not render, now or ever."""
        if not model.renders or time.monotonic() < self._away_until:
            return None
        try:
            return model.count_chat(tiktoken.as_json([[as_template(message) for message in messages], list(tools)]))
        except _NotRendered:
            model.renders = False
        except ModelUnavailable:
            self._away_until = time.monotonic() + SERVER_RETRY_SECONDS
        except ProviderError as error:
            raise InvalidInput(f"Ollama does not make a prompt of these messages: {error}") from error
        return None

    def _current(self) -> _Model | None:
        """Return the model as the server has it now; None while it is away."""
        with self._lock:
            model, now = self._cached_model, time.monotonic()
            is_fresh = model is not None and now < model.seen + MODEL_CHECK_SECONDS
            if not is_fresh and now >= self._away_until:
                try:
                    self._cached_model = self._describe(model)
                except ModelUnavailable:
                    self._away_until = now + SERVER_RETRY_SECONDS
            return self._cached_model

    def _describe(self, before: _Model | None) -> _Model:
        listing = self._server.ask("/api/tags", self._model, seconds=2.0)
        digest = digest_of(entry_of(listing, self._model))
        if before is not None and before.digest == digest != "":
            before.seen = time.monotonic()
            return before
        asked = {"model": self._model, "verbose": True}
        info = self._server.ask("/api/show", self._model, asked, seconds=SLOW_REQUEST_SECONDS).get("model_info")
        vocabulary = build_vocabulary(info) if isinstance(info, dict) else None
        return _Model(digest, vocabulary, CountCache(lambda chat: self._count_prompt(chat, vocabulary)))

    def _count_prompt(self, chat: str, vocabulary: Vocabulary | None) -> int:
        messages, tools = json.loads(chat)
        body = {
            "model": self._model,
            "messages": messages,
            "tools": tools,
            "stream": False,
            "truncate": False,
            # A server that does not render makes one token.
            "options": {"num_ctx": self._num_ctx, "num_predict": 1},
            "_debug_render_only": True,
        }
        rendered = self._server.ask("/api/chat", self._model, body, seconds=SLOW_REQUEST_SECONDS).get("_debug_info")
        prompt = rendered.get("rendered_template") if isinstance(rendered, dict) else None
        if not isinstance(prompt, str):
            raise _NotRendered
        return tiktoken.longest(prompt) + 1 if vocabulary is None else vocabulary.count_prompt(prompt)


def _by_words(digits: str) -> str:
    return rf"{tiktoken.SUFFIX}|{tiktoken.BEFORE}\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{tiktoken.SPACES}"


# The patterns of llama.cpp (`llama-vocab.cpp`) by the names that "tokenizer.ggml.pre" has for them.
PATTERNS = {
    "gpt-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama-bpe": _by_words(r"\p{N}{1,3}"),
    "qwen2": _by_words(r"\p{N}"),
    "deepseek-r1-qwen": _by_words(r"\p{N}"),
    "tekken": tiktoken.words_by_case(r"\p{N}", ""),
    "gpt-4o": tiktoken.words_by_case(r"\p{N}{1,3}", f"{tiktoken.SUFFIX}?"),
}


def build_vocabulary(info: Mapping[str, Any]) -> Vocabulary | None:
    """Return the tokenizer of a model by its "model_info"; None if that has none, or one of another kind."""
    prefix = "tokenizer.ggml."
    gguf = {key.removeprefix(prefix): value for key, value in info.items() if key.startswith(prefix)}
    tokens = gguf.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        return None
    build = {"gpt2": _byte_level, "llama": _sentencepiece}.get(str(gguf.get("model")))
    tokenizer = build(tokens, gguf) if build else None
    if tokenizer is None:
        return None
    kinds = dict(zip(tokens, gguf.get("token_type") or [], strict=False))
    for kind, add in ((CONTROL, tokenizer.add_special_tokens), (USER_DEFINED, tokenizer.add_tokens)):
        chosen = [token for token in tokens if token and kinds.get(token) == kind]
        add([AddedToken(token, special=kind == CONTROL, normalized=False) for token in chosen])
    number = gguf.get("bos_token_id")
    adds_bos = gguf.get("add_bos_token", gguf.get("model") == "llama")
    return Vocabulary(tokenizer, tokens[number] if adds_bos and isinstance(number, int) else None)


def _byte_level(tokens: Sequence[str], gguf: Mapping[str, Any]) -> Tokenizer | None:
    pattern_name, merges = str(gguf.get("pre")), gguf.get("merges")
    pattern = PATTERNS.get(pattern_name)
    if pattern is None or not isinstance(merges, list):
        return None
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    ids = {token: number for number, token in enumerate(tokens)}
    # They take a word that is in the vocabulary as it is, whatever its merges say.
    takes_words = pattern_name in ("llama-bpe", "tekken")
    tokenizer = Tokenizer(models.BPE(ids, pairs, ignore_merges=takes_words))
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), by_bytes])
    return tokenizer


def _sentencepiece(tokens: Sequence[str], gguf: Mapping[str, Any]) -> Tokenizer | None:
    scores = gguf.get("scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        return None
    ids = {token: number for number, token in enumerate(tokens)}
    # The best first: SentencePiece joins the two neighbours whose token has the highest score.
    ranked = [tokens[number] for number in sorted(range(len(tokens)), key=lambda number: -scores[number])]
    cuts = ((token[:cut], token[cut:]) for token in ranked for cut in range(1, len(token)))
    merges = [(left, right) for left, right in cuts if left in ids and right in ids]
    kinds = gguf.get("token_type") or []
    unknown = next((token for token, kind in zip(tokens, kinds, strict=False) if kind == UNKNOWN), None)
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    blank = [normalizers.Prepend("▁")] if gguf.get("add_space_prefix", True) else []
    tokenizer.normalizer = normalizers.Sequence([*blank, normalizers.Replace(" ", "▁")])
    return tokenizer
