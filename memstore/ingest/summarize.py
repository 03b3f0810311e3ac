"""The summarize deriver: extractive summaries of stretches (level 1), and of four of any level at a time (the next).

Where a stretch ends follows from the messages alone, and which summaries stand under one from their numbers, so the
same history gives the same nest however it was cut into batches. The stretch that is still going on waits, and so do
summaries that are not yet four. A nest is one partition of a conversation whatever recipe made its parts: another
recipe goes on where the last one ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from memstore import ids
from memstore.ingest.abridge import abridged
from memstore.ingest.chunks import chunks
from memstore.ingest.embed import batch_end
from memstore.ingest.lines import OURS, Line, lines_of, lines_of_summaries
from memstore.ingest.stretches import stretches
from memstore.ingest.tools import Tools
from memstore.models import Message, Summary, Tier, Unit
from memstore.store import items, messages, summaries
from memstore.store.database import Transaction
from memstore.store.derivations import Pending
from memstore.store.items import NewUnit, new_unit

RECIPE = f"{OURS}2"
# How many summaries stand under one of the next level, and how many times the tokens of one of them it has. Few under
# one leave few that wait for others of their level, so that a small budget covers a whole conversation; what a larger
# one then keeps hardly differs (docs/reference/summaries.md, "How the nest grows").
GROUP = 4
GROWTH = 1.25
# Levels above this are no units of recall: they repeat its lines, and one question would find the same words six times.
RECALLED = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages since the last summary; for each level from 1 on, the summaries that none of the next level covers."""

    work: Pending
    to_seq: int
    messages: list[Message]
    waiting: list[list[Summary]]


@dataclass(frozen=True, slots=True)
class Range:
    """What is to be summarized: messages of a conversation, as lines, and when they were said."""

    user_id: UUID
    conversation_id: UUID
    level: int
    from_seq: int
    to_seq: int
    span: tuple[datetime, datetime]
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Made:
    """Summaries to be stored, with their units."""

    summaries: list[Summary]
    units: list[NewUnit]


class Summarize:
    """Makes summaries of stretches, and of summaries."""

    name = "summarize"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    async def read(self, scope: Transaction, work: Pending, limit: int) -> Batch:
        """Give the messages that are not summarized, up to `limit` new ones, and the summaries that wait."""
        to_seq = await batch_end(scope, work, limit)
        waiting: list[list[Summary]] = []
        below = reach = await summaries.covered(scope, work.conversation_id, 1)
        while below:
            above = await summaries.covered(scope, work.conversation_id, len(waiting) + 2)
            waiting.append(await summaries.after(scope, work.conversation_id, len(waiting) + 1, above))
            below = above
        found = await messages.messages(scope, work.conversation_id, from_seq=reach + 1, to_seq=to_seq)
        return Batch(work, to_seq, found, waiting)

    def think(self, batches: Sequence[Batch]) -> list[Made]:
        """Summarize closed stretches, then what waits, level by level, those of all conversations together."""
        made: list[list[Summary]] = [[] for _ in batches]
        ranges = [self._closed(batch) for batch in batches]
        level = 1
        deepest = max((len(batch.waiting) for batch in batches), default=0)
        while any(ranges) or level <= deepest:
            new = iter(summarized([one for found in ranges for one in found], size(level, self.tools), self.tools))
            for number, (batch, found) in enumerate(zip(batches, ranges, strict=True)):
                fresh = [next(new) for _ in found]
                made[number] += fresh
                ranges[number] = groups([*(batch.waiting[level - 1 : level] or [[]])[0], *fresh])
            level += 1
        recalled = [[summary for summary in found if summary.level <= RECALLED] for found in made]
        units = iter(units_of([summary for found in recalled for summary in found], self.tools))
        return [
            Made(found, [unit for _ in some for unit in next(units)])
            for found, some in zip(made, recalled, strict=True)
        ]

    async def write(self, scope: Transaction, made: Made) -> dict[str, int]:
        """Store summaries and their units."""
        added = await summaries.add(scope, made.summaries)
        model = await items.bind_embedder(scope, self.tools.embedder)
        await items.add(scope, made.units, model)
        return {"summaries": added}

    def _closed(self, batch: Batch) -> list[Range]:
        settings = self.tools.settings
        gap = timedelta(hours=settings.stretch_gap_hours)
        return [
            range_of(1, stretch, lines_of(stretch))
            for stretch in stretches(batch.messages, gap, settings.stretch_tokens)
        ]


def range_of(level: int, found: Sequence[Message], lines: Sequence[Line]) -> Range:
    """Give messages that follow each other as a range to be summarized."""
    times = [message.occurred_at for message in found]
    span = min(times), max(times)
    return Range(found[0].user_id, found[0].conversation_id, level, found[0].seq, found[-1].seq, span, lines)


def groups(waiting: Sequence[Summary]) -> list[Range]:
    """Give each full group of summaries of one level as a range of the next."""
    found = [waiting[at : at + GROUP] for at in range(0, len(waiting) - GROUP + 1, GROUP)]
    return [
        Range(
            user_id=group[0].user_id,
            conversation_id=group[0].conversation_id,
            level=group[0].level + 1,
            from_seq=group[0].from_seq,
            to_seq=group[-1].to_seq,
            span=(min(one.occurred_at for one in group), max(one.occurred_until for one in group)),
            lines=lines_of_summaries(group),
        )
        for group in found
    ]


def size(level: int, tools: Tools) -> int:
    """Give how many tokens a summary of a level may have."""
    return int(tools.settings.summary_tokens * GROWTH ** (level - 1))


def summarized(ranges: Sequence[Range], tokens: int, tools: Tools) -> list[Summary]:
    """Give a summary of at most `tokens` tokens for each range."""
    texts = abridged([one.lines for one in ranges], tokens, tools)
    return [
        Summary.model_construct(
            user_id=one.user_id,
            id=ids.summary_id(one.conversation_id, one.level, one.from_seq, one.to_seq, RECIPE),
            conversation_id=one.conversation_id,
            level=one.level,
            from_seq=one.from_seq,
            to_seq=one.to_seq,
            text=text,
            tokens=tools.counter.count(text),
            counter=tools.counter.name,
            recipe=RECIPE,
            occurred_at=one.span[0],
            occurred_until=one.span[1],
        )
        for one, text in zip(ranges, texts, strict=True)
    ]


def units_of(made: Sequence[Summary], tools: Tools) -> list[list[NewUnit]]:
    """Give the units of recall of each summary."""
    cut = [
        (number, summary, chunk, span)
        for number, summary in enumerate(made)
        for chunk, span in enumerate(chunks(summary.text, tools.unit_limit, tools.unit_count))
    ]
    texts = [summary.text[slice(*span)] for _, summary, _, span in cut]
    found: list[list[NewUnit]] = [[] for _ in made]
    for (number, summary, chunk, span), text, vector in zip(cut, texts, tools.embed(texts), strict=True):
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
