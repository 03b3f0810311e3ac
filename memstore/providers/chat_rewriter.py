"""A rewriter of questions that asks a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from memstore.fences import data_line, unfenced
from memstore.providers import ChatMessage, ChatModel, Completion, Restated

MOST_TOKENS = 400  # of the answer: a question and three parts of it
LONGEST = 600  # characters of a message before the question: whom or what "she" and "it" are is said in few


class ChatRewriter:
    """A Rewriter over a ChatModel. Safe to share by threads."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"<ChatRewriter {self._model!r}>"

    @property
    def name(self) -> str:
        """The chat model's name. Asks its server the first time."""
        return self._model.name

    def rewrite(self, question: str, before: Sequence[ChatMessage]) -> Completion[Restated]:
        """Give the question restated, in one call; raises what `ChatModel.complete` raises."""
        said = [{"from": one["role"], "text": " ".join(unfenced(one["content"]).split())[:LONGEST]} for one in before]
        lines = [*said, {"question": question}]
        data = "\n".join(map(data_line, lines))
        chat = [{"role": "system", "content": _prompt()}, {"role": "user", "content": data}]
        return self._model.complete(chat, Restated, max_tokens=MOST_TOKENS)


@cache
def _prompt() -> str:
    return (files("memstore.providers") / "prompts" / "rewrite.md").read_text(encoding="utf-8")
