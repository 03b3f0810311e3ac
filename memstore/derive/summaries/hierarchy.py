"""What is summarized: segments of messages, or of four summaries for the next level, and the lines in them. Pure.

A line is a sentence with its day and speaker, or what a tool did. A summary is written so that it can be parsed into
lines again, from which the level above chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from uuid import UUID

from memstore import ids
from memstore.derive.chunking import split_text
from memstore.derive.segmentation import SPEAKERS
from memstore.derive.sentences import sentences
from memstore.derive.tool_results import Focus, call_inputs, describe_calls, describe_result, find_names
from memstore.models import Message, Role, Summary
from memstore.providers import TokenCounter
from memstore.settings import Settings
from memstore.store.tokenize import terms
from memstore.text import format_day

# How many summaries stand under one of the next level, and how many times the tokens of one of them it has. Few under
# one leave few that wait for others of their level, so that a small budget covers a whole conversation; what a larger
# one then keeps hardly differs (docs/reference/summaries.md, "How the nest grows").
GROUP = 4
GROWTH = 1.25

MAX_SENTENCE = 80  # tokens; a longer one is a list or a listing, and would fill a summary alone
CONTINUED = "  "  # before a further line of the same speaker
LINES_RECIPE = "extractive/"  # what the recipes begin with whose summaries are written as lines
EMPTY_SUMMARY = "(Nothing that could be summarized in words.)"  # a row without words: no unit, no line of a context
TOOL = "Tool"  # the speaker of lines about calls
RESULT_TOKENS = 30  # about, for the result of a call, at least
FEW_WORDS = 90  # tokens, about, that results may fill where little was said
MAX_INPUT = 60  # characters

_PIECE = re.compile(r"\S.*?(?:;(?= )|$)")  # of a result


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence that may go into a summary: when and by whom it was said."""

    day: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class Segment:
    """What one summary is of: messages that follow each other, or summaries.

    Of messages that are too many to be held in memory only `key_lines` are left.
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
    key_lines: Sequence[Line] = ()

    def lines(self) -> Sequence[Line]:
        """Return the lines that may go into a summary."""
        return self.key_lines or (parse_lines(self.below) if self.below else extract_lines(self.messages))

    def make_summary(self, text: str, recipe: str, counter: TokenCounter) -> Summary:
        """Return the text as the summary of this segment."""
        return Summary.model_construct(
            user_id=self.user_id,
            id=ids.summary_id(self.conversation_id, self.level, self.from_seq, self.to_seq, recipe),
            conversation_id=self.conversation_id,
            level=self.level,
            from_seq=self.from_seq,
            to_seq=self.to_seq,
            text=text,
            tokens=counter.count(text),
            counter=counter.name,
            recipe=recipe,
            occurred_at=self.span[0],
            occurred_until=self.span[1],
        )


def make_segment(level: int, messages: Sequence[Message]) -> Segment:
    """Return messages that follow each other as a segment."""
    times = [message.occurred_at for message in messages]
    first, span = messages[0], (min(times), max(times))
    tokens = sum(message.tokens for message in messages)
    return Segment(first.user_id, first.conversation_id, level, first.seq, messages[-1].seq, span, tokens, messages)


def parent_segments(waiting: Sequence[Summary]) -> list[Segment]:
    """Return each full group of summaries of one level as a segment of the next."""
    groups = [waiting[at : at + GROUP] for at in range(0, len(waiting) - GROUP + 1, GROUP)]
    return [
        Segment(
            user_id=group[0].user_id,
            conversation_id=group[0].conversation_id,
            level=group[0].level + 1,
            from_seq=group[0].from_seq,
            to_seq=group[-1].to_seq,
            span=(min(summary.occurred_at for summary in group), max(summary.occurred_until for summary in group)),
            tokens=sum(summary.tokens for summary in group),
            below=group,
        )
        for group in groups
    ]


def summary_limit(level: int, settings: Settings) -> int:
    """Return how many tokens a summary of a level may have."""
    return int(settings.summary_tokens * GROWTH ** (level - 1))


def extract_lines(messages: Sequence[Message]) -> list[Line]:
    """Return the sentences of users and assistants, as they said them, and a line for each call of a tool."""
    said = sum(_estimate_tokens(message.text) for message in messages if message.role in SPEAKERS and message.text)
    calls = sum(len(message.tool_calls or ()) for message in messages)
    limit = max(RESULT_TOKENS, (FEW_WORDS - said) // max(1, calls))
    focus = _focus_of(messages)
    lines: list[Line] = []
    for place, message in enumerate(messages):
        if message.role in SPEAKERS and message.text:
            day, speaker = format_day(message.occurred_at), message.name or message.role.capitalize()
            speaker = " ".join(speaker.split()) or "?"
            lines += [Line(day, speaker, " ".join(text.split())) for text in _sentences(message.text)]
        if message.tool_calls or message.role == Role.TOOL:
            lines += _call_lines(messages, place, focus, limit)
    return lines


def _call_lines(messages: Sequence[Message], place: int, focus: Focus, limit: int) -> Iterator[Line]:
    """Yield the lines of a message's calls with their results; of a result only if its call is not before it."""
    message = messages[place]
    if message.role == Role.TOOL:
        has_call = place and (messages[place - 1].role == Role.TOOL or messages[place - 1].tool_calls)
        is_told = has_call or not message.text
        texts = [] if is_told else [f"{describe_result(message, focus, limit, _estimate_tokens)}."]
    else:
        results = list(takewhile(lambda after: after.role == Role.TOOL, messages[place + 1 :]))
        texts = list(describe_calls(message, results, focus, limit, _estimate_tokens, max_value=MAX_INPUT))
    for text in texts:
        name = text.partition("(")[0] if message.tool_calls else "it"
        for start, stop in split_text(text, MAX_SENTENCE, _estimate_tokens, 0, _split_pieces):
            continued = f"{name} also gave: " if start else ""
            yield Line(format_day(message.occurred_at), TOOL, continued + " ".join(text[start:stop].split()))


