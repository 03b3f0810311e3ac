"""What is remembered, as text: between fences, as a record. Pure.

Every line of what somebody said is indented, or stands behind a dash or a speaker, so that nothing in it can pass for a
fence, a heading, a day or another speaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from memstore.assemble.render.labels import label
from memstore.assemble.strategies.view import Block
from memstore.fences import (
    MEMORY_FOOT,
    MEMORY_HEAD,
    RECORD_FOOT,
    RECORD_HEAD,
    STANDING_FOOT,
    STANDING_HEAD,
    SUMMARIES_FOOT,
    SUMMARIES_HEAD,
    defused,
)
from memstore.models import Hit, Role, Summary, Tier
from memstore.times import day

FACTS_HEAD = "Facts (where two disagree, the later one holds):"
HITS_HEAD = "Said before:"
# One blank is part of the token of the name behind it; a second one would be a token more on each line, of the 37 that
# a line of LoCoMo has by o200k_base.
INDENT = " "


def summaries_text(summaries: Sequence[Summary]) -> str:
    """Give the summaries, the oldest first; nothing for none."""
    lines = [summary_lines(summary) for summary in sorted(summaries, key=lambda one: (one.from_seq, -one.level))]
    return "\n".join([SUMMARIES_HEAD, *lines, SUMMARIES_FOOT]) if lines else ""


def standing_text(facts: Sequence[Hit]) -> str:
    """Give facts that hold whatever is asked, in the order in which they were said; nothing for none."""
    lines = [fact_line(fact) for fact in in_order(facts)]
    return "\n".join([STANDING_HEAD, *lines, STANDING_FOOT]) if lines else ""


def added_text(name: str, texts: Sequence[str]) -> str:
    """Give a section of the user's own under its name; nothing for no texts."""
    return "\n".join([f"<{name}>", *map(added_lines, texts), f"</{name}>"]) if texts else ""


def added_lines(text: str) -> str:
    """Give a text of a user's own section as it stands in the context."""
    return f"{INDENT}{indented(text)}"


def memory_text(facts: Sequence[Hit], hits: Sequence[Hit]) -> str:
    """Give facts and hits; nothing for none."""
    parts = [MEMORY_HEAD]
    if facts:
        parts += [FACTS_HEAD, *(fact_line(fact) for fact in facts)]
    if hits:
        parts += [HITS_HEAD, *hit_lines(hits)]
    return "\n".join([*parts, MEMORY_FOOT]) if facts or hits else ""


def record_text(blocks: Sequence[Block]) -> str:
    """Give blocks that stand side by side; nothing for none."""
    return "\n".join([RECORD_HEAD, *map(record_lines, blocks), RECORD_FOOT]) if blocks else ""


def record_lines(block: Block) -> str:
    """Give a block as it stands in the context: whoever speaks in it stands in one column."""
    return level(block.text)


def fact_line(fact: Hit) -> str:
    """Give a fact with the day on which it was said, and the last one on which it holds, if it does not say that."""
    last = last_day(fact)
    until = f", until {last}" if last and last not in fact.text else ""
    return f"- {indented(fact.text)} ({day(fact.occurred_at)}{until})"


def last_day(fact: Hit) -> str | None:
    """Give the last day on which a fact holds; None for one that nobody has said to end."""
    return None if fact.valid_to is None else day(fact.valid_to - timedelta(microseconds=1))


def hit_lines(hits: Iterable[Hit]) -> list[str]:
    """Give hits in the order in which they were said, each day once, each with its speaker."""
    lines: list[str] = []
    current = None
    for hit in in_order(hits):
        today = day(hit.occurred_at)
        if today != current:
            lines.append(f"[{today}]")
            current = today
        lines.append(hit_line(hit))
    return lines


def in_order(hits: Iterable[Hit]) -> list[Hit]:
    """Give hits in the order in which they were said."""
    return sorted(hits, key=_when)


def _when(hit: Hit) -> tuple[datetime, UUID, int, str]:
    return hit.occurred_at, hit.conversation_id or UUID(int=0), hit.seq or 0, str(hit.id)


def hit_line(hit: Hit) -> str:
    """Give a hit with its speaker."""
    return f"{INDENT}{_who(hit)}: {indented(hit.text)}"


def _who(hit: Hit) -> str:
    """Give who said a hit: anybody by name, where that is not the name of a role."""
    if hit.tier == Tier.SUMMARIES or not hit.speaker:
        return "summary" if hit.tier == Tier.SUMMARIES else "?"
    role = hit.role or Role.USER
    if hit.speaker == role:
        return role
    named = label(Role.USER, hit.speaker)
    return label(role, hit.speaker) if '"' in named else named


def summary_lines(summary: Summary) -> str:
    """Give a summary as it stands in the context, its days and speakers in one column."""
    return level(summary.text)


def level(text: str) -> str:
    """Give a text of several lines, each of which says whose it is, with all of them indented alike."""
    return INDENT + f"\n{INDENT}".join(defused(text).strip().splitlines())


def indented(text: str) -> str:
    """Give a text whose further lines begin with blanks, and in which nothing is a token of a chat template.

    Empty ones stay empty: blanks in them would be 1.3 % of the tokens of what assistants write.
    """
    first, *others = defused(text).strip().splitlines() or [""]
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in others)])
