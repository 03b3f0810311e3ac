"""The deriver of summaries: of segments of messages (level 1), and of four summaries of any level (the next level).

Where a segment ends follows from the messages alone, and which summaries stand under one from their numbers, so the
same history gives the same hierarchy however it was cut into batches. The open segment waits, and so do summaries that
are not yet four. The hierarchy is one partition of a conversation whatever recipe made its parts: another recipe goes
on where the last one ended. If an erasure has removed summaries from its middle, the watermark is back before the hole:
the rest of those messages is summarized again, and nothing else.

A summary on demand is of any range of a conversation: level 0, outside of the hierarchy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.chunking import split_segments, split_text
from memstore.derive.chunks import chunk_of, find_batch_end
from memstore.derive.dependencies import Dependencies, DerivedBatch, DeriverTraits
from memstore.derive.llm import LLMSession
from memstore.derive.summaries import extractive
from memstore.derive.summaries.llm import LLMSummarizer, make_request
from memstore.errors import InvalidInput
from memstore.models import Message, Summary
from memstore.models.messages import SESSION_GAP
from memstore.store import chunks, erasure, llm_usage, messages, summaries, watermarks
from memstore.store.chunks import new_chunk
from memstore.store.database import Database, Transaction
from memstore.store.erasure import UserVersion
from memstore.store.errors import ConcurrentUpdate
from memstore.store.rows import NewChunk, PendingWork, StaleWork


class Summarizer(DeriverTraits, Protocol):
    """Makes summaries of segments. Pure but for the models that it asks."""

    def start_session(self) -> LLMSession | None:
        """Return a new session for a batch; None if no model is asked."""

    def summarize(self, segments: Sequence[extractive.Segment], session: LLMSession | None) -> Iterable[Summary]: ...


def make_summarizer(dependencies: Dependencies) -> Summarizer:
    if dependencies.summary_model is not None:
        return LLMSummarizer(dependencies, dependencies.summary_model)
    return extractive.ExtractiveSummarizer(dependencies.counter, dependencies.settings)


@dataclass(frozen=True, slots=True)
class SummaryBatch:
    """Messages since the last summary, and the summaries that none of the next level covers, level by level.

    `is_whole`: nothing more comes before the next summary or the session is over, so that the last segment is closed
    too. `reopened` is the first message of a segment that goes on after all: its summaries are made anew.
    """

    work: PendingWork
    to_seq: int
    messages: list[Message]
    waiting: list[Summary]
    is_whole: bool = False
    reopened: Message | None = None


@dataclass(frozen=True, slots=True)
class SummaryResult(DerivedBatch):
    """Summaries to be stored, with their chunks; `before` are the tokens of the messages that were summarized.

    Those from the message `reopened` on are replaced; at `closes_at` the session that is open is over.
    """

    summaries: list[Summary]
    chunks: list[NewChunk]
    before: int
    reopened: Message | None = None


class SummaryDeriver:
    name = "summaries"

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.producer = make_summarizer(dependencies)

    async def load(self, tx: Transaction, work: PendingWork, limit: int) -> SummaryBatch:
        """Return the messages without a summary, up to `limit` new ones, and the summaries that wait."""
        last = await summaries.last(tx, work.conversation_id, 1)
        reach = last.to_seq if last else 0
        if work.done_seq < reach:
            if hole := await summaries.hole(tx, work.conversation_id, work.done_seq):
                # An erasure left it; the levels above close over it by fours.
                first = max(work.done_seq, hole.from_seq - 1)
                to_seq = await find_batch_end(tx, replace(work, done_seq=first, last_seq=hole.to_seq), limit)
                left = await messages.messages(tx, work.conversation_id, from_seq=hole.from_seq, to_seq=to_seq)
                return SummaryBatch(work, to_seq, left, [], is_whole=to_seq == hole.to_seq)
            work = replace(work, done_seq=reach)
        to_seq = await find_batch_end(tx, work, limit)
        new = await messages.messages(tx, work.conversation_id, from_seq=reach + 1, to_seq=to_seq)
        reopened: Message | None = None
        if last and new and new[0].occurred_at - last.occurred_until <= SESSION_GAP:
            joined = await messages.messages(tx, work.conversation_id, from_seq=last.from_seq, to_seq=to_seq)
            if next((part[-1].seq for part in self._split(joined)), None) != last.to_seq:
                new, reopened = joined, joined[0]
        is_whole = to_seq == work.last_seq and await self._is_over(tx, new)
        waiting = await self._waiting(tx, work.conversation_id, reopened.seq if reopened else messages.MAX_SEQ)
        return SummaryBatch(work, to_seq, new, waiting, is_whole, reopened)

    async def _waiting(self, tx: Transaction, conversation: UUID, before: int) -> list[Summary]:
        """Return the summaries that end before a message and are under none of the next level."""
        waiting: list[Summary] = []
        level, below = 1, await summaries.last(tx, conversation, 1, before=before)
        while below:
            above = await summaries.last(tx, conversation, level + 1, before=before)
            seq = above.to_seq if above else 0
            waiting += await summaries.after(tx, conversation, level, seq, before=before)
            level, below = level + 1, above
        return waiting

    async def _is_over(self, tx: Transaction, said: Sequence[Message]) -> bool:
        if not said:
            return False
        return await watermarks.is_session_over(tx, self._closes_at(said[-1]), said[-1].recorded_at)

    def _closes_at(self, last: Message) -> datetime:
        """Return when a session will be over if nobody goes on; for a date ahead the time of storing counts."""
        return min(last.occurred_at, last.recorded_at) + SESSION_GAP

    def _split(self, said: Sequence[Message]) -> Iterator[Sequence[Message]]:
        return split_segments(said, SESSION_GAP, self.dependencies.settings.segment_tokens)

    async def stale_work(self, tx: Transaction, recipe: str) -> list[StaleWork]:
        return [work for work in await watermarks.stale_work(tx, self.name, recipe) if work.recipe != recipe]

    async def reload(
        self, tx: Transaction, work: PendingWork, limit: int, results: Sequence[SummaryResult]
    ) -> SummaryBatch:
        """Return what `load` returns, as if only the summaries of `results` were stored."""
        to_seq = await find_batch_end(tx, work, limit)
        done = [summary for result in results for summary in result.summaries]
        # The last message that a level covers.
        reach = Counter[int]()
        for summary in done:
            reach[summary.level] = max(reach[summary.level], summary.to_seq)
        waiting = [summary for summary in done if summary.from_seq > reach[summary.level + 1]]
        new = await messages.messages(tx, work.conversation_id, from_seq=1 + reach[1], to_seq=to_seq)
        return SummaryBatch(work, to_seq, new, waiting, to_seq == work.last_seq and await self._is_over(tx, new))

    def compute(self, batches: Sequence[SummaryBatch]) -> list[SummaryResult]:
        """Summarize closed segments, then what waits, level by level; all summaries are embedded together."""
        results = [self._summarize(batch) for batch in batches]
        result_of = {summary.id: result for result in results for summary in result.summaries}
        written = [summary for result in results for summary in result.summaries]
        for chunk in embed_summaries(written, self.dependencies):
            result_of[chunk.chunk.item_id].chunks.append(chunk)
        return results

    def _summarize(self, batch: SummaryBatch) -> SummaryResult:
        """Return the summaries of a batch; if a model fails after some, those, up to a message before the rest."""
        closed = list(self._split(batch.messages))
        rest = batch.messages[sum(map(len, closed)) :]
        if batch.is_whole and rest:
            closed.append(rest)
        closes_at = self._closes_at(rest[-1]) if rest and not batch.is_whole else None
        segments = of_messages = [extractive.make_segment(1, part) for part in closed]
        session = self.producer.start_session()
        written: list[Summary] = []
        to_seq, level = batch.to_seq, 1
        try:
            while segments or any(summary.level >= level for summary in batch.waiting):
                for summary in self.producer.summarize(segments, session):
                    # One by one: the next may fail.
                    written.append(summary)
                below = [summary for summary in (*batch.waiting, *written) if summary.level == level]
                segments = extractive.parent_segments(below)
                level += 1
        except Exception:  # what was paid for is saved; the rest is tried again, and what fails then is reported
            if not self.producer.uses_llm or not written:
                raise
            last = max((summary.to_seq for summary in written if summary.level == 1), default=0)
            # Never the end: it is taken up again.
            to_seq = max(batch.work.done_seq, min(last, batch.to_seq - 1))
        # Level 1 comes first.
        before = sum(segment.tokens for segment, _ in zip(of_messages, written, strict=False))
        # Until a session that goes on is over again, the summary that it has stays.
        reopened = batch.reopened if closed else None
        return SummaryResult(to_seq, written, [], before, reopened, llm_session=session, closes_at=closes_at)

    async def save(self, tx: Transaction, result: SummaryResult) -> dict[str, int]:
        if result.reopened:
            place = result.reopened
            await chunks.remove(tx, await summaries.remove(tx, place.conversation_id, from_seq=place.seq))
        added = await summaries.add(tx, result.summaries)
        # With none, another process has just made the one that was asked for.
        if added:
            await chunks.add(tx, result.chunks, self.dependencies.model)
        invalid = 0
        if result.llm_session:
            invalid = len(result.llm_session.invalid_responses)
            await llm_usage.keep(tx, result.llm_session.usage, result.llm_session.invalid_responses)
        after = sum(summary.tokens for summary in result.summaries if summary.level == 1)
        return {"summaries": added, "invalid_responses": invalid, "before": result.before, "after": after}

    async def replace(
        self, tx: Transaction, conversation: UUID, results: Sequence[SummaryResult], recipe: str
    ) -> dict[str, int]:
        await chunks.remove(tx, await summaries.remove(tx, conversation))
        counts: Counter[str] = Counter()
        for result in results:
            counts.update(await self.save(tx, result))
        return dict(counts)


def embed_summaries(written: Sequence[Summary], dependencies: Dependencies) -> list[NewChunk]:
    """Return the chunks of summaries; none of one without words.

    Nor of higher levels: they repeat its lines, and one question would find the same words six times.
    """
    split = partial(split_text, limit=dependencies.max_chunk_tokens, count=dependencies.count_chunk_tokens)
    parts = [
        (summary, index, span, summary.text[slice(*span)])
        for summary in written
        if summary.level <= 1 and summary.text != extractive.EMPTY_SUMMARY
        for index, span in enumerate(split(summary.text))
    ]
    vectors = dependencies.embed([text for *_, text in parts])
    return [
        new_chunk(summary.user_id, chunk_of(summary, index, span), text, vector)
        for (summary, index, span, text), vector in zip(parts, vectors, strict=True)
    ]


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
        # A server is asked for it, and no connection is held.
        recipe = await to_thread(lambda: summarizer.recipe)
        async with database.user_transaction(user, [erasure.VERSION]) as tx:
            erasure_version = tx.result(erasure.VERSION)
            first, last = await _check_range(tx, conversation, from_seq, to_seq)
            stored = await summaries.summary(tx, ids.summary_id(conversation, 0, first, last, recipe))
            if stored is not None:
                return stored
            tx.check_writer()
            covered = await messages.messages(tx, conversation, from_seq=first, to_seq=last)
        if not covered:
            raise InvalidInput(f"There is nothing to summarize: no message from {first} to {last} is there any more.")
        segment = extractive.make_segment(0, covered)
        try:
            return await _summarize(database, dependencies, user, segment, recipe, erasure_version)
        except ConcurrentUpdate:  # something of the user was erased meanwhile, of these messages it may be
            continue


async def _summarize(
    database: Database,
    dependencies: Dependencies,
    user: UUID,
    segment: extractive.Segment,
    recipe: str,
    erasure_version: UserVersion | None,
) -> Summary:
    deriver = SummaryDeriver(dependencies)
    session = deriver.producer.start_session()
    if session is not None and (cap := dependencies.settings.llm_daily_tokens) is not None:
        async with database.admin_transaction() as tx:
            session.meter.left = await llm_usage.tokens_left(tx, cap)
    [summary] = await to_thread(lambda: list(deriver.producer.summarize([segment], session)))
    chunks = await to_thread(embed_summaries, [summary], dependencies)
    async with erasure.transaction_if_unchanged(database, user, erasure_version) as tx:
        if session is not None:
            await llm_usage.drop_answered(tx, make_request(segment, recipe).id)
        await deriver.save(tx, SummaryResult(segment.to_seq, [summary], chunks, 0, llm_session=session))
        return await summaries.summary(tx, summary.id) or summary


async def _check_range(
    tx: Transaction, conversation: UUID, from_seq: int | None, to_seq: int | None
) -> tuple[int, int]:
    row = await messages.conversation(tx, conversation)
    if row is None or not row.last_seq:
        raise InvalidInput("There is nothing to summarize: the conversation has no messages.")
    first, last = 1 if from_seq is None else from_seq, row.last_seq if to_seq is None else to_seq
    if type(first) is not int or type(last) is not int or not 1 <= first <= last <= row.last_seq:
        raise InvalidInput(
            f"from_seq={from_seq!r}, to_seq={to_seq!r}: give numbers of messages in order; "
            f"the conversation has 1 to {row.last_seq}."
        )
    return first, last
