"""A backfill's token cap, shared by all its workers: each call reserves its tokens before it is made.

Async only, as the workers are. The chat model is called in a thread; the event loop asks the database for the tokens.
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
RETRY_TOKENS = 600  # that a second try adds to the prompt: what was wrong with the first answer
WAIT_SECONDS = 30.0  # for tokens that other calls have reserved and may give back; a killed worker never does
POLL_SECONDS = 0.2


class CappedChatModel:
    """Wraps a ChatModel so that its calls count for a backfill; raises `ModelUnavailable` at the cap."""

    def __init__(self, model: ChatModel, database: Database, backfill: UUID) -> None:
        self._model, self._database, self._backfill = model, database, backfill
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model.name

    @property
    def context_tokens(self) -> int:
        """Return the model's window."""
        return self._model.context_tokens

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Return a number of tokens that the prompt does not exceed."""
        return self._model.max_prompt_tokens(messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the model's answer, after reserving its tokens."""
        once = self.max_prompt_tokens(messages) + max_tokens
        tokens = once + min(self.context_tokens, once + RETRY_TOKENS)  # it may be asked once more
        self._reserve(tokens)
        spent = 0
        try:
            answer = self._model.complete(messages, schema, max_tokens=max_tokens)
            spent = answer.prompt_tokens + answer.completion_tokens
            return answer
        except ModelAnswerInvalid as error:
            spent = error.prompt_tokens + error.completion_tokens
            raise
        finally:
            self._run(self._settle(tokens, spent))

    def _reserve(self, tokens: int) -> None:
        last = time.monotonic() + WAIT_SECONDS
        while not self._run(self._try_reserve(tokens, now=time.monotonic() > last)):
            time.sleep(POLL_SECONDS)

    async def _try_reserve(self, tokens: int, *, now: bool) -> bool:
        async with self._database.operator() as scope:
            if await backfills.reserve(scope, self._backfill, tokens):
                return True
            await backfills.out_of_tokens(scope, self._backfill, tokens, now=now)
        async with self._database.operator() as scope:
            (row,) = await backfills.backfills(scope, self._backfill)
        if row.state == backfills.RUNNING:
            return False
        raise ModelUnavailable(
            f"The backfill {self._backfill} is {row.state}: a call of up to {tokens} tokens may not be made, of "
            f"{row.max_tokens} there are {row.spent_tokens + row.taken_tokens} spent. What is pending waits."
        )

    async def _settle(self, taken: int, spent: int) -> None:
        async with self._database.operator() as scope:
            await backfills.settle(scope, self._backfill, taken=taken, spent=spent)

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
