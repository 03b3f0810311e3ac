"""`store.backfills`: long histories that workers derive under a plan, with caps, and that can be paused.

Pending messages are assigned to a backfill in `derivations`, so pausing it changes one row and undoes nothing. New
messages in conversations that are not assigned to it are derived first. Workers keep within its cap (`derive.worker`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.validation import check_choice, check_names, check_number, to_uuid
from memstore.models import Backfill, BackfillPlan, BackfillStatus, DerivationProblem, DeriverPlan, Usage
from memstore.models.messages import SESSION_GAP
from memstore.providers import TokenCounter
from memstore.store import backfills, llm_usage, messages, queue, watermarks
from memstore.store.database import Transaction
from memstore.store.watermarks import DERIVERS, PendingMessages


class AsyncBackfills:
    """`store.backfills`: long histories that workers derive under a plan. Without an id the latest one is meant."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = runtime.database

    async def plan(self, *, user: str | None = None, only: Sequence[str] = ()) -> BackfillPlan:
        """Return what is pending of every user or of one, and about how many tokens of chat models it takes.

        `only` names some of "chunks", "summaries" and "facts". Nothing is written, no chat model is asked. Raises
        `ModelUnavailable` if the server of a chat model is away.
        """
        gap, full = SESSION_GAP.total_seconds(), self._runtime.settings.segment_tokens
        totals = {name: PendingMessages(name, 0, 0, 0, 0) for name in _derivers(only)}
        async for owner, _ in self._users(user):
            async with self._database.user_transaction(owner) as tx:
                for pending in await watermarks.pending_messages(tx, gap_seconds=gap, segment_tokens=full):
                    if pending.deriver in totals:
                        totals[pending.deriver] = totals[pending.deriver].plus(pending)
        async with self._database.admin_transaction() as tx:
            measured = {(each.deriver, each.model): each for each in await llm_usage.total_usage(tx)}
        plans = {
            name: DeriverPlan(pending.conversations, pending.messages, pending.tokens, 0, 0, 0)
            for name, pending in totals.items()
        }
        if any(pending.messages for pending in totals.values()):
            for name, model in zip(("summaries", "facts"), self._runtime.chat_models, strict=True):
                if model is not None and name in plans:
                    usage = measured.get((name, model.name))
                    plans[name] = _add_calls(plans[name], totals[name], usage, self._runtime.counter)
        return BackfillPlan(plans)

    async def _users(self, only: str | None) -> AsyncIterator[tuple[UUID, str]]:
        check_names(user=only)
        if only is not None:
            yield ids.user_id(only), only
            return
        async for owner in messages.everybody(self._database):
            yield owner

    async def begin(
        self,
        *,
        user: str | None = None,
        only: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> UUID:
        """Make what is pending a backfill and return its id; workers take it up.

        It is paused before calls of chat models take more than `max_tokens`. Conversations of another open backfill
        stay with that one. If the process is killed meanwhile, the backfill is left paused with a part of the pending
        conversations.
        """
        check_names(user=user)
        _check_cap(max_tokens)
        derivers, backfill = _derivers(only), ids.uuid7()
        await to_thread(queue.prepare_queue, self._database.url)
        async with self._database.admin_transaction() as tx:
            only_user = None if user is None else ids.user_id(user)
            await backfills.add(tx, backfill, only_user=only_user, derivers=derivers, max_tokens=max_tokens)
            other_backfills = [id for id, state in (await backfills.states(tx)).items() if state != "cancelled"]
        async for owner, _ in self._users(user):
            async with self._database.user_transaction(owner) as user_tx:
                await watermarks.assign(user_tx, backfill, derivers, unlike=other_backfills)
        async with self._database.admin_transaction() as tx:
            backlog = await watermarks.backfill_backlog(tx, backfill)
            await backfills.set_messages(tx, backfill, {entry.deriver: entry.messages for entry in backlog})
            await backfills.resume(tx, backfill)
        return backfill

    async def status(self, backfill: UUID | None = None) -> BackfillStatus:
        """Return its progress. Raises `NotFound` if there is none."""
        async with self._database.admin_transaction() as tx:
            row = await _find(tx, backfill)
            backlog = await watermarks.backfill_backlog(tx, row.id)
        left = {entry.deriver: entry.messages for entry in backlog}
        seconds = row.worked_seconds
        if row.state == "running":
            seconds += (datetime.now(UTC) - row.resumed_at).total_seconds()
        done = {name: max(0, count - left.get(name, 0)) for name, count in row.messages.items()}
        rate = sum(done.values()) / seconds if seconds > 0 else 0.0
        seconds_left = None
        if all(done.get(name) for name in left):
            seconds_left = max((seconds * count / done[name] for name, count in left.items()), default=0.0)
        failing = max((entry.failing for entry in backlog), default=0)
        return BackfillStatus(row, left, failing, sum(done.values()), seconds, rate, seconds_left)

    async def pause(self, backfill: UUID | None = None) -> BackfillStatus:
        """Pause it; steps under way are finished. Raises `InvalidInput` where it does not run."""
        return await self._halt(backfill, "paused")

    async def cancel(self, backfill: UUID | None = None) -> BackfillStatus:
        """End it. Derived rows stay; workers leave the rest alone until another backfill asks for it."""
        return await self._halt(backfill, "cancelled")

    async def resume(self, backfill: UUID | None = None, *, max_tokens: int | None = None) -> BackfillStatus:
        """Resume a paused one, with another cap if given. Raises `InvalidInput` if it is not paused."""
        _check_cap(max_tokens)
        async with self._database.admin_transaction() as tx:
            row = await _find(tx, backfill)
            if not await backfills.resume(tx, row.id, max_tokens=max_tokens):
                raise InvalidInput(f"The backfill {row.id} is not paused but {row.state}.")
        return await self.status(row.id)

    async def verify(self, *, user: str | None = None) -> list[DerivationProblem]:
        """Return what is not derived, not whole or wrongly counted, of every user or of one; [] if all is well."""
        problems = []
        async for owner, name in self._users(user):
            async with self._database.user_transaction(owner) as tx:
                counts = await watermarks.find_problems(tx)
            problems += [DerivationProblem(name, problem, rows) for problem, rows in counts.items()]
        has_queue = (await queue.state(self._database)).made
        if has_queue and (failed := (await queue.counts(self._database)).failed):
            problems.append(DerivationProblem(None, "jobs were given up: memstore jobs --failed", failed))
        return problems

    async def _halt(self, backfill: UUID | None, state: backfills.HaltedState) -> BackfillStatus:
        async with self._database.admin_transaction() as tx:
            row = await _find(tx, backfill)
            if not await backfills.halt(tx, row.id, state, "by hand"):
                raise InvalidInput(f"The backfill {row.id} is {row.state}: there is nothing to be {state}.")
        return await self.status(backfill)


async def _find(tx: Transaction, backfill: UUID | None) -> Backfill:
    rows = await backfills.backfills(tx, None if backfill is None else to_uuid(backfill), limit=1)
    if not rows:
        raise NotFound(f"There is no backfill {backfill}." if backfill else "There is no backfill yet.")
    return rows[0]


def _check_cap(max_tokens: int | None) -> None:
    if max_tokens is not None:
        check_number(max_tokens, "max_tokens", 1, 10**15)


def _derivers(only: Sequence[str]) -> Sequence[str]:
    for name in only:
        check_choice("only", name, DERIVERS)
    return [name for name in DERIVERS if name in only] or DERIVERS


def _add_calls(
    plan: DeriverPlan, pending: PendingMessages, measured: Usage | None, counter: TokenCounter
) -> DeriverPlan:
    from memstore.derive.llm import load_prompt

    calls = _count_calls(pending)
    if not calls:
        return plan
    if measured is not None and measured.calls:
        share = calls / measured.calls
        prompts, answers = measured.prompt_tokens * share, measured.completion_tokens * share
    else:
        prompt, answer_tokens = ("facts", 600) if pending.deriver == "facts" else ("summary", 120)
        # Each message has its number, its day and its speaker in a prompt.
        overhead = calls * counter.count(load_prompt(prompt).text) + plan.messages * 25
        prompts, answers = plan.tokens + overhead, calls * answer_tokens
    return replace(plan, calls=calls, prompt_tokens=round(prompts), answer_tokens=round(answers))


def _count_calls(pending: PendingMessages) -> int:
    """Return about how many calls a deriver makes: a segment is about one."""
    from memstore.derive.facts.llm_extractor import MAX_SEGMENT_MESSAGES
    from memstore.derive.summaries.extractive import GROUP

    if pending.deriver == "facts":
        return max(pending.segments, ceil(pending.messages / MAX_SEGMENT_MESSAGES))
    # The last segment of a conversation waits for more.
    closed = pending.segments - pending.conversations
    # And every four summaries are summarized again.
    return closed + closed // (GROUP - 1)
