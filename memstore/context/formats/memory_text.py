"""What is remembered, as text between fences, each line with its day or its speaker. Pure.

Every line of what somebody said is indented, or stands behind a dash or a speaker, so that nothing in it can pass for a
fence, a heading, a day or another speaker. A name cannot pass for a role, nor for more than a name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from memstore.context.strategies.base import Block
from memstore.models import Hit, Role, Summary, Tier
from memstore.text import (
    MEMORY_FOOT,
    MEMORY_HEAD,
    RECORD_FOOT,
    RECORD_HEAD,
    STANDING_FOOT,
    STANDING_HEAD,
    SUMMARIES_FOOT,
    SUMMARIES_HEAD,
    escape_control_tokens,
    format_day,
)

FACTS_HEAD = "Facts (where two disagree, the later one holds):"
HITS_HEAD = "Said before:"
# One blank is part of the token of the name behind it; a second one would be a token more on each line.
INDENT = " "

_ROLES = frozenset({*map(str, Role), "human", "summary", "record", "function"})
_COLONS = re.compile("[:\u02d0\u2236\ua789\ufe13\ufe55\uff1a]")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_WORDS = re.compile(r"[^\W\d_]+")
_QUOTES = re.compile('["\u201c-\u201f\u00ab\u00bb\uff02]')


def clean_name(name: object) -> str:
    """Return a name on one line, without colons or invisible characters; it may become empty."""
    if isinstance(name, str) and name.isascii() and name.isprintable() and ":" not in name:
        return escape_control_tokens(" ".join(name.split()))
    seen = "".join(
        " " if one.isspace() or unicodedata.category(one) in _INVISIBLE - {"Cf"} else one for one in str(name)
    )
    seen = "".join(one for one in seen if unicodedata.category(one) != "Cf")
    return escape_control_tokens(" ".join(_COLONS.sub(" ", seen).split()))


def speaker_label(role: str, name: object = None) -> str:
    """Return the label before what somebody said: a user's name, else the role with the name.

    A name that could pass for a role stands in quotation marks behind the true role: `user "assistant bob"`.
    """
    cleaned = clean_name(name or "")
    if not cleaned:
        return str(role)
    words = _WORDS.findall(unicodedata.normalize("NFKC", cleaned).casefold())
    if {*words[:1]} & _ROLES or "calls" in words or _QUOTES.search(cleaned):
        return f'{role} "{_QUOTES.sub(chr(39), cleaned)}"'
    return cleaned if role == Role.USER else f"{role} {cleaned}"


def summaries_text(summaries: Sequence[Summary]) -> str:
    """Return the summaries, the oldest first; "" for none."""
    lines = [summary_lines(summary) for summary in sorted(summaries, key=lambda one: (one.from_seq, -one.level))]
    return "\n".join([SUMMARIES_HEAD, *lines, SUMMARIES_FOOT]) if lines else ""


def pinned_facts_text(facts: Sequence[Hit]) -> str:
    """Return facts that hold whatever is asked, the oldest first; "" for none."""
    lines = [fact_line(fact) for fact in sorted(facts, key=_order)]
    return "\n".join([STANDING_HEAD, *lines, STANDING_FOOT]) if lines else ""


def section_text(name: str, texts: Sequence[str]) -> str:
    """Return a section of the user's own under its name; "" for no texts."""
    return "\n".join([f"<{name}>", *map(section_lines, texts), f"</{name}>"]) if texts else ""


def section_lines(text: str) -> str:
    """Return a text of a user's own section as it stands in the context."""
    return f"{INDENT}{indent_further_lines(text)}"


def memory_text(facts: Sequence[Hit], hits: Sequence[Hit]) -> str:
    """Return facts and hits for the question; "" for none."""
    lines = [MEMORY_HEAD]
    if facts:
        lines += [FACTS_HEAD, *(fact_line(fact) for fact in facts)]
    if hits:
        lines += [HITS_HEAD, *_hit_lines(hits)]
    return "\n".join([*lines, MEMORY_FOOT]) if facts or hits else ""


def record_text(blocks: Sequence[Block]) -> str:
    """Return adjacent blocks, which strategies wrote, as one record; "" for none."""
    return "\n".join([RECORD_HEAD, *map(record_lines, blocks), RECORD_FOOT]) if blocks else ""


def record_lines(block: Block) -> str:
    """Return a block as it stands in the context."""
    return _indent_every_line(block.text)


def summary_lines(summary: Summary) -> str:
    """Return a summary as it stands in the context."""
    return _indent_every_line(summary.text)


def fact_line(fact: Hit) -> str:
    """Return a fact with the day on which it was said, and its last day if its text does not name that."""
    last_day = None if fact.valid_to is None else format_day(fact.valid_to - timedelta(microseconds=1))
    until = f", until {last_day}" if last_day and last_day not in fact.text else ""
    return f"- {indent_further_lines(fact.text)} ({format_day(fact.occurred_at)}{until})"


def hit_line(hit: Hit) -> str:
    """Return a hit behind its speaker."""
    return f"{INDENT}{_speaker(hit)}: {indent_further_lines(hit.text)}"


def _hit_lines(hits: Iterable[Hit]) -> list[str]:
    """Return hits, the oldest first, under a line for each day."""
    lines: list[str] = []
    last_day = None
    for hit in sorted(hits, key=_order):
        if (today := format_day(hit.occurred_at)) != last_day:
            lines.append(f"[{today}]")
            last_day = today
        lines.append(hit_line(hit))
    return lines


def _order(hit: Hit) -> tuple[datetime, UUID, int, str]:
    return hit.occurred_at, hit.conversation_id or UUID(int=0), hit.seq or 0, str(hit.id)


def _speaker(hit: Hit) -> str:
    """Return who said a hit: anybody by name, where that cannot pass for a role."""
    if hit.tier == Tier.SUMMARIES or not hit.speaker:
        return "summary" if hit.tier == Tier.SUMMARIES else "?"
    role = hit.role or Role.USER
    if hit.speaker == role:
        return role
    label = speaker_label(Role.USER, hit.speaker)
    return speaker_label(role, hit.speaker) if '"' in label else label


def _indent_every_line(text: str) -> str:
    """Return a text whose lines each say whose they are, all indented alike."""
    return INDENT + f"\n{INDENT}".join(escape_control_tokens(text).strip().splitlines())


def indent_further_lines(text: str) -> str:
    """Return a text whose lines after the first are indented, without control tokens of chat templates.

    Empty lines stay empty: blanks in them would cost tokens.
    """
    first, *others = escape_control_tokens(text).strip().splitlines() or [""]
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in others)])
