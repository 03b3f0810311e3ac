"""Summaries on demand: of any range of a conversation, level 0, beside the hierarchy and never part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.active_embedder import run_with_active_embedder
from memstore.derive.dependencies import Dependencies
from memstore.derive.summaries.deriver import embed_summaries, make_summarizer
from memstore.derive.summaries.extractive import top_lines
from memstore.derive.summaries.hierarchy import GROUP, Segment, make_segment, summary_limit
from memstore.derive.summaries.llm import make_request
from memstore.errors import InvalidInput
from memstore.models import Message, Summary
from memstore.settings import Settings
from memstore.store import chunks, embedding_models, erasure, llm_usage, messages, summaries
from memstore.store.database import Database, Transaction
from memstore.store.erasure import UserVersion
from memstore.store.errors import ConcurrentUpdate

PAGE = 512  # messages read at once: of a long range only the lines are kept that may go in


async def summarize(
    database: Database,
    dependencies: Dependencies,
    user: UUID,
    conversation: UUID,
    from_seq: int | None,
    to_seq: int | None,
) -> Summary:
    """Return the summary of messages `from_seq` to `to_seq`, by default the first and the last: stored, or made now.

    It has as many tokens as one of the hierarchy over as much. Raises `InvalidInput` for a range that is not all there,
    and `ModelUnavailable` if a chat model is to write it and is away, or may do no more today.
    """
    summarizer = make_summarizer(dependencies)
    while True:
        recipe = await to_thread(lambda: summarizer.recipe)  # a server is asked for it, and no connection is held
        async with database.user_transaction(user, [erasure.VERSION]) as scope:
            [epoch] = scope.first
            first, last = await _check_range(scope, conversation, from_seq, to_seq)
            stored = await summaries.summary(scope, ids.summary_id(conversation, 0, first, last, recipe))
            if stored is not None:
                return stored
            segment = await _load_segment(scope, conversation, first, last)
        task = partial(_summarize, database, user, segment, recipe, epoch)
        try:
            return await run_with_active_embedder(database, dependencies, user, task)
        except ConcurrentUpdate:  # something of the user was erased meanwhile, of these messages it may be
            continue


async def _summarize(
    database: Database, user: UUID, segment: Segment, recipe: str, epoch: UserVersion | None, dependencies: Dependencies
) -> Summary:
    settings, summarizer = dependencies.settings, make_summarizer(dependencies)
    session = summarizer.start_session()
    if session is not None:
        async with database.admin_transaction() as scope:
            session.budget.left = await llm_usage.left(scope, settings.llm_daily_tokens)
    limit = summary_limit(_level_of(segment.tokens, settings), settings)
    [summary] = await to_thread(lambda: list(summarizer.summarize([(segment, session)], limit)))
    [units] = await to_thread(embed_summaries, [summary], dependencies)
    async with erasure.transaction_if_unchanged(database, user, epoch) as scope:
        model = await embedding_models.lock_active(scope, dependencies.embedder)
        if await summaries.add(scope, [summary]):  # else another process has just made it
            await chunks.add(scope, units, model)
        if session is not None:
            await llm_usage.answered(scope, make_request(segment, recipe).id)
            await llm_usage.keep(scope, session.usage, session.invalid_responses)
        return await summaries.summary(scope, summary.id) or summary


async def _check_range(
    scope: Transaction, conversation: UUID, from_seq: int | None, to_seq: int | None
) -> tuple[int, int]:
    row = await messages.conversation(scope, conversation)
    if row is None or not row.last_seq:
        raise InvalidInput("There is nothing to summarize: the conversation has no messages.")
    first, last = 1 if from_seq is None else from_seq, row.last_seq if to_seq is None else to_seq
    if type(first) is not int or type(last) is not int or not 1 <= first <= last <= row.last_seq:
        raise InvalidInput(
            f"from_seq={from_seq!r}, to_seq={to_seq!r}: give numbers of messages in order; "
            f"the conversation has 1 to {row.last_seq}."
        )
    return first, last


async def _load_segment(scope: Transaction, conversation: UUID, first: int, last: int) -> Segment:
    """Return the range as a segment; of more than a page, the lines that may go into its summary, a page at a time."""
    segment: Segment | None = None
    begin = first
    while begin <= last:
        end = await messages.within(scope, conversation, begin, min(last, begin + PAGE - 1), tokens=PAGE * 500)
        page = await messages.messages(scope, conversation, from_seq=begin, to_seq=end)
        if page:
            segment = make_segment(0, page) if segment is None else _extend(segment, page)
        begin = end + 1
    if segment is None:
        raise InvalidInput(f"There is nothing to summarize: no message from {first} to {last} is there any more.")
    return segment


def _extend(segment: Segment, page: Sequence[Message]) -> Segment:
    new = make_segment(0, page)
    return replace(
        segment,
        to_seq=new.to_seq,
        span=(min(segment.span[0], new.span[0]), max(segment.span[1], new.span[1])),
        tokens=segment.tokens + new.tokens,
        messages=(),
        key_lines=top_lines([*segment.lines(), *new.lines()]),
    )


def _level_of(tokens: int, settings: Settings) -> int:
    """Return the level of the hierarchy whose summaries are over about as many tokens."""
    level, limit = 1, settings.segment_tokens
    while tokens > limit:
        level, limit = level + 1, limit * GROUP
    return level
