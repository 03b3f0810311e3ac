"""Counts of models that Ollama serves: the server renders the prompt, and the model's own tokenizer counts it here.

Ollama has no endpoint that counts. What it has: `_debug_render_only` gives the prompt of a chat without running it (an
undocumented field), and a verbose `/api/show` the tokens and merges of the model. Where either is missing the count is
a bound by bytes, and of the kind "bound"; so it is while the server is away, for a context must be had then too.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memstore.errors import InvalidInput, ModelUnavailable, ProviderError, ProviderMissing
from memstore.providers import Count
from memstore.providers.bytes import BytesCounter, longest
from memstore.providers.chat_values import as_json, as_template, only_text
from memstore.providers.gguf import vocabulary
from memstore.providers.ollama_http import Json, Server, digest_of, entry_of
from memstore.providers.prompt_counter import Vocabulary, around, expected
from memstore.providers.remembered import Remembered
from memstore.settings import Settings

ASIDE = 30.0  # seconds for a question about the model; a verbose /api/show has 10 MB, rendering loads the model
FRESH = 60.0  # seconds for which a model is taken to be the one that it was
AWAY = 30.0  # seconds for which a server that did not answer is not asked again


def load(model: str, settings: Settings) -> OllamaCounter:
    """Give the counter of a model, as `ollama list` shows it; a digest after "@" is left out. Asks nothing yet."""
    name = model.partition("@")[0]
    if not name:
        raise ProviderMissing("Write ollama:NAME, with the name that `ollama list` shows.")
    return OllamaCounter(name, Server(settings.ollama_url, ASIDE, 0.5), settings.ollama_num_ctx)


@dataclass
class _Model:
    """One version of the model: its digest, its tokenizer where that can be built, and what was counted by it."""

    digest: str
    vocabulary: Vocabulary | None
    rendered: Remembered
    seen: float = field(default_factory=time.monotonic)
    around: int | None = None
    renders: bool = True


class _Unrendered(Exception):
    """The server does not render without running."""


class OllamaCounter:
    """Counts the tokens of the prompts that an Ollama server makes. Safe to share by threads.

    Prompts are rendered and counted once for each version (digest) of the model. A call may wait for the server up to
    30 s; one that does not answer is not asked again for 30 s.
    """

    def __init__(self, model: str, server: Server, num_ctx: int) -> None:
        self._model = model
        self._server = server
        self._num_ctx = num_ctx
        self._bytes = BytesCounter()
        self._lock = threading.RLock()
        self._known: _Model | None = None
        self._away_until = 0.0

    def __repr__(self) -> str:
        return f"<OllamaCounter {self.name}>"

    @property
    def name(self) -> str:
        """The full name, such as "ollama:qwen3:4b"."""
        return f"ollama:{self._model}"

    def count(self, text: str) -> int:
        """Give the number of tokens of a text by the model's tokenizer; a bound by bytes where that is not had."""
        known = self._current()
        return self._bytes.count(text) if known is None or known.vocabulary is None else known.vocabulary.text(text)

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Give what one message is expected to add: its values, and what the template puts around a short one."""
        known = self._current()
        if known is None or known.vocabulary is None:
            return self._bytes.count_message(message)
        if known.around is None:
            known.around = around(self.count_messages, known.vocabulary)
        return expected(message, known.vocabulary, known.around)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Give the tokens of the prompt that the server renders: "exact" where its own tokenizer has counted them.

        Otherwise "bound": by the bytes of the rendered prompt, or of the messages where nothing is rendered. With
        images "modelled". Raises InvalidInput where the server refuses the messages, ProviderMissing where it has no
        such model.
        """
        known = self._current()
        tokens = None if known is None else self._tokens(known, messages, tools)
        if known is None or tokens is None:
            return self._bytes.count_messages(messages, tools)
        if not only_text(messages):
            return Count(tokens, "modelled")
        return Count(tokens, "bound" if known.vocabulary is None else "exact")

    def _tokens(
        self, known: _Model, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> int | None:
        """Give the tokens of the rendered prompt; None where the server does not render, now or ever."""
        if not known.renders or time.monotonic() < self._away_until:
            return None
        try:
            return known.rendered(as_json([[as_template(one) for one in messages], list(tools)]))
        except _Unrendered:
            known.renders = False
        except ModelUnavailable:
            self._away_until = time.monotonic() + AWAY
        except ProviderError as error:
            raise InvalidInput(f"Ollama does not make a prompt of these messages: {error}") from error
        return None

    def verify(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> tuple[int, int]:
        """Give our count and the server's (`prompt_eval_count`) of one chat. It runs the model for one token.

        Raises ModelUnavailable where the server is away or counts nothing.
        """
        body = self._chat(messages, tools) | {"shift": False}
        told = self._server.ask("POST", "/api/chat", self._model, body, whole=lambda told: told.get("done") is True)
        counted = told.get("prompt_eval_count")
        if not isinstance(counted, int):
            raise ModelUnavailable(f"Ollama at {self._server.url} does not tell how many tokens a prompt had.")
        return int(self.count_messages(messages, tools)), counted

    def _current(self) -> _Model | None:
        """Give the model as the server has it now; None while it is away."""
        with self._lock:
            now = time.monotonic()
            if self._known is not None and now < self._known.seen + FRESH:
                return self._known
            if now < self._away_until:
                return self._known
            try:
                self._known = self._described(self._known)
            except ModelUnavailable:
                self._away_until = now + AWAY
            return self._known

    def _described(self, before: _Model | None) -> _Model:
        listed = self._server.ask("GET", "/api/tags", self._model, patience=2.0)
        digest = digest_of(entry_of(listed, self._model))
        if before is not None and before.digest == digest != "":
            before.seen = time.monotonic()
            return before
        shown = self._server.ask("POST", "/api/show", self._model, {"model": self._model, "verbose": True})
        info = shown.get("model_info")
        own = vocabulary(info) if isinstance(info, dict) else None
        return _Model(digest, own, Remembered(lambda chat: self._prompt_tokens(chat, own)))

    def _prompt_tokens(self, chat: str, own: Vocabulary | None) -> int:
        messages, tools = json.loads(chat)
        prompt = self._rendered(messages, tools)
        return longest(prompt) + 1 if own is None else own.prompt(prompt)

    def _rendered(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
        body = self._chat(messages, tools) | {"_debug_render_only": True}
        told = self._server.ask("POST", "/api/chat", self._model, body).get("_debug_info")
        prompt = told.get("rendered_template") if isinstance(told, dict) else None
        if not isinstance(prompt, str):
            raise _Unrendered
        return prompt

    def _chat(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Json:
        """Give the body of a chat, of which nothing is cut; a server that knows no rendering makes one token."""
        return {
            "model": self._model,
            "messages": [as_template(message) for message in messages],
            "tools": list(tools),
            "stream": False,
            "truncate": False,
            "options": {"num_ctx": self._num_ctx, "num_predict": 1},
        }
