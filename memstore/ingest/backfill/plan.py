"""What a backfill would cost: messages and tokens by deriver, and calls of chat models with theirs.

Nobody is asked, or, where the caller allows it, the chat models about a few stretches (`rehearsal`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from memstore.ingest.asked import Allowance
from memstore.ingest.backfill.control import everybody
from memstore.ingest.backfill.rehearsal import ASSUMED, KNOWN, Expected, Rehearsed, asked, text_of
from memstore.ingest.derive import derivers_of
from memstore.ingest.resources import Resources
from memstore.ingest.steps import Deriver
from memstore.models import BackfillPlan, DeriverPlan, Json
from memstore.providers import ChatModel
from memstore.store import derivations, model_calls
from memstore.store.database import Database
from memstore.store.model_calls import MeanCost
from memstore.store.watermarks import Pending
from memstore.waiting import in_thread

ANSWER_TOKENS = {"summarize": 120.0, "facts": 150.0}  # of an answer, where no call of the model is known
LOOSE = 0.8


async def counted(
    database: Database, *, user: UUID | None = None, derivers: Sequence[str] = derivations.DERIVERS
) -> dict[str, Counter[str]]:
    """Give how much is pending of one user or of all, by deriver; no model is loaded for it."""
    found: dict[str, Counter[str]] = {name: Counter() for name in derivers}
    async for owner in everybody(database, user):
        await _count(database, owner, found)
    return found


async def plan(
    database: Database,
    resources: Resources,
    found: Mapping[str, Counter[str]],
    *,
    user: UUID | None = None,
    ask: int = 0,
) -> BackfillPlan:
    """Give what that which was `counted` would cost.

    Chat models are asked about `ask` stretches for each deriver; by default nobody is, and nothing is written.
    """
    derivers = tuple(found)
    async with database.operator() as scope:
        known = await model_calls.mean_costs(scope)
        resources.allowance.left = await model_calls.left(scope, resources.settings.llm_daily_tokens)
    guessed = {name: _guessed(name, known.get(model.name)) for name, model in _models(resources).items()}
    rehearsed = await _rehearsed(database, resources, guessed, derivers, user, ask)
    expected = dict(guessed)
    for name, one in rehearsed.items():
        one.expected = expected[name] = (
            await asked(database, one, resources.allowance) if ask else _less_bound(one, known.get(one.name))
        )
    if "summarize" in rehearsed and expected["summarize"] != guessed["summarize"]:
        # Again, as what is asked about summaries depends on how long those are.
        rehearsed |= await _rehearsed(database, resources, expected, {"summarize"}, user, 0)
    return priced(found, rehearsed)


def priced(found: Mapping[str, Counter[str]], rehearsed: Mapping[str, Rehearsed]) -> BackfillPlan:
    """Give the plan of what was counted, with what chat models would be asked, by deriver."""
    return BackfillPlan({name: _planned(counts, rehearsed.get(name)) for name, counts in found.items()})


def _models(resources: Resources) -> dict[str, ChatModel]:
    """Give the chat models that are set, by deriver."""
    found = {"summarize": resources.summary_model, "facts": resources.facts_model}
    return {name: model for name, model in found.items() if model is not None}


def _guessed(deriver: str, known: MeanCost | None) -> Expected:
    """Give what is expected of a model by what is known of it, before prompts are made."""
    return Expected(KNOWN, known.answer_tokens) if known else Expected(ASSUMED, ANSWER_TOKENS[deriver])


def _less_bound(model: Rehearsed, known: MeanCost | None) -> Expected:
    """Give what is expected of a model whose prompts took far less so far than bounds these; else what was.

    A bound in bytes is four times what a prompt takes. One that is counted differs from what is known by no more than
    the histories do.
    """
    if known is None or not model.calls or known.prompt_tokens * model.calls > LOOSE * model.bound_tokens:
        return model.expected
    return replace(model.expected, share=known.prompt_tokens * model.calls / model.bound_tokens)


async def _rehearsed(
    database: Database,
    resources: Resources,
    expected: Mapping[str, Expected],
    derivers: Collection[str],
    user: UUID | None,
    most: int,
) -> dict[str, Rehearsed]:
    """Let these derivers think about all that is pending, with nobody to ask; give whom they would ask."""
    found = {}
    for name, model in _models(resources).items():
        tokens = expected[name].answer_tokens / expected[name].share  # as the model's bound has them
        answer: Json = {"summary": text_of(model, tokens)} if name == "summarize" else {"facts": []}
        found[name] = Rehearsed(model, answer, expected[name], most)
    rehearsing = replace(
        resources,
        embedder=None,
        allowance=Allowance(),
        summary_model=found.get("summarize"),
        facts_model=found.get("facts"),
    )
    wanted = [one for one in derivers_of(rehearsing) if one.name in found and one.name in derivers]
    for deriver in wanted:
        await _rehearse(database, deriver, found[deriver.name], user)
    return {one.name: found[one.name] for one in wanted}


async def _count(database: Database, user: UUID, found: dict[str, Counter[str]]) -> None:
    async with database.scope(user) as scope:
        for one in await derivations.pending_messages(scope):
            if one.deriver in found:
                found[one.deriver].update(messages=one.messages, tokens=one.tokens, conversations=one.conversations)


async def _rehearse(database: Database, deriver: Deriver[Any, Any], model: Rehearsed, user: UUID | None) -> None:
    after: Pending | None = None
    while True:
        async with database.operator() as scope:
            page = await derivations.pending(scope, deriver.name, only=user, after=after)
        if not page:
            return
        after = page[-1]
        for work in page:
            model.user_id = work.user_id
            await _rehearse_one(database, deriver, work)


async def _rehearse_one(database: Database, deriver: Deriver[Any, Any], work: Pending) -> None:
    """Go over a conversation as `derive` will; what is already there of it is looked at once."""
    made: list[Any] = []
    at, anew = work.done_seq, getattr(deriver, "reread", None) if not work.done_seq else None
    while at < work.last_seq:
        rest, most = replace(work, done_seq=at), deriver.method.batch
        async with database.scope(work.user_id) as scope:
            batch = await anew(scope, rest, most, made) if anew else await deriver.read(scope, rest, most)
        made += await in_thread(deriver.think, [batch])
        at = max(at + 1, made[-1].to_seq)


def _planned(counts: Counter[str], model: Rehearsed | None) -> DeriverPlan:
    calls = model.calls if model else 0
    expected = model.expected if model and calls else None
    return DeriverPlan(
        conversations=counts["conversations"],
        messages=counts["messages"],
        tokens=counts["tokens"],
        calls=calls,
        prompt_tokens=round(model.bound_tokens * expected.share) if model and expected else 0,
        answer_tokens=round(calls * expected.answer_tokens) if expected else 0,
        answers=expected.basis if expected else None,
        call_seconds=expected.seconds if expected else None,
    )
