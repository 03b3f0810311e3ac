"""What derivers that ask a chat model keep of the asking: what it cost, and the answers that nobody could use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

from memstore import ids
from memstore.errors import ModelAnswerInvalid, ModelUnavailable
from memstore.models import DeadLetter, Usage
from memstore.text import replace_invalid_chars


class Answer(Protocol):
    """What a chat model gave, and what that cost in the model's tokens."""

    @property
    def calls(self) -> int:
        """How often it was asked."""

    @property
    def prompt_tokens(self) -> int:
        """Those that it took."""

    @property
    def completion_tokens(self) -> int:
        """Those that it gave."""


A = TypeVar("A", bound=Answer)


@dataclass(slots=True)
class Allowance:
    """The tokens that chat models may still take and give today; None for any number."""

    left: int | None = None

    def check(self) -> None:
        """Raise `ModelUnavailable` where the day's tokens are used up: what is pending waits, as for a model away."""
        if self.left is not None and self.left <= 0:
            raise ModelUnavailable(
                "The tokens that chat models may use in a day are used up; what is pending waits for tomorrow (UTC). "
                "MEMSTORE_LLM_DAILY_TOKENS sets their number."
            )

    def spend(self, tokens: int) -> None:
        """Take away what a call has cost."""
        if self.left is not None:
            self.left -= tokens


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a model is asked about: a stretch of a conversation, by a deriver and its recipe."""

    conversation_id: UUID
    deriver: str
    from_seq: int
    to_seq: int
    recipe: str


@dataclass(slots=True)
class Asked:
    """The calls of a batch."""

    model: str
    allowance: Allowance
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    letters: list[DeadLetter] = field(default_factory=list)

    def ask(self, inquiry: Inquiry, question: Callable[[], A | None]) -> A | None:
        """Give the model's answer, paid for; None where it cannot be used, which is kept as a dead letter.

        None too where there were no words to ask about, which costs nothing. Raises `ModelUnavailable` where the model
        is away or the day's tokens are used up.
        """
        self.allowance.check()
        began = time.monotonic()
        try:
            answer = question()
        except ModelAnswerInvalid as error:
            self._spend(error, time.monotonic() - began)
            self.letters.append(_letter(inquiry, error))
            return None
        if answer is not None:
            self._spend(answer, time.monotonic() - began)
        return answer

    def _spend(self, answer: Answer, seconds: float) -> None:
        self.seconds += seconds
        self.calls += answer.calls
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        self.allowance.spend(answer.prompt_tokens + answer.completion_tokens)

    @property
    def cost(self) -> Usage:
        """What the calls cost."""
        return Usage(self.model, self.calls, self.prompt_tokens, self.completion_tokens, self.seconds)


def letter_id(inquiry: Inquiry) -> UUID:
    """Give the id of the letter about an inquiry: asked again, it is the same one."""
    return ids.letter_id(inquiry.conversation_id, inquiry.deriver, inquiry.from_seq, inquiry.to_seq, inquiry.recipe)


def _letter(inquiry: Inquiry, error: ModelAnswerInvalid) -> DeadLetter:
    return DeadLetter.model_construct(
        id=letter_id(inquiry),
        conversation_id=inquiry.conversation_id,
        deriver=inquiry.deriver,
        from_seq=inquiry.from_seq,
        to_seq=inquiry.to_seq,
        recipe=inquiry.recipe,
        error=replace_invalid_chars(str(error)),
        payload=replace_invalid_chars(error.payload),
    )
