"""A chat with a model that Ollama serves: the answer is shown as it comes, and is one only where it came to its end.

Ollama's silent ways out are closed as in `ollama`: the window is asked for with every call, and cutting is forbidden. A
stream that ends without having said so looks finished to the library; here it is `ModelUnavailable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers.ollama import OllamaModel
from memstore.providers.ollama_http import Json, Server, entry_of
from memstore.settings import Settings

ASIDE = 2.0  # seconds for a question about the model, which the server answers from memory


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, why it ended ("stop", or "length" at its most tokens), and the server's own counts of tokens.

    `prompt_tokens` is None where the server does not tell.
    """

    text: str
    ended: str
    prompt_tokens: int | None
    answer_tokens: int | None


class OllamaChat:
    """A model to chat with. Asks the server nothing until it is needed.

    `num_ctx` is the window in tokens, `timeout` the longest silence in seconds, `backoff` the first pause before a
    retry. Nothing is tried again once a part of the answer was shown.
    """

    def __init__(self, model: str, *, url: str, num_ctx: int, timeout: float, backoff: float = 0.5) -> None:
        if not model:
            raise ProviderMissing("Give the model's name, as `ollama list` shows it.")
        self._model = model
        self._server = Server(url, timeout, backoff)
        self._described = OllamaModel(model, url=url, num_ctx=num_ctx, timeout=timeout, backoff=backoff)
        self._num_ctx = num_ctx
        self._allotted = num_ctx

    @property
    def name(self) -> str:
        """The name by which contexts are counted for it, such as "ollama:qwen3:4b"."""
        return f"ollama:{self._model}"

    @property
    def window(self) -> int:
        """The tokens that prompt and answer have together: `num_ctx`, or what the model or the server has if less.

        Asks the server the first time; raises ModelUnavailable where it is away or has no such model, ProviderMissing
        for a model that cannot chat.
        """
        return min(self._described.context_tokens, self._allotted)

    def answer(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, show: Callable[[str], object]
    ) -> Answer:
        """Give the whole answer of at most `max_tokens` tokens, each piece shown as it comes. Thoughts are not shown.

        Raises ModelUnavailable where the server is away, silent for too long, or breaks off; PromptTooLong where it
        says so; ProviderError for what it refuses. Pieces may have been shown by then.
        """
        pieces: list[str] = []
        last: Json = {}
        body = self._body(messages, max_tokens)
        with closing(self._server.stream("/api/chat", self._model, body)) as parts:  # interrupted, it hangs up at once
            for last in parts:
                if piece := _said(last):
                    pieces.append(piece)
                    show(piece)
        ended = str(last.get("done_reason") or "stop")
        return Answer("".join(pieces), ended, _count(last, "prompt_eval_count"), _count(last, "eval_count"))

    def look_again(self) -> None:
        """Ask what window the server has really allotted, which it knows once the model is loaded."""
        with suppress(ProviderError):
            told = self._server.ask("GET", "/api/ps", self._model, patience=ASIDE)
            self._allotted = _count(entry_of(told, self._model), "context_length") or self._allotted

    def _body(self, messages: Sequence[Mapping[str, Any]], max_tokens: int) -> Json:
        return {
            "model": self._model,
            "messages": list(messages),
            "stream": True,
            "truncate": False,
            "shift": False,
            # "think" is left alone: the prompt that was counted is one without it, and it changes some.
            "options": {"num_ctx": self._num_ctx, "num_predict": max_tokens},
        }


def load(model: str, settings: Settings) -> OllamaChat:
    """Give the model of this name on the server of these settings, "ollama:" before it or not."""
    return OllamaChat(
        model.removeprefix("ollama:"),
        url=settings.ollama_url,
        num_ctx=settings.ollama_num_ctx,
        timeout=settings.ollama_timeout_seconds,
    )


def _said(part: Json) -> str:
    message = part.get("message")
    said = message.get("content") if isinstance(message, dict) else None
    return said if isinstance(said, str) else ""


def _count(told: Json, key: str) -> int | None:
    value = told.get(key)
    return value if isinstance(value, int) and value > 0 else None
