"""Extractive summaries: the clauses that together say most of a segment, chosen and not written. Pure arithmetic.

A segment is of messages, or of four summaries for the next level. A line is a sentence with its day and speaker, or
what a tool did. A summary is written so that it can be parsed into lines again, from which the level above chooses.

The stems, names and numbers of the lines that are left out should occur in those that are chosen, those that come back
more. So what repeats is worth nothing. Decisions, days, amounts and plans weigh more than their words
(`cues`), the more so the nearer the room is to a quarter.
`benchmarks/summaries.py` measures what that gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from uuid import UUID

from memstore import ids
from memstore.derive.chunking import SUMMARIZED_ROLES, split_text
from memstore.derive.summaries import choice
from memstore.derive.summaries.cues import TOOL_SPEAKER, Clause, read_clauses, score_sentence
from memstore.derive.tool_results import Focus, call_inputs, describe_calls, find_names
from memstore.language.sentences import sentences
from memstore.models import Message, Role, Summary
from memstore.providers import TokenCounter
from memstore.settings import Settings
from memstore.store.tokenize import terms
from memstore.text import format_day

# How many summaries stand under one of the next level, and how many times the tokens of one of them it has. Few under
# one leave few that wait for others of their level, so that a small budget covers a whole conversation; what a larger
# one then keeps hardly differs (docs/reference/measurements.md, "How the nest grows").
GROUP = 4
GROWTH = 1.25
COMPRESSION_RATIO = 4
MIN_SUMMARY_TOKENS = 30
MAX_VERBATIM_TOKENS = 60

# A longer one is a list or a listing, and would fill a summary alone.
MAX_SENTENCE_TOKENS = 80
SAME_SPEAKER_PREFIX = " "
# A row without words: no chunk, no line of a context.
EMPTY_SUMMARY = "(Nothing that could be summarized in words.)"


@dataclass(frozen=True, slots=True)
class Line:
    day: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class Segment:
    """The material of one summary: messages that follow each other, or summaries."""

    level: int
    from_seq: int
    to_seq: int
    messages: Sequence[Message] = ()
    below: Sequence[Summary] = ()

    @property
    def conversation_id(self) -> UUID:
        return (self.messages or self.below)[0].conversation_id

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.messages or self.below)

    def lines(self) -> Sequence[Line]:
        return parse_lines(self.below) if self.below else extract_lines(self.messages)

    def make_summary(self, text: str, recipe: str, counter: TokenCounter) -> Summary:
        times = [message.occurred_at for message in self.messages]
        times += [time for summary in self.below for time in (summary.occurred_at, summary.occurred_until)]
        return Summary.model_construct(
            user_id=(self.messages or self.below)[0].user_id,
            id=ids.summary_id(self.conversation_id, self.level, self.from_seq, self.to_seq, recipe),
            conversation_id=self.conversation_id,
            level=self.level,
            from_seq=self.from_seq,
            to_seq=self.to_seq,
            text=text,
            tokens=counter.count(text),
            counter=counter.name,
            recipe=recipe,
            occurred_at=min(times),
            occurred_until=max(times),
        )


def make_segment(level: int, messages: Sequence[Message]) -> Segment:
    return Segment(level, messages[0].seq, messages[-1].seq, messages)


def parent_segments(waiting: Sequence[Summary]) -> list[Segment]:
    """Return each full group of summaries of one level as a segment of the next."""
    groups = [waiting[at : at + GROUP] for at in range(0, len(waiting) - GROUP + 1, GROUP)]
    return [Segment(group[0].level + 1, group[0].from_seq, group[-1].to_seq, below=group) for group in groups]


def summary_limit(segment: Segment, settings: Settings) -> int:
    """Return how many tokens a segment's summary may have: a quarter of a talk's, and above that little more than one.

    A summary on demand has as many as one of the hierarchy over as much.
    """
    level = segment.level or 1
    while not segment.level and segment.tokens > settings.segment_tokens * GROUP ** (level - 1):
        level += 1
    if level == 1:
        # One fits a context of 2,000.
        return max(MIN_SUMMARY_TOKENS, min(segment.tokens // COMPRESSION_RATIO, settings.segment_tokens // 6))
    return max(MIN_SUMMARY_TOKENS, int(settings.segment_tokens / 6 * GROWTH ** (level - 2)))


def extract_lines(messages: Sequence[Message]) -> list[Line]:
    focus = _focus_of(messages) if any(message.tool_calls for message in messages) else Focus()
    lines: list[Line] = []
    for place, message in enumerate(messages):
        day = format_day(message.occurred_at)
        if message.role in SUMMARIZED_ROLES and message.text:
            speaker = " ".join((message.name or message.role.capitalize()).split()) or "?"
            lines += [Line(day, speaker, text) for text in _sentences(message.text)]
        if message.tool_calls:
            results = list(takewhile(lambda after: after.role == Role.TOOL, messages[place + 1 :]))
            limit = 60 // len(message.tool_calls)
            for text in describe_calls(message, results, focus, limit, _estimate_tokens, max_value=60):
                name = text.partition("(")[0]
                for start, stop in split_text(text, MAX_SENTENCE_TOKENS, _estimate_tokens, 0):
                    lines.append(Line(day, TOOL_SPEAKER, f"{name} also gave: " * (start > 0) + text[start:stop]))
    return lines


def _focus_of(messages: Sequence[Message]) -> Focus:
    """Return what results are searched for: words of what was asked, names of what was said or given to tools."""
    said = [message.text for message in messages if message.role in SUMMARIZED_ROLES and message.text]
    inputs = [call_inputs(message) for message in messages if message.tool_calls]
    asked = [message.text for message in messages if message.role == Role.USER and message.text]
    return Focus(frozenset(terms(" ".join([*asked, *inputs]))), find_names(" ".join([*said, *inputs])))


def _estimate_tokens(text: str) -> int:
    return 1 + len(text) // 3


def _sentences(text: str) -> Iterator[str]:
    for start, stop in sentences(text):
        for begin, end in split_text(
            text[start:stop], MAX_SENTENCE_TOKENS, lambda piece: len(piece.split()) + len(piece) // 8
        ):
            yield " ".join(text[start + begin : start + end].split())


def parse_lines(summaries: Sequence[Summary]) -> list[Line]:
    lines: list[Line] = []
    for summary in summaries:
        day, speaker = format_day(summary.occurred_at), "?"
        if not summary.recipe.startswith("extractive/"):
            lines += [Line(day, "Summary", text) for text in _sentences(summary.text)]
            continue
        for line in summary.text.splitlines():
            prefix, colon, text = line.partition(": ")
            if line.startswith(SAME_SPEAKER_PREFIX):
                lines.append(Line(day, speaker, line.lstrip()))
            elif colon:
                speaker = prefix
                lines.append(Line(day, speaker, text))
            elif line.endswith(":"):
                day = line[:-1]
    return lines


def format_lines(lines: Sequence[Line]) -> str:
    """Return lines as a text: each day once, before what was said on it, and a speaker once for lines in a row."""
    parts: list[str] = []
    day = speaker = None
    for line in lines:
        if line.day != day:
            day, speaker = line.day, None
            parts.append(f"{day}:")
        parts.append(str(line) if line.speaker != speaker else f"{SAME_SPEAKER_PREFIX}{line.text}")
        speaker = line.speaker
    return "\n".join(parts)


class ExtractiveSummarizer:
    batch_size = 512
    uses_llm = False
    recipe = "extractive/13"

    def __init__(self, counter: TokenCounter, settings: Settings) -> None:
        self.counter, self.settings = counter, settings

    def start_session(self) -> None:
        """Return None: no model is asked."""

    def summarize(self, segments: Sequence[Segment], session: object = None) -> list[Summary]:
        return [segment.make_summary(self._text(segment), self.recipe, self.counter) for segment in segments]

    def _text(self, segment: Segment) -> str:
        lines = segment.lines()
        whole = format_lines(lines) if segment.tokens <= MAX_VERBATIM_TOKENS else None
        if whole is not None and self.counter.count(whole) <= MAX_VERBATIM_TOKENS:
            return whole or EMPTY_SUMMARY
        text = abridge(lines, summary_limit(segment, self.settings), self.counter)
        # Where not even one fits, one is better than none.
        if text == EMPTY_SUMMARY and lines:
            text = min((format_lines([line]) for line in lines), key=self.counter.count)
        return text


def abridge(lines: Sequence[Line], limit: int, counter: TokenCounter) -> str:
    """Return the clauses that say most, in order, as a text of at most `limit` tokens."""
    lines = [lines[place] for place in choice.top_sentences([line.text for line in lines])]
    clauses = read_clauses([(line.speaker, line.text) for line in lines])
    whole, lines = lines, [replace(lines[clause.line], text=clause.text) for clause in clauses]
    costs = [counter.count(line.text) for line in lines]
    by_speaker = {speaker: terms(speaker) for speaker in {line.speaker for line in lines}}
    speaker_costs = {speaker: 2 + counter.count(speaker) for speaker in by_speaker}
    room_share = min(1.0, COMPRESSION_RATIO * limit / max(1, sum(costs))) ** 8
    # Who speaks is part of what a line says, and no news in another one: "I agree, Alice!" names nobody.
    speakers = {word for line in lines for word in line.speaker.lower().split()}
    names = [
        {name for name in choice.find_mentions(line.text) if not any(word.startswith(name) for word in speakers)}
        for line in lines
    ]
    stems = [clause.stems | by_speaker[line.speaker] for clause, line in zip(clauses, lines, strict=True)]
    words = choice.weigh_words(stems, names, choice.NAMES * (1.25 - room_share / 2))
    # The line of a call comes after all that was said, and where nobody spoke it stands alone.
    scores = [-0.5 if line.speaker == TOOL_SPEAKER else score_sentence(line.text) for line in lines]
    of_speakers = {term for speaker_terms in by_speaker.values() for term in speaker_terms}
    own_words = [choice.normalize(weights, lambda word: word not in of_speakers) for weights in words]
    numbers = [
        choice.normalize(weights, lambda word: word[-1].isdigit()) or own_words[place]
        for place, weights in enumerate(words)
    ]
    heads = [speaker_costs[line.speaker] for line in lines]
    days = [line.day for line in lines]
    # A clause that is sure to be told weighs as much as twelve of mean words.
    cue_worth = 12 * room_share * sum(sum(weights.values()) for weights in words) / max(1, len(words))
    material = choice.Material(words, costs, scores, clauses, heads, days, own_words, numbers, cue_worth)
    best, fullest, passes = EMPTY_SUMMARY, 0, 0
    room = limit - choice.DAY_LINE_TOKENS
    while room > 0 and not (fullest and passes >= 3):
        places = choice.choose(material, room)
        text = format_lines(_join(whole, [clauses[place] for place in places]))
        tokens, passes = counter.count(text), passes + 1
        if not places or fullest >= tokens:
            break
        if tokens <= limit:
            best, fullest = text, tokens
        if tokens == limit:
            break
        room += limit - tokens
    return best


def _join(lines: Sequence[Line], clauses: Sequence[Clause]) -> list[Line]:
    joined: list[Line] = []
    for number, parts in groupby(clauses, key=lambda clause: clause.line):
        text = " ".join(part.text for part in parts)
        line = lines[number]
        joined.append(replace(line, text=text if line.text.endswith(text) else text.rstrip(" ,;–—")))
    return joined
