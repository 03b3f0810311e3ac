"""Estimates what a backfill costs: messages and tokens by deriver, calls of chat models, and how long it takes.

No model is asked and no message is read: the database counts what is pending. Rates are those that this store has
measured so far: of calls by the model's usage, of messages by the backfills that are done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from uuid import UUID

from memstore.backfill.control import user_ids
from memstore.derive.facts.llm_extractor import BATCH_MESSAGES
from memstore.derive.llm import load_prompt
from memstore.derive.summaries.extractive import GROUP
from memstore.models import BackfillPlan, DeriverPlan
from memstore.providers import ChatModel, TokenCounter
from memstore.settings import Settings
from memstore.store import backfills, llm_usage, watermarks
from memstore.store.database import Database
from memstore.store.llm_usage import MeanCost
from memstore.store.watermarks import PendingMessages

ASSUMED, MEASURED = "assumed", "known"  # how the tokens of answers are known
ANSWER_TOKENS = {"summarize": 120.0, "facts": 150.0}  # of an answer, until calls of the model were measured
LINE_TOKENS = 25  # of a prompt for each message beside its text: number, day, speaker
PROMPTS = {"summarize": "summary", "facts": "facts"}


async def count_pending(
    database: Database, settings: Settings, *, user: UUID | None = None, derivers: Sequence[str] = watermarks.DERIVERS
) -> dict[str, PendingMessages]:
    """Return how much is pending of one user or of all, by deriver."""
    totals = {name: PendingMessages(name, 0, 0, 0, 0) for name in derivers}
    gap, full = settings.session_gap_hours * 3600.0, settings.segment_tokens
    async for owner in user_ids(database, user):
        async with database.user_transaction(owner) as scope:
            for pending in await watermarks.pending_messages(scope, gap_seconds=gap, segment_tokens=full):
                if pending.deriver in totals:
                    totals[pending.deriver] = totals[pending.deriver].plus(pending)
    return totals


async def make_plan(
    database: Database,
    pending: Mapping[str, PendingMessages],
    models: Mapping[str, ChatModel],
    counter: TokenCounter,
) -> BackfillPlan:
    """Return what deriving `pending` costs; `models` has the chat model of each deriver that asks one."""
    async with database.admin_transaction() as scope:
        costs = await llm_usage.mean_costs(scope)
        rate = await backfills.measured_rate(scope, list(pending))
    plans = {name: _count_only(counts) for name, counts in pending.items()}
    for name, model in models.items():
        if name in plans:
            plans[name] = _add_calls(plans[name], pending[name], costs.get(model.name), counter)
    messages = sum(counts.messages for counts in pending.values())
    seconds = 0.0 if not messages else messages / rate if rate else None
    return BackfillPlan(plans, seconds)


def _count_only(pending: PendingMessages) -> DeriverPlan:
    return DeriverPlan(pending.conversations, pending.messages, pending.tokens, 0, 0, 0)


def _add_calls(
    plan: DeriverPlan, pending: PendingMessages, cost: MeanCost | None, counter: TokenCounter
) -> DeriverPlan:
    """Return the plan of a deriver that asks a chat model."""
    calls = _count_calls(pending)
    if not calls:
        return plan
    if cost is not None:
        prompts, answers, basis = calls * cost.prompt_tokens, cost.answer_tokens, MEASURED
    else:
        overhead = calls * counter.count(load_prompt(PROMPTS[pending.deriver]).text) + plan.messages * LINE_TOKENS
        prompts, answers, basis = plan.tokens + overhead, ANSWER_TOKENS[pending.deriver], ASSUMED
    return replace(
        plan,
        calls=calls,
        prompt_tokens=round(prompts),
        answer_tokens=round(calls * answers),
        answers=basis,
        call_seconds=cost.seconds if cost else None,
    )


def _count_calls(pending: PendingMessages) -> int:
    """Return about how many calls a deriver makes: the segments are known but for shifts of topic."""
    if pending.deriver == "facts":
        return max(pending.segments, ceil(pending.messages / BATCH_MESSAGES))
    closed = pending.segments - pending.conversations  # the last segment of a conversation waits for more
    return closed + closed // (GROUP - 1)  # and every four summaries are summarized again
