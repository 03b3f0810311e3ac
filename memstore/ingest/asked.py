"""What derivers that ask a chat model keep of the asking: what it cost, and the answers that nobody could use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from memstore import ids
from memstore.errors import ModelAnswerInvalid, ModelUnavailable
from memstore.ingest.check import UNSTORABLE
from memstore.models import DeadLetter, Usage

T = TypeVar("T")


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
class Place:
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
    letters: list[DeadLetter] = field(default_factory=list)

    def ask(self, place: Place, question: Callable[[], T]) -> T | None:
        """Give the model's answer; None where it cannot be used, which is kept as a dead letter.

        Raises `ModelUnavailable` where the model is away or the day's tokens are used up.
        """
        self.allowance.check()
        try:
            return question()
        except ModelAnswerInvalid as error:
            self.spend(error.prompt_tokens, error.completion_tokens)
            self.letters.append(_letter(place, error))
            return None

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Note what a call has cost; nothing where there were no words to ask about."""
        self.calls += prompt_tokens > 0
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.allowance.spend(prompt_tokens + completion_tokens)

    @property
    def cost(self) -> Usage:
        """What the calls cost."""
        return Usage(self.model, self.calls, self.prompt_tokens, self.completion_tokens)


def letter_id(place: Place) -> UUID:
    """Give the id of the letter about a place: asked again, it is the same one."""
    return ids.letter_id(place.conversation_id, place.deriver, place.from_seq, place.to_seq, place.recipe)


def _letter(place: Place, error: ModelAnswerInvalid) -> DeadLetter:
    return DeadLetter.model_construct(
        id=letter_id(place),
        conversation_id=place.conversation_id,
        deriver=place.deriver,
        from_seq=place.from_seq,
        to_seq=place.to_seq,
        recipe=place.recipe,
        error=UNSTORABLE.sub("\ufffd", str(error)),
        payload=UNSTORABLE.sub("\ufffd", error.payload),
    )
