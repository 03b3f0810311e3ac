"""What a backfill would cost: messages and tokens by deriver, and calls of chat models with theirs.

Stretches are cut by arithmetic, so the prompts of all calls are made here as they will be made, and counted, and nobody
is asked. What the answers will cost is what they have cost so far, else what is assumed of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from memstore.ingest.asked import Allowance
from memstore.ingest.backfill.control import everybody
from memstore.ingest.derive import derivers_of
from memstore.ingest.resources import Resources
from memstore.ingest.steps import Deriver
from memstore.models import BackfillPlan, DeriverPlan
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.store import derivations, model_calls
from memstore.store.database import Database
from memstore.store.watermarks import Pending
from memstore.waiting import in_thread

ANSWER_TOKENS = {"summarize": 120.0, "facts": 150.0}  # of an answer, where no call of the model is known
WORD = "noted, "  # what a summary that is not there yet is made of


@dataclass(slots=True)
class Rehearsed:
    """A ChatModel that asks nobody: it counts the prompts, and answers with something of the expected length."""

    model: ChatModel
    answer: dict[str, Any]
    answer_tokens: float
    calls: int = 0
    prompt_tokens: int = 0
    name: str = field(init=False)

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
        prompt_tokens = self.model.bound(messages)
        self.calls += 1
        self.prompt_tokens += prompt_tokens
        return Completion(schema.model_validate(self.answer), prompt_tokens, round(self.answer_tokens))


async def plan(
    database: Database,
    resources: Resources,
    *,
    user: UUID | None = None,
    derivers: Sequence[str] = derivations.DERIVERS,
) -> BackfillPlan:
    """Give what is pending of one user or of all, and what it would cost. Nothing is written, and nobody is asked."""
    async with database.operator() as scope:
        known = await model_calls.answers(scope)
    rehearsed = _rehearsed(resources, known)
    rehearsing = replace(
        resources,
        embedder=None,
        allowance=Allowance(),
        summary_model=rehearsed.get("summarize"),
        facts_model=rehearsed.get("facts"),
    )
    found: dict[str, Counter[str]] = {name: Counter() for name in derivers}
    async for owner in everybody(database, user):
        await _count(database, owner, found)
    for deriver in derivers_of(rehearsing):
        if deriver.name in rehearsed and deriver.name in derivers:
            await _rehearse(database, deriver, user)
    return BackfillPlan({name: _planned(counts, rehearsed.get(name)) for name, counts in found.items()})


def _rehearsed(resources: Resources, known: dict[str, float]) -> dict[str, Rehearsed]:
    """Give who is asked instead of the chat models that are set, by deriver."""
    found = {}
    if (model := resources.summary_model) is not None:
        tokens = known.get(model.name, ANSWER_TOKENS["summarize"])
        found["summarize"] = Rehearsed(model, {"summary": _text(model, tokens)}, tokens)
    if (model := resources.facts_model) is not None:
        found["facts"] = Rehearsed(model, {"facts": []}, known.get(model.name, ANSWER_TOKENS["facts"]))
    return found


def _text(model: ChatModel, tokens: float) -> str:
    """Give a text that is as long as the summary in an answer of so many tokens: summaries are summarized again."""

    def size(text: str) -> int:
        return model.bound([{"role": "user", "content": text}])

    word = (size(WORD * 101) - size(WORD)) / 100
    frame = size('{"summary": ""}') - size("")
    return WORD * max(1, round((tokens - frame) / word))


async def _count(database: Database, user: UUID, found: dict[str, Counter[str]]) -> None:
    async with database.scope(user) as scope:
        for one in await derivations.pending_messages(scope):
            if one.deriver in found:
                found[one.deriver].update(messages=one.messages, tokens=one.tokens, conversations=one.conversations)


async def _rehearse(database: Database, deriver: Deriver[Any, Any], user: UUID | None) -> None:
    """Let a deriver think about all that is pending, with nobody to ask."""
    after: Pending | None = None
    while True:
        async with database.operator() as scope:
            page = await derivations.pending(scope, deriver.name, only=user, after=after)
        if not page:
            return
        after = page[-1]
        for work in page:
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
    return DeriverPlan(
        conversations=counts["conversations"],
        messages=counts["messages"],
        tokens=counts["tokens"],
        calls=calls,
        prompt_tokens=model.prompt_tokens if model else 0,
        answer_tokens=round(calls * model.answer_tokens) if model else 0,
    )
