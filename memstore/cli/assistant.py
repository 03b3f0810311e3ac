"""An assistant that remembers: each message is stored, answered from a context within the window, and so is the answer.

What is said is kept before the model is asked, so that no failure of the model's loses it. An answer is kept when it
came to its end: half a sentence would be remembered as what the assistant meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memstore.errors import ModelAnswerInvalid, PromptTooLong
from memstore.providers.ollama_chat import Answer, OllamaChat

if TYPE_CHECKING:
    from memstore import Context, ConversationScope

RESERVED = 4  # an answer may have the window's fourth part, where nothing else is said
MOST_KEPT_FREE = 4  # and so much of it may be kept free because the server counts otherwise


@dataclass(frozen=True, slots=True)
class Turn:
    """One message answered: from what context, and in what window.

    `missed` are the tokens that the server counted beyond ours, where that is more than was kept free for it.
    """

    context: Context
    answer: Answer
    window: int
    missed: int


class Assistant:
    """Answers in one conversation, by one model.

    `budget` bounds prompt and answer together, in tokens, by default by the model's window; `reserve` the answer.
    """

    def __init__(
        self,
        scope: ConversationScope,
        model: OllamaChat,
        *,
        system: str | None = None,
        budget: int | None = None,
        reserve: int | None = None,
    ) -> None:
        self._scope = scope
        self._model = model
        self._system = system
        self._budget = budget
        self._reserve = reserve
        self._margin: int | None = None
        self.last: Context | None = None

    @property
    def window(self) -> int:
        """The tokens that prompt and answer may have together. Raises as `OllamaChat.window`."""
        return self._model.window if self._budget is None else min(self._budget, self._model.window)

    @property
    def margin(self) -> int:
        """The tokens of the window that are kept free, as the server was seen to count more than we did."""
        if self._margin is None:
            drifts = [one for one in self._scope.user.drift() if one.model == self._model.name]
            self._margin = max((one.largest_miss for one in drifts if one.observed > one.predicted), default=0)
        return min(self._margin, self.window // MOST_KEPT_FREE)

    def reply(self, text: str, show: Callable[[str], object]) -> Turn:
        """Store what was said, give the answer piece by piece to `show`, and store it.

        Raises `BudgetTooSmall` where the message is too long for the window, and what `OllamaChat.answer` raises: the
        message is stored, no answer is.
        """
        self._scope.add("user", text)
        window, most = self.window, self._most
        self.last = context = self._scope.context(
            budget=window - self.margin, reserve=most, system=self._system, model=self._model.name, format="ollama"
        )
        try:
            answer = self._model.answer(context.messages, max_tokens=most, show=show)
        except PromptTooLong:
            # The server counted more than the window has: at least so many tokens more than we did.
            self._margin = max(self.margin, window - context.tokens) + window // 16
            raise
        if answer.text.strip():
            self._scope.add("assistant", answer.text, metadata={"model": self._model.name, "ended": answer.ended})
        turn = Turn(context, answer, window, self._observed(context, answer))
        if not answer.text.strip():
            raise ModelAnswerInvalid(
                f"{self._model.name} said nothing in {most} tokens: if it thinks, give it more (--reserve).", ""
            )
        return turn

    @property
    def _most(self) -> int:
        return self.window // RESERVED if self._reserve is None else self._reserve

    def _observed(self, context: Context, answer: Answer) -> int:
        """Hold the server's count against ours; give by how much it is more than expected, and keep that free now."""
        self._model.look_again()
        if answer.prompt_tokens is None:
            return 0
        self._scope.observed(context, prompt_tokens=answer.prompt_tokens, model=self._model.name)
        missed = answer.prompt_tokens - context.tokens
        if missed <= self.margin:
            return 0
        self._margin = missed + missed // 4  # the next prompt may be longer, and what is missed grows with it
        return missed
