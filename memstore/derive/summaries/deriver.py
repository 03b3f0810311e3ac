"""The summarize deriver: extractive summaries of stretches (level 1), and of four of any level at a time (the next).

Where a stretch ends follows from the messages alone, and which summaries stand under one from their numbers, so the
same history gives the same nest however it was cut into batches. The stretch that is still going on waits, and so do
summaries that are not yet four. A nest is one partition of a conversation whatever recipe made its parts: another
recipe goes on where the last one ended. Where an erasure has taken summaries out of its middle, the watermark is back
before the hole: what is left of those messages is summarized again, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from uuid import UUID

from memstore.derive.asked import Asked
from memstore.derive.chunks import chunks
from memstore.derive.embed import batch_end
from memstore.derive.resources import Resources
from memstore.derive.stretches import stretches
from memstore.derive.summaries.lines import NOTHING
from memstore.derive.summaries.nest import Range, groups, range_of, size
from memstore.derive.summaries.summarizer import summarizer_of
from memstore.models import Message, Summary, Tier, Unit
from memstore.store import embedders, items, messages, model_calls, summaries
from memstore.store.database import Transaction
from memstore.store.items import NewUnit, new_unit
from memstore.store.summaries import Hole
from memstore.store.watermarks import Pending

# Levels above this are no units of recall: they repeat its lines, and one question would find the same words six times.
RECALLED = 1


@dataclass(frozen=True, slots=True)
class SummaryBatch:
    """Messages since the last summary; for each level from 1 on, the summaries that none of the next level covers.

    `whole`: nothing more comes before the next summary, so that the last stretch is closed too.
    """

    work: Pending
    to_seq: int
    messages: list[Message]
    waiting: list[list[Summary]]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class MadeSummaries:
    """Summaries to be stored, with their units, and where a model was asked for them, what that cost.

    `before` are the tokens of the messages that were summarized.
    """

    to_seq: int
    summaries: list[Summary]
    units: list[NewUnit]
    before: int
    asked: Asked | None = None


class Summarize:
    """Makes summaries of stretches, and of summaries."""

    name = "summarize"

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.method = summarizer_of(resources)

    def by(self, resources: Resources) -> Summarize:
        """Give the same with other resources."""
        return Summarize(resources)

    async def read(self, scope: Transaction, work: Pending, limit: int) -> SummaryBatch:
        """Give the messages that are not summarized, up to `limit` new ones, and the summaries that wait."""
        below = reach = await summaries.covered(scope, work.conversation_id, 1)
        if work.done_seq < reach:
            if hole := await summaries.hole(scope, work.conversation_id, work.done_seq):
                return await self._mend(scope, work, limit, hole)
            work = replace(work, done_seq=reach)
        to_seq = await batch_end(scope, work, limit)
        waiting: list[list[Summary]] = []
        while below:
            above = await summaries.covered(scope, work.conversation_id, len(waiting) + 2)
            waiting.append(await summaries.after(scope, work.conversation_id, len(waiting) + 1, above))
            below = above
        found = await messages.messages(scope, work.conversation_id, from_seq=reach + 1, to_seq=to_seq)
        return SummaryBatch(work, to_seq, found, waiting)

    async def _mend(self, scope: Transaction, work: Pending, limit: int, hole: Hole) -> SummaryBatch:
        """Give the messages of a hole that an erasure has left in the nest. The levels above close over it by fours."""
        inside = replace(work, done_seq=max(work.done_seq, hole.from_seq - 1), last_seq=hole.to_seq)
        to_seq = await batch_end(scope, inside, limit)
        found = await messages.messages(scope, work.conversation_id, from_seq=hole.from_seq, to_seq=to_seq)
        return SummaryBatch(work, to_seq, found, [], whole=to_seq == hole.to_seq)

    async def reread(
        self, scope: Transaction, work: Pending, limit: int, made: Sequence[MadeSummaries]
    ) -> SummaryBatch:
        """Give the messages that no summary in `made` covers, up to `limit` new ones, and the summaries that wait."""
        to_seq = await batch_end(scope, work, limit)
        done = [one for some in made for one in some.summaries]
        deepest = max((one.level for one in done), default=0)
        reach = [max((one.to_seq for one in done if one.level == level), default=0) for level in range(1, deepest + 2)]
        waiting = [
            [one for one in done if one.level == level and one.from_seq > reach[level]]
            for level in range(1, deepest + 1)
        ]
        begin = 1 + (reach[0] if reach else 0)
        found = await messages.messages(scope, work.conversation_id, from_seq=begin, to_seq=to_seq)
        return SummaryBatch(work, to_seq, found, waiting)

    async def rewrite(
        self, scope: Transaction, conversation: UUID, made: Sequence[MadeSummaries], recipe: str
    ) -> dict[str, int]:
        """Put these summaries in the place of all that the conversation had, but those that were asked for."""
        letters = [letter for one in made if one.asked for letter in one.asked.letters]
        await model_calls.remove_letters(scope, conversation, self.name, but=letters)
        await items.remove(scope, await summaries.remove(scope, conversation))
        counts: Counter[str] = Counter()
        for one in made:
            counts.update(await self.write(scope, one))
        return dict(counts)

    def think(self, batches: Sequence[SummaryBatch]) -> list[MadeSummaries]:
        """Summarize closed stretches, then what waits, level by level, those of all conversations together.

        Where a model goes away in between, what it wrote is given, and the watermark is to stop before the rest.
        """
        asked = [self.method.asked() for _ in batches]
        closed = [self._closed(batch) for batch in batches]
        made, whole = self._nests(batches, closed, asked)
        recalled = [[summary for summary in found if summary.level <= RECALLED] for found in made]
        units = iter(units_of([summary for found in recalled for summary in found], self.resources))
        return [
            MadeSummaries(
                to_seq=batch.to_seq if whole else _reached(batch, found),
                summaries=found,
                units=[unit for _ in shown for unit in next(units)],
                before=sum(one.tokens for one, _ in zip(ranges, found, strict=False)),  # level 1 comes first
                asked=account,
            )
            for batch, found, shown, ranges, account in zip(batches, made, recalled, closed, asked, strict=True)
        ]

    def _nests(
        self, batches: Sequence[SummaryBatch], closed: Sequence[list[Range]], asked: Sequence[Asked | None]
    ) -> tuple[list[list[Summary]], bool]:
        """Give what is written for each batch, level by level, and whether that is all that there is to write."""
        made: list[list[Summary]] = [[] for _ in batches]
        ranges = list(closed)
        level = 1
        deepest = max((len(batch.waiting) for batch in batches), default=0)
        while any(ranges) or level <= deepest:
            together = [(one, account) for found, account in zip(ranges, asked, strict=True) for one in found]
            written = self._written(together, level, paid=any(made))
            new = iter(written)
            for number, (batch, found) in enumerate(zip(batches, ranges, strict=True)):
                fresh = list(islice(new, len(found)))
                made[number] += fresh
                ranges[number] = groups([*(batch.waiting[level - 1 : level] or [[]])[0], *fresh])
            if len(written) < len(together):
                return made, False
            level += 1
        return made, True

    def _written(self, ranges: Sequence[tuple[Range, Asked | None]], level: int, *, paid: bool) -> list[Summary]:
        """Give the summaries of a level; fewer where a model goes away and something was `paid` for before."""
        try:
            return self.method.summarize(
                [one for one, _ in ranges], size(level, self.resources), [account for _, account in ranges]
            )
        except Exception:  # what was paid for is stored; the level is tried again, and what fails then is told
            if self.method.asks and paid:
                return []
            raise

    async def write(self, scope: Transaction, made: MadeSummaries) -> dict[str, int]:
        """Store summaries and their units."""
        model = await embedders.bind(scope, self.resources.embedder)
        added = await summaries.add(scope, made.summaries)
        await items.add(scope, made.units, model)
        letters = made.asked.letters if made.asked else []
        if made.asked:
            await model_calls.keep(scope, made.asked.cost, letters)
        after = sum(one.tokens for one in made.summaries if one.level == 1)
        return {"summaries": added, "letters": len(letters), "before": made.before, "after": after}

    def _closed(self, batch: SummaryBatch) -> list[Range]:
        settings = self.resources.settings
        gap = timedelta(hours=settings.session_gap_hours)
        found = list(stretches(batch.messages, gap, settings.segment_tokens))
        rest = batch.messages[sum(map(len, found)) :]
        return [range_of(1, stretch) for stretch in (*found, *([rest] if batch.whole and rest else []))]


def _reached(batch: SummaryBatch, made: Sequence[Summary]) -> int:
    """Give how far a batch was summarized whose model went away: never to its end, so that it is taken up again."""
    last = max((one.to_seq for one in made if one.level == 1), default=0)
    return max(batch.work.done_seq, min(last, batch.to_seq - 1))


def units_of(made: Sequence[Summary], resources: Resources) -> list[list[NewUnit]]:
    """Give the units of recall of each summary; none of one without words."""
    cut = [
        (number, summary, chunk, span)
        for number, summary in enumerate(made)
        if summary.text != NOTHING
        for chunk, span in enumerate(chunks(summary.text, resources.unit_limit, resources.unit_count))
    ]
    texts = [summary.text[slice(*span)] for _, summary, _, span in cut]
    found: list[list[NewUnit]] = [[] for _ in made]
    for (number, summary, chunk, span), text, vector in zip(cut, texts, resources.embed(texts), strict=True):
        found[number].append(new_unit(summary.user_id, _unit(summary, chunk, span), text, vector))
    return found


def _unit(summary: Summary, number: int, span: tuple[int, int]) -> Unit:
    return Unit(
        item_id=summary.id,
        chunk=number,
        tier=Tier.SUMMARIES,
        conversation_id=summary.conversation_id,
        seq=summary.to_seq,
        role=None,
        speaker=None,
        start=span[0],
        stop=span[1],
        occurred_at=summary.occurred_until,
    )
