"""The parts of a nest: ranges to be summarized, and how long their summaries are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from memstore import ids
from memstore.derive.resources import Resources
from memstore.derive.summaries.lines import Line, lines_of, lines_of_summaries
from memstore.models import Message, Summary

# How many summaries stand under one of the next level, and how many times the tokens of one of them it has. Few under
# one leave few that wait for others of their level, so that a small budget covers a whole conversation; what a larger
# one then keeps hardly differs (docs/reference/summaries.md, "How the nest grows").
GROUP = 4
GROWTH = 1.25


@dataclass(frozen=True)
class Range:
    """What is to be summarized: messages that follow each other, or summaries, and when they were said.

    Of a range that is too long to be held in memory only `telling` lines are left.
    """

    user_id: UUID
    conversation_id: UUID
    level: int
    from_seq: int
    to_seq: int
    span: tuple[datetime, datetime]
    tokens: int
    messages: Sequence[Message] = ()
    below: Sequence[Summary] = ()
    telling: Sequence[Line] = ()

    @cached_property
    def lines(self) -> Sequence[Line]:
        """The lines that may go into a summary."""
        return self.telling or (lines_of_summaries(self.below) if self.below else lines_of(self.messages))

    def summary(self, text: str, recipe: str, resources: Resources) -> Summary:
        """Give the text as the summary of this range."""
        return Summary.model_construct(
            user_id=self.user_id,
            id=ids.summary_id(self.conversation_id, self.level, self.from_seq, self.to_seq, recipe),
            conversation_id=self.conversation_id,
            level=self.level,
            from_seq=self.from_seq,
            to_seq=self.to_seq,
            text=text,
            tokens=resources.counter.count(text),
            counter=resources.counter.name,
            recipe=recipe,
            occurred_at=self.span[0],
            occurred_until=self.span[1],
        )


def range_of(level: int, found: Sequence[Message]) -> Range:
    """Give messages that follow each other as a range to be summarized."""
    times = [message.occurred_at for message in found]
    first, tokens = found[0], sum(message.tokens for message in found)
    span = min(times), max(times)
    return Range(first.user_id, first.conversation_id, level, first.seq, found[-1].seq, span, tokens, messages=found)


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
            tokens=sum(one.tokens for one in group),
            below=group,
        )
        for group in found
    ]


def size(level: int, resources: Resources) -> int:
    """Give how many tokens a summary of a level may have."""
    return int(resources.settings.summary_tokens * GROWTH ** (level - 1))
