"""The lines of summaries: sentences with the day on which, and by whom, they were said, and what tools did. Pure.

A summary is written so that it can be read back as lines, from which the level above chooses again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from memstore.derive.calls import came_of, named_by, tell
from memstore.derive.chunks import chunks
from memstore.derive.outcome import Sought, names
from memstore.derive.sentences import sentences
from memstore.derive.stretches import SPOKEN
from memstore.models import Message, Role, Summary
from memstore.store.terms import terms
from memstore.text import format_day

LONGEST_SENTENCE = 80  # tokens; a longer one is a list or a listing, and would fill a summary alone
GOES_ON = "  "  # before a further line of the same speaker
OURS = "extractive/"  # what the recipes begin with whose summaries are written as lines
NOTHING = "(Nothing that could be summarized in words.)"  # a row without words: no unit, no line of a context
TOOL = "Tool"  # who tells of calls
OUTCOME, OUTCOMES = 30, 90  # tokens, about, for what came of a call, at least; of all calls and words where few spoke
LONGEST_INPUT = 60  # characters

_PIECE = re.compile(r"\S.*?(?:;(?= )|$)")  # of an outcome


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence that may go into a summary: when and by whom it was said."""

    day: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}"


def lines_of(stretch: Sequence[Message]) -> list[Line]:
    """Give the sentences that people spoke in a stretch, as they said them, and its calls."""
    said = sum(_tokens(message.text) for message in stretch if message.role in SPOKEN and message.text)
    called = sum(len(message.tool_calls or ()) for message in stretch)
    limit = max(OUTCOME, (OUTCOMES - said) // max(1, called))
    sought = _sought(stretch)
    lines: list[Line] = []
    for place, message in enumerate(stretch):
        if message.role in SPOKEN and message.text:
            lines += _spoken(message)
        if message.tool_calls or message.role == Role.TOOL:
            lines += _called(stretch, place, sought, limit)
    return lines


def _spoken(message: Message) -> Iterator[Line]:
    for text in _sentences(message.text or ""):
        yield Line(format_day(message.occurred_at), _speaker(message), " ".join(text.split()))


def _called(stretch: Sequence[Message], place: int, sought: Sought, limit: int) -> Iterator[Line]:
    """Give the lines of the calls of a message with their results; of a result, where its call is not before it."""
    message = stretch[place]
    if message.role == Role.TOOL:
        answers = place and (stretch[place - 1].role == Role.TOOL or stretch[place - 1].tool_calls)
        told = [] if answers or not message.text else [f"{came_of(message, sought, limit, _tokens)}."]
    else:
        results = takewhile(lambda one: one.role == Role.TOOL, stretch[place + 1 :])
        told = list(tell(message, list(results), sought, limit, _tokens, longest=LONGEST_INPUT))
    for one in told:
        name = one.partition("(")[0] if message.tool_calls else "it"
        for start, stop in chunks(one, LONGEST_SENTENCE, _tokens, 0, _pieces):
            goes_on = f"{name} also gave: " if start else ""
            yield Line(format_day(message.occurred_at), TOOL, goes_on + " ".join(one[start:stop].split()))


def _sought(stretch: Sequence[Message]) -> Sought:
    """Give what is looked for in results: words of what was asked, names of what was said or given to tools."""
    said = [message.text for message in stretch if message.role in SPOKEN and message.text]
    given = [named_by(message) for message in stretch if message.tool_calls]
    asked = [message.text for message in stretch if message.role == Role.USER and message.text]
    return Sought(frozenset(terms(" ".join([*asked, *given]))), names(" ".join([*said, *given])))


def _pieces(text: str, longest: int) -> list[tuple[int, int]]:
    return [found.span() for found in _PIECE.finditer(text)]


def _tokens(text: str) -> int:
    """Give about the tokens of what tools are given and give."""
    return 1 + len(text) // 3


def _speaker(message: Message) -> str:
    return " ".join((message.name or message.role.capitalize()).split()) or "?"


def _sentences(text: str) -> Iterator[str]:
    for start, stop in sentences(text):
        for begin, end in chunks(
            text[start:stop], LONGEST_SENTENCE, lambda piece: len(piece.split()) + len(piece) // 8
        ):
            yield text[start + begin : start + end]


def lines_of_summaries(group: Sequence[Summary]) -> list[Line]:
    """Give the lines of summaries: as `written` wrote them, or the sentences of what a model wrote."""
    return [
        line for one in group for line in (_lines_read(one) if one.recipe.startswith(OURS) else _lines_of_prose(one))
    ]


def _lines_read(summary: Summary) -> Iterator[Line]:
    current, speaker = format_day(summary.occurred_at), "?"
    for line in summary.text.splitlines():
        said_by, colon, text = line.partition(": ")
        if line.startswith(GOES_ON):
            yield Line(current, speaker, line.removeprefix(GOES_ON))
        elif colon:
            speaker = said_by
            yield Line(current, speaker, text)
        elif line.endswith(":"):
            current = line[:-1]


def _lines_of_prose(summary: Summary) -> Iterator[Line]:
    for text in _sentences(summary.text):
        yield Line(format_day(summary.occurred_at), "Summary", " ".join(text.split()))


def written(lines: Sequence[Line]) -> str:
    """Give lines as a text: each day once, before what was said on it, and a speaker once for what they said on end."""
    parts: list[str] = []
    current = speaker = None
    for line in lines:
        if line.day != current:
            current, speaker = line.day, None
            parts.append(f"{current}:")
        parts.append(str(line) if line.speaker != speaker else f"{GOES_ON}{line.text}")
        speaker = line.speaker
    return "\n".join(parts)
