"""The lines of summaries: sentences with the day on which, and by whom, they were said. Pure.

A summary is written so that it can be read back as lines, from which the level above chooses again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memstore.ingest.chunks import chunks
from memstore.ingest.rules.dates import anchor
from memstore.ingest.rules.thirdperson import is_past
from memstore.ingest.sentences import sentences
from memstore.ingest.stretches import SPOKEN
from memstore.models import Message, Summary
from memstore.times import day

LONGEST_SENTENCE = 80  # tokens; a longer one is a list or a listing, and would fill a summary alone
GOES_ON = "  "  # before a further line of the same speaker
OURS = "extractive/"  # what the recipes begin with whose summaries are written as lines
NOTHING = "(Nothing that could be summarized in words.)"

_WORD = re.compile(r"[\w'’]+")
_AHEAD = frozenset({"must", "will", "shall", "should", "need", "needs", "muss", "müssen", "wird", "werden", "soll"})


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence that may go into a summary: when and by whom it was said."""

    day: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}"


def lines_of(stretch: Sequence[Message]) -> list[Line]:
    """Give the sentences of a stretch that people spoke, with absolute dates beside the relative ones."""
    return [
        Line(day(message.occurred_at), _speaker(message), _dated(" ".join(text.split()), message.occurred_at))
        for message in stretch
        if message.role in SPOKEN and message.text
        for text in _sentences(message.text)
    ]


def _speaker(message: Message) -> str:
    return " ".join((message.name or message.role.capitalize()).split()) or "?"


def _dated(text: str, said: datetime) -> str:
    """Give a sentence as it is understood on another day: "yesterday (7 May 2023)"."""
    words = set(_WORD.findall(text.lower()))
    past = any(map(is_past, words)) and not words & _AHEAD  # "must be made out by 10 January" is still to come
    return anchor(text, said.astimezone(UTC), past=past)[0]


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
    current, speaker = day(summary.occurred_at), "?"
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
        yield Line(day(summary.occurred_at), "Summary", " ".join(text.split()))


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
