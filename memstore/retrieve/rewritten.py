"""A question put otherwise by a model before anything is looked for. Off unless a rewriter is set.

What it gives is looked for beside the question as it was asked, and never in its place: a unit scores as it does for
the one that it answers best. So a rewriting that goes astray adds hits, and takes away none that are better.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from memstore.characters import storable
from memstore.errors import ModelAnswerInvalid
from memstore.models import Key, Tier, Usage
from memstore.providers import ChatMessage, Reranker, Restated, Rewriter
from memstore.retrieve.rank import Candidate, Ranking
from memstore.store import facts, model_calls
from memstore.store.database import Database
from memstore.waiting import in_thread, within

MOST_PARTS = 3  # each is ranked as the question is; what asks for more than three things names most of them itself
LONGEST = 1000  # characters of one of them, or of the reason why there are none
USED_UP = "the tokens that chat models may use in a day are used up (MEMSTORE_LLM_DAILY_TOKENS)"


logger = logging.getLogger("memstore")


@dataclass(frozen=True, slots=True)
class Models:
    """The models that recall asks beside the embedder, where they are set.

    `seconds` are the longest wait for a rewriter, `daily_tokens` what chat models may take and give in a day.
    """

    reranker: Reranker | None = None
    rewriter: Rewriter | None = None
    seconds: float = 10.0
    daily_tokens: int | None = None

    def names(self, asked: Rewritten) -> dict[str, str]:
        """Give the names of those that were asked, for a receipt."""
        named = {"reranker": self.reranker.name if self.reranker else "", "rewriter": asked.by}
        return {role: name for role, name in named.items() if name}


NO_MODELS = Models()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What is looked for: `text` is the question as it stands alone, `others` what is ranked beside what was asked.

    `by` is the name of the rewriter; `hint` says why it gave nothing.
    """

    text: str
    others: tuple[str, ...] = ()
    by: str = ""
    hint: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """What was looked for beside the question, for a receipt: a question to a line."""
        return {"rewritten": "\n".join(self.others)} if self.others else {}


async def rewritten(
    database: Database, user_id: UUID, models: Models, question: str, before: Sequence[ChatMessage] = ()
) -> Rewritten:
    """Give a question put otherwise, after what was said before it; as it stands, where there is no rewriter.

    No connection is held meanwhile. Where the rewriter fails, or takes too long, or the day's tokens are used up, the
    question is as it stands, and the hint says why.
    """
    rewriter = models.rewriter
    if rewriter is None or not question.strip():
        return Rewritten(question)
    async with database.scope(user_id) as scope:
        if await facts.now(scope) is None:  # nobody is known by this name, and nothing will be found
            return Rewritten(question)
    if not await _may_ask(database, models.daily_tokens):
        return _as_it_stands(question, USED_UP)
    try:
        found, cost = await in_thread(within, models.seconds, partial(_asked, rewriter, question, before))
    except TimeoutError:
        return _as_it_stands(question, f"no answer within {models.seconds:g} s")
    except Exception as error:  # whatever a rewriter of anybody's raises: recall does not need it
        return _as_it_stands(question, str(error) or type(error).__name__)
    if cost.prompt_tokens or cost.completion_tokens:
        async with database.scope(user_id) as scope:
            await model_calls.keep(scope, cost, ())
    return found


def _asked(rewriter: Rewriter, question: str, before: Sequence[ChatMessage]) -> tuple[Rewritten, Usage]:
    """Give what the rewriter makes of a question, and what that has cost: an answer of no use costs as much."""
    by = rewriter.name
    try:
        made = rewriter.rewrite(question, before)
    except ModelAnswerInvalid as error:
        cost = Usage(by, error.calls, error.prompt_tokens, error.completion_tokens)
        return _as_it_stands(question, str(error)), cost
    return _read(question, made.answer, by), Usage(by, made.calls, made.prompt_tokens, made.completion_tokens)


async def _may_ask(database: Database, daily_tokens: int | None) -> bool:
    if daily_tokens is None:
        return True
    async with database.operator() as scope:
        left = await model_calls.left(scope, daily_tokens)
    return left is None or left > 0


def _as_it_stands(question: str, why: str) -> Rewritten:
    hint = _bounded(f"The question was looked for as it stands, for it could not be rewritten: {why}")
    logger.warning("%s", hint)
    return Rewritten(question, hint=hint)


def _read(question: str, answer: Restated, by: str) -> Rewritten:
    given = [" ".join(_bounded(text).split()) for text in (answer.question, *answer.parts[:MOST_PARTS])]
    others = tuple(text for text in dict.fromkeys(given) if text and text != question)
    return Rewritten(given[0] or question, others, by)


def _bounded(text: str) -> str:
    return storable(text[:LONGEST])  # a model may write what a receipt cannot hold


def best_of_all(rankings: Iterable[Ranking]) -> Ranking:
    """Give every candidate of several rankings as the one has it in which it scores best, in one order. Pure.

    The greatest of the scores, and not their sum: a message that answers one part of a question says nothing about the
    others. Of equal ones those said last come first, then the lesser name.
    """
    found: dict[Key, Candidate] = {}
    also: set[Key] = set()
    for ranking in rankings:
        also |= {one.unit.key for one in ranking.of_those_asked_for()}
        for one in ranking.of(*Tier):
            known = found.get(one.unit.key)
            if known is None or one.score > known.score:
                found[one.unit.key] = one
    order = sorted(found.values(), key=lambda one: (-one.score, -one.unit.occurred_at.timestamp(), one.unit.key))
    return Ranking(
        [one.unit.tier for one in order],
        lambda places: [order[place] for place in places],
        [place for place, one in enumerate(order) if one.unit.key in also],
    )