def _focus_of(messages: Sequence[Message]) -> Focus:
    """Return what results are searched for: words of what was asked, names of what was said or given to tools."""
    said = [message.text for message in messages if message.role in SPEAKERS and message.text]
    inputs = [call_inputs(message) for message in messages if message.tool_calls]
    asked = [message.text for message in messages if message.role == Role.USER and message.text]
    return Focus(frozenset(terms(" ".join([*asked, *inputs]))), find_names(" ".join([*said, *inputs])))


def _split_pieces(text: str, _: int) -> list[tuple[int, int]]:
    return [piece.span() for piece in _PIECE.finditer(text)]


def _estimate_tokens(text: str) -> int:
    return 1 + len(text) // 3


def _sentences(text: str) -> Iterator[str]:
    for start, stop in sentences(text):
        for begin, end in split_text(
            text[start:stop], MAX_SENTENCE, lambda piece: len(piece.split()) + len(piece) // 8
        ):
            yield text[start + begin : start + end]


def parse_lines(summaries: Sequence[Summary]) -> list[Line]:
    """Return the lines of summaries: as `format_lines` wrote them, or the sentences of what a model wrote."""
    lines: list[Line] = []
    for summary in summaries:
        if summary.recipe.startswith(LINES_RECIPE):
            lines += _parse_lines(summary)
        else:
            day = format_day(summary.occurred_at)
            lines += [Line(day, "Summary", " ".join(text.split())) for text in _sentences(summary.text)]
    return lines


def _parse_lines(summary: Summary) -> Iterator[Line]:
    day, speaker = format_day(summary.occurred_at), "?"
    for line in summary.text.splitlines():
        prefix, colon, text = line.partition(": ")
        if line.startswith(CONTINUED):
            yield Line(day, speaker, line.removeprefix(CONTINUED))
        elif colon:
            speaker = prefix
            yield Line(day, speaker, text)
        elif line.endswith(":"):
            day = line[:-1]


def format_lines(lines: Sequence[Line]) -> str:
    """Return lines as a text: each day once, before what was said on it, and a speaker once for lines in a row."""
    parts: list[str] = []
    day = speaker = None
    for line in lines:
        if line.day != day:
            day, speaker = line.day, None
            parts.append(f"{day}:")
        parts.append(str(line) if line.speaker != speaker else f"{CONTINUED}{line.text}")
        speaker = line.speaker
    return "\n".join(parts)
