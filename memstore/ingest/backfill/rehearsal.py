"""Chat models rehearsed: prompts are made and counted as they will be, and nobody is asked, or only about a few.

Stretches are cut by arithmetic, so all prompts but those about summaries to be written are known before. How long
answers are is not: it is what they were so far, else what is assumed, else what a few calls show that are drawn by
chance over all that is pending, each as likely as the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from memstore.errors import ModelAnswerInvalid
from memstore.ingest.asked import Allowance
from memstore.models import Usage
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.store import model_calls
from memstore.store.database import Database
from memstore.waiting import in_thread

ASSUMED, KNOWN, ASKED = "assumed", "known", "asked"
WORD = "noted, "  # what a summary that is not there yet is made of
MADE_UP = WORD * 3


@dataclass(frozen=True, slots=True)
class Expected:
    """What calls are expected to cost, and by what that is told.

    `share` is what a prompt has of the tokens that bound it, `seconds` is how long a call takes, where that was seen.
    """

    basis: str
    answer_tokens: float
    share: float = 1.0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it will be made, about something that a user has said."""

    user_id: UUID
    messages: Sequence[ChatMessage]
    schema: type[BaseModel]
    max_tokens: int


@dataclass(slots=True)
class Rehearsed:
    """A ChatModel that asks nobody: it counts the prompts, and answers with something of the expected length.

    Of the calls it keeps `most`, drawn by chance; none about a summary that it has made up itself.
    """

    model: ChatModel
    answer: dict[str, Any]
    expected: Expected
    most: int = 0
    user_id: UUID = field(default=UUID(int=0), init=False)  # whose messages it is asked about
    calls: int = field(default=0, init=False)
    bound_tokens: int = field(default=0, init=False)
    drawn: list[Call] = field(default_factory=list, init=False)
    name: str = field(init=False)
    _eligible: int = field(default=0, init=False)
    _chance: Random = field(default_factory=lambda: Random(0), init=False)

    def __post_init__(self) -> None:
        """Be called as the model is."""
        self.name = self.model.name

    @property
    def context_tokens(self) -> int:
        """The model's window."""
        return self.model.context_tokens

    def bound(self, messages: Sequence[ChatMessage]) -> int:
        """Give what the model gives."""
        return self.model.bound(messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Count a call."""
        bound = self.model.bound(messages)
        self.calls += 1
        self.bound_tokens += bound
        if self.most and not any(MADE_UP in message["content"] for message in messages):
            self._draw(Call(self.user_id, messages, schema, max_tokens))
        return Completion(schema.model_validate(self.answer), bound, round(self.expected.answer_tokens))

    def _draw(self, call: Call) -> None:
        """Keep the call with the same chance as every other, however many there will be (Vitter's algorithm R)."""
        self._eligible += 1
        if len(self.drawn) < self.most:
            self.drawn.append(call)
        elif (place := self._chance.randrange(self._eligible)) < self.most:
            self.drawn[place] = call


def text_of(model: ChatModel, tokens: float) -> str:
    """Give a text that is as long as the summary in an answer of so many tokens: summaries are summarized again."""

    def size(text: str) -> int:
        return model.bound([{"role": "user", "content": text}])

    word = (size(WORD * 101) - size(WORD)) / 100
    frame = size('{"summary": ""}') - size("")
    return WORD * max(1, round((tokens - frame) / word))


async def asked(database: Database, rehearsed: Rehearsed, allowance: Allowance) -> Expected:
    """Ask the model itself about the calls that were drawn; give what they cost, which counts for the day.

    Nothing of the answers is kept. Raises `ModelUnavailable` where it is away or the day's tokens are used up.
    """
    calls = rehearsed.drawn
    if not calls:
        return rehearsed.expected
    bound = prompts = answers = 0
    began = time.monotonic()
    for call in calls:
        allowance.check()
        cost = await in_thread(_asked, rehearsed.model, call)
        allowance.spend(cost.prompt_tokens + cost.completion_tokens)
        async with database.scope(call.user_id) as scope:
            await model_calls.keep(scope, cost, ())
        bound += rehearsed.bound(call.messages)
        prompts += cost.prompt_tokens
        answers += cost.completion_tokens
    seconds = (time.monotonic() - began) / len(calls)
    return Expected(ASKED, answers / len(calls), prompts / bound if prompts and bound else 1.0, seconds)


def _asked(model: ChatModel, call: Call) -> Usage:
    try:
        found: Any = model.complete(call.messages, call.schema, max_tokens=call.max_tokens)
    except ModelAnswerInvalid as error:  # it will cost as much in earnest
        found = error
    return Usage(model.name, found.calls, found.prompt_tokens, found.completion_tokens)
