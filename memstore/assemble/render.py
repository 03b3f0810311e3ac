"""Rendering: the chosen pieces as chat messages, in an order that keeps a model's cached prefix good. Pure.

    system prompt · summaries of this conversation · recent turns │ facts and hits for this question · the question

What stands before the bar follows from what is stored. What is remembered is fenced as a record: its lines are
indented, so that nothing in it can pass for the fence or for a heading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from memstore.assemble.strategies.view import Block, Entry
from memstore.fences import MEMORY_FOOT, MEMORY_HEAD, RECORD_FOOT, RECORD_HEAD, SUMMARIES_FOOT, SUMMARIES_HEAD
from memstore.models import Hit, Json, Summary, Tier
from memstore.times import day

FACTS_HEAD = "Facts (where two disagree, the later one holds):"
HITS_HEAD = "Said before:"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What goes into a context, in the order in which it was chosen."""

    system: str | None = None
    summaries: Sequence[Summary] = ()
    turns: Sequence[Entry] = ()
    facts: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    question: Json | None = None
    question_seq: int | None = None


def render(chosen: Chosen) -> list[Json]:
    """Give the context as chat messages in OpenAI's format, which Ollama takes too."""
    middle = remembered(chosen.facts, chosen.hits)
    question = [chosen.question] if chosen.question else []
    after = [turn for turn in chosen.turns if not _before(turn, chosen)]
    return [*before_question(chosen), *middle, *question, *spoken(after)]


def before_question(chosen: Chosen) -> list[Json]:
    """Give the messages that follow from what is stored."""
    system = [{"role": "system", "content": chosen.system}] if chosen.system is not None else []
    before = [turn for turn in chosen.turns if _before(turn, chosen)]
    return [*system, *summarized(chosen.summaries), *spoken(before)]


def spoken(turns: Iterable[Entry]) -> list[Json]:
    """Give the messages of turns, in the order of the conversation; blocks side by side are one system message."""
    ordered = sorted(turns, key=lambda turn: turn.first_seq)
    messages: list[Json] = []
    for told, group in groupby(ordered, key=lambda entry: isinstance(entry, Block)):
        if told:
            lines = [record_lines(entry) for entry in group if isinstance(entry, Block)]
            messages.append({"role": "system", "content": "\n".join([RECORD_HEAD, *lines, RECORD_FOOT])})
        else:
            messages += [message.as_chat() for entry in group for message in entry.messages]
    return messages


def record_lines(block: Block) -> str:
    """Give a block as it stands in the context."""
    return f"  {indented(block.text)}"


def _before(turn: Entry, chosen: Chosen) -> bool:
    return chosen.question_seq is None or turn.first_seq < chosen.question_seq


def summarized(summaries: Sequence[Summary]) -> list[Json]:
    """Give the summaries as one system message, the oldest first; none for none."""
    if not summaries:
        return []
    lines = [summary_lines(summary) for summary in sorted(summaries, key=lambda one: (one.from_seq, -one.level))]
    return [{"role": "system", "content": "\n".join([SUMMARIES_HEAD, *lines, SUMMARIES_FOOT])}]


def remembered(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Json]:
    """Give facts and hits as one system message; none for none."""
    parts = [MEMORY_HEAD]
    if facts:
        parts += [FACTS_HEAD, *(fact_line(fact) for fact in facts)]
    if hits:
        parts += [HITS_HEAD, *hit_lines(hits)]
    return [{"role": "system", "content": "\n".join([*parts, MEMORY_FOOT])}] if facts or hits else []


def fact_line(fact: Hit) -> str:
    """Give a fact with the day on which it was said."""
    return f"- {indented(fact.text)} ({day(fact.occurred_at)})"


def hit_lines(hits: Iterable[Hit]) -> list[str]:
    """Give hits in the order in which they were said, each day once, each with its speaker."""
    lines: list[str] = []
    current = None
    for hit in sorted(hits, key=_when):
        today = day(hit.occurred_at)
        if today != current:
            lines.append(f"[{today}]")
            current = today
        lines.append(hit_line(hit))
    return lines


def _when(hit: Hit) -> tuple[datetime, UUID, int, str]:
    return hit.occurred_at, hit.conversation_id or UUID(int=0), hit.seq or 0, str(hit.id)


def hit_line(hit: Hit) -> str:
    """Give a hit with its speaker."""
    who = "summary" if hit.tier == Tier.SUMMARIES else hit.speaker or "?"
    return f"  {' '.join(who.split())}: {indented(hit.text)}"


def summary_lines(summary: Summary) -> str:
    """Give a summary as it stands in the context."""
    return f"  {indented(summary.text)}"


def indented(text: str) -> str:
    """Give a text whose every further line begins with blanks."""
    return "\n    ".join(text.strip().splitlines())
