"""A backfill's cap in tokens, kept by all its workers together: each call's tokens are taken before it is made.

Async only, as the workers. A chat model is called in a thread; the event loop asks the database for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID

from memstore.errors import ModelAnswerInvalid, ModelUnavailable
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.store import backfills
from memstore.store.database import Database

R = TypeVar("R")
COMPLAINT = 600  # tokens, in a second try, of what was wrong with the first
PATIENCE = 30.0  # seconds for what others have taken and may give back; a killed worker never does
PAUSE = 0.2


class CappedChatModel:
    """A ChatModel in front of another, whose calls count for a backfill: `ModelUnavailable` at its cap."""

    def __init__(self, model: ChatModel, database: Database, backfill: UUID) -> None:
        self._model, self._database, self._backfill = model, database, backfill
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def context_tokens(self) -> int:
        """The model's window."""
        return self._model.context_tokens

    def bound(self, messages: Sequence[ChatMessage]) -> int:
        """Give a number of tokens that the prompt does not exceed."""
        return self._model.bound(messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Give the model's answer, whose tokens were taken before it was asked."""
        once = self.bound(messages) + max_tokens
        tokens = once + min(self.context_tokens, once + COMPLAINT)  # it may be asked once more
        self._take(tokens)
        spent = 0
        try:
            answer = self._model.complete(messages, schema, max_tokens=max_tokens)
            spent = answer.prompt_tokens + answer.completion_tokens
            return answer
        except ModelAnswerInvalid as error:
            spent = error.prompt_tokens + error.completion_tokens
            raise
        finally:
            self._waited(self._settled(tokens, spent))

    def _take(self, tokens: int) -> None:
        last = time.monotonic() + PATIENCE
        while not self._waited(self._taken(tokens, now=time.monotonic() > last)):
            time.sleep(PAUSE)

    async def _taken(self, tokens: int, *, now: bool) -> bool:
        async with self._database.operator() as scope:
            if await backfills.reserve(scope, self._backfill, tokens):
                return True
            await backfills.out_of_tokens(scope, self._backfill, tokens, now=now)
        async with self._database.operator() as scope:
            (found,) = await backfills.backfills(scope, self._backfill)
        if found.state == backfills.RUNNING:
            return False
        raise ModelUnavailable(
            f"The backfill {self._backfill} is {found.state}: a call of up to {tokens} tokens may not be made, of "
            f"{found.max_tokens} there are {found.spent_tokens + found.taken_tokens} spent. What is pending waits."
        )

    async def _settled(self, taken: int, spent: int) -> None:
        async with self._database.operator() as scope:
            await backfills.settle(scope, self._backfill, taken=taken, spent=spent)

    def _waited(self, asked: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()
