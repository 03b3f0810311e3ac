"""What may stand in a context, and each item with the tokens that it is expected to add. Pure.

Lines are counted as they will stand there, and headers apart, so that the sum is the count of the whole but for what an
encoding merges over the ends of lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from uuid import UUID

from memstore.context.dedupe import TextFingerprint
from memstore.context.formats import OPENAI
from memstore.context.formats.parts import (
    FACTS_HEAD,
    HITS_HEAD,
    Format,
    fact_line,
    hit_line,
    indent,
    section_lines,
)
from memstore.context.strategies.base import FENCE, Block, Entry, Turn
from memstore.derive.chunking import sentences
from memstore.models import Amount, Compression, Decision, Hit, Json, Message, Role, Section, Summary, Tier
from memstore.providers import TokenCounter
from memstore.text import (
    MEMORY_FOOT,
    MEMORY_HEAD,
    STANDING_FOOT,
    STANDING_HEAD,
    SUMMARIES_FOOT,
    SUMMARIES_HEAD,
    format_day,
)

FACTS, SUMMARIES, HITS, RECENT = "facts", "summaries", "hits", "recent"
# The parts of the room that sections may count on. Hits find more of what is asked than facts of the same length: on
# half of LoCoMo's questions 91.2 % of the evidence at 2,000 tokens and 93.9 % at 4,000, against 89.7 and 92.0 % with
# 0.35 for hits and 0.2 for facts and both falling from 800 tokens on (by `benchmarks/run.py locomo` then).
WEIGHTS: Mapping[str, float] = {FACTS: 0.1, HITS: 0.45, SUMMARIES: 0.15, RECENT: 0.3}
ADDED = 0.25
# What answers to the question has its weight up to `WHOLE` tokens of room. It is read anew at every turn, while a model
# keeps what stands before it: so of `FLAT` tokens of room it has no more than of `WHOLE`, and from there on more by the
# square root (benchmarks/prefix.py has the curve). Between the two the part of hits falls evenly. Had they no more
# tokens there, as facts have, all that is added would be recent turns: of LoCoMo's evidence a context of 5,000 tokens
# held 0.3 points more than one of 3,000, and holds 1.8 more. Facts take the place of the messages they were made from.
FOR_THE_QUESTION = (FACTS, HITS)
WHOLE, FLAT = 2500, 8000
SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
OLDER = "older than the recent turns"
LEAST = 8  # tokens of a hit: fewer say nothing
CUT_MARK = " […]"
CHARACTERS = 32  # read for each token, which in prose stands for 4: not all of a text of megabytes
CLOSELY = 0.7  # of the tokens, which sentences must use, else a text is cut after a word
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a section may take of one budget, in tokens: `minimum` is its own, `share` it may count on.

    A minimum that was given in tokens is `required`: where it does not fit there is no context. What is `cut` is then
    cut to the minimum, which no budget changes.
    """

    minimum: int
    share: int
    maximum: int
    priority: int = 0
    required: bool = False
    cut: bool = False

    @property
    def longest(self) -> int | None:
        """The tokens to which a minimum in tokens has long pieces cut; None without one."""
        return self.minimum if self.required else None


def allowances(sections: Sequence[Section], room: int) -> dict[str, Allowance]:
    """Return what each section may take of so many tokens, the built-in ones included."""
    known = {name: Section(name) for name in WEIGHTS} | {section.name: section for section in sections}
    least = {name: _tokens(section.minimum, room) for name, section in known.items()}
    weights = {name: _weight(section, room) for name, section in known.items()}
    rest = max(0.0, room - sum(least.values())) / max(1.0, sum(weights.values()))
    found = {}
    for name, section in known.items():
        most = room if section.maximum is None else int(_tokens(section.maximum, room))
        share = min(most, int(least[name] + rest * weights[name] + 1e-6))  # rounding lets none fall as the room grows
        required = isinstance(section.minimum, int) and section.minimum > 0
        found[name] = Allowance(int(least[name]), share, most, section.priority, required, section.cut)
    return found


def merge_sections(kept: Sequence[Section], given: Sequence[Section]) -> tuple[Section, ...]:
    """Return sections, those that are given in place of kept ones with the same names."""
    return tuple({one.name: one for one in (*kept, *given)}.values())


def _weight(section: Section, room: int) -> float:
    if section.weight is not None:
        return section.weight
    weight = WEIGHTS.get(section.name, ADDED)
    if section.name not in FOR_THE_QUESTION or room <= WHOLE:
        return weight
    if section.name == HITS and room < FLAT:
        return weight * (1 - (1 - WHOLE / FLAT) * (room - WHOLE) / (FLAT - WHOLE))
    return weight * WHOLE / min(room, math.sqrt(room * FLAT))


def _tokens(amount: Amount, room: int) -> float:
    return amount if isinstance(amount, int) else amount * room


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a context may be made of, each in the order of preference; recent turns the newest first.

    `pinned` are facts that are in whatever is asked; they are no part of `facts`. `sections` are the user's limits and
    texts. Turns may be blocks that strategies made of them, and `compressed` is what those did; turns are `static`
    where another question would have made the same of them. `question` is the message to be answered, with its number
    where it is one of the conversation's; `ending` are the turns after it that must be there too: results of tools that
    the model waits for. `left_out` are decisions taken.
    """

    system: str | None = None
    question: Json | None = None
    question_seq: int | None = None
    ending: Sequence[Turn] = ()
    turns: Sequence[Entry] = ()
    summaries: Sequence[Summary] = ()
    pinned: Sequence[Hit] = ()
    facts: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    sections: Sequence[Section] = ()
    left_out: Sequence[Decision] = ()
    compressed: Sequence[Compression] = ()
    static: bool = True


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """What a context is made for: at most `budget` tokens less `reserve`, as `counter` counts what `format` writes.

    Definitions of `tools` are sent beside it, and counted.
    """

    budget: int
    counter: TokenCounter
    reserve: int = 0
    format: Format = OPENAI
    tools: Sequence[Json] = ()

    @property
    def most(self) -> int:
        """The most tokens that what is sent may have."""
        return self.budget - self.reserve


NOTHING = TextFingerprint("")


@dataclass(frozen=True, slots=True, eq=False)
class SectionHeader:
    """Something that stands over items, such as a fence or a day: paid once, by the first of them."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class ContextItem:
    """Something that may go into a section; `tokens` is what it is expected to add, below its headers.

    A turn `shows` messages; a summary begins at `first_seq`, as a turn does. `pinned` is in whatever is asked, as far
    as it fits; `sources` are the messages that it was made from. `note` is for the receipt; `whole` is the item that
    this is the beginning of.
    """

    section: str
    kind: str
    id: UUID | None
    tokens: int
    content: Any
    score: float | None = None
    shows: frozenset[UUID] = frozenset()
    first_seq: float = -math.inf
    note: str = ""
    pinned: bool = False
    fingerprint: TextFingerprint = NOTHING
    sources: tuple[UUID, ...] = ()
    under: tuple[SectionHeader, ...] = ()
    whole: ContextItem | None = None


class ItemFactory:
    """Makes items, counting with one counter. What stands around items is counted once."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        memory = self._fence("memory", MEMORY_HEAD, MEMORY_FOOT)
        self._facts = (memory, SectionHeader("facts", self._line(FACTS_HEAD)))
        self._hits = (memory, SectionHeader("hits", self._line(HITS_HEAD)))
        self._days: dict[str, SectionHeader] = {}
        self._around: dict[tuple[str | None, ...], int] = {}

    def summaries(self, summaries: Sequence[Summary]) -> list[ContextItem]:
        """Return items for summaries of the conversation."""
        under = (self._fence(SUMMARIES, SUMMARIES_HEAD, SUMMARIES_FOOT),) if summaries else ()
        return [
            ContextItem(
                SUMMARIES,
                "summary",
                summary.id,
                self._line(indent(summary.text)),
                summary,
                first_seq=summary.from_seq,
                fingerprint=TextFingerprint(summary.text),
                under=under,
            )
            for summary in summaries
        ]

    def facts(self, pinned: Sequence[Hit], others: Sequence[Hit]) -> list[ContextItem]:
        """Return items for pinned facts, then for facts that answer to the question."""
        fence = (self._fence("standing", STANDING_HEAD, STANDING_FOOT),) if pinned else ()
        return [self._fact(fact, fence, pinned=True) for fact in pinned] + [
            self._fact(fact, self._facts) for fact in others
        ]

    def turns(self, turns: Sequence[Entry], longest: int | None) -> list[ContextItem]:
        """Return items for recent turns; those of more than `longest` tokens are cut there, None for none."""
        items = [self._block(turn) if isinstance(turn, Block) else self._turn(turn) for turn in turns]
        return items if longest is None else [self._shortened(item, longest) for item in items]

    def texts(self, section: Section, allowance: Allowance) -> list[ContextItem]:
        """Return items for the texts of a section of the user's own."""
        around = {"role": "system", "content": f"<{section.name}>\n</{section.name}>"}
        under = (SectionHeader(section.name, self.counter.count_message(around)),)
        most = (allowance.longest or (allowance.share if section.steady else allowance.maximum)) - under[0].tokens
        items = []
        for text in section.texts:
            tokens, note = self._line(section_lines(text)), ""
            if allowance.cut and tokens > most and (shorter := truncate_at_sentence(text, most - 8, self.counter)):
                whole, tokens, text = tokens, self._line(section_lines(shorter)), shorter
                note = f"cut at a sentence: {tokens} of {whole} tokens"
            fingerprint = TextFingerprint(text)
            items.append(
                ContextItem(section.name, "text", None, tokens, text, note=note, fingerprint=fingerprint, under=under)
            )
        return items

    def hit(self, hit: Hit, note: str = "") -> ContextItem:
        """Return the item for a hit, under its day."""
        day = f"[{format_day(hit.occurred_at)}]"
        if day not in self._days:
            self._days[day] = SectionHeader(day, self._line(day))
        return ContextItem(
            HITS,
            hit.tier,
            hit.id,
            self._line(hit_line(hit)),
            hit,
            None if note else hit.score,
            fingerprint=TextFingerprint(hit.text),
            under=(*self._hits, self._days[day]),
            note=note,
        )

    def hits_of_turns(self, turns: Iterable[ContextItem]) -> Iterator[ContextItem]:
        """Yield messages of turns that are not in the window as hits."""
        for turn in turns:
            if isinstance(turn.content, Turn) and len(turn.content.messages) == 1:
                (message,) = turn.content.messages
                if message.role in SPOKEN and message.text:
                    yield self.hit(hit_on_message(message), OLDER)

    def beginning(self, item: ContextItem, tokens: int) -> ContextItem | None:
        """Return the first sentences or words of a hit, in at most so many tokens; None where that says nothing."""
        hit = item.content
        if not isinstance(hit, Hit):
            return None
        around = self._line(hit_line(replace(hit, text="")))
        text = truncate(hit.text, tokens - around, self.counter) if tokens - around >= LEAST else None
        if text is None:
            return None
        shorter = replace(hit, text=text)
        counted = self._line(hit_line(shorter))
        note = "; ".join([*filter(None, [item.note]), f"cut: {counted} of {item.tokens} tokens"])
        if counted > tokens:
            return None
        return replace(item, tokens=counted, content=shorter, fingerprint=TextFingerprint(text), note=note, whole=item)

    def _fact(self, fact: Hit, under: tuple[SectionHeader, ...], *, pinned: bool = False) -> ContextItem:
        return ContextItem(
            FACTS,
            "fact",
            fact.id,
            self._line(fact_line(fact)),
            fact,
            fact.score,
            pinned=pinned,
            fingerprint=TextFingerprint(fact.text),
            sources=fact.sources,
            under=under,
        )

    def _block(self, block: Block) -> ContextItem:
        tokens = FENCE + self._line(indent(block.text))
        note = f"{block.strategy}: messages {block.first_seq} to {block.last_seq}"
        return ContextItem(RECENT, "block", block.messages[0].id, tokens, block, note=note, first_seq=block.first_seq)

    def _turn(self, turn: Turn) -> ContextItem:
        return ContextItem(
            RECENT,
            "turn",
            turn.messages[0].id,
            sum(map(self._message, turn.messages)),
            turn,
            shows=frozenset(message.id for message in turn.messages),
            first_seq=turn.first_seq,
            fingerprint=TextFingerprint("\n".join(message.text or "" for message in turn.messages)),
        )

    def _message(self, message: Message) -> int:
        """Return what a message adds: what is stored for its text, where the same counter counted it."""
        if message.counter != self.counter.name or message.parts is not None or message.tool_calls:
            return self.counter.count_message(message.as_chat())
        around = (message.role, message.name, message.tool_call_id)
        if around not in self._around:
            self._around[around] = self.counter.count_message(message.as_chat() | {"content": ""})
        return message.tokens + self._around[around]

    def _shortened(self, item: ContextItem, tokens: int) -> ContextItem:
        turn = item.content
        shorter = truncate_turn(turn, tokens, self.counter) if isinstance(turn, Turn) and item.tokens > tokens else None
        if shorter is None:
            return item
        text = shorter.messages[0].text or ""
        counted = self.counter.count_message(shorter.messages[0].as_chat())
        note = f"cut at a sentence: {counted} of {item.tokens} tokens"
        return replace(item, tokens=counted, content=shorter, note=note, fingerprint=TextFingerprint(text))

    def _fence(self, name: str, head: str, foot: str) -> SectionHeader:
        return SectionHeader(name, self.counter.count_message({"role": "system", "content": f"{head}\n{foot}"}))

    def _line(self, line: str) -> int:
        return self.counter.count(f"{line}\n")


def hit_on_message(message: Message, **changes: Any) -> Hit:
    """Return a hit on a message; `changes` take the place of what it is by default."""
    values: dict[str, Any] = {
        "text": message.text or "",
        "score": 0.0,
        "parts": {},
        "sources": (message.id,),
        "occurred_at": message.occurred_at,
        "conversation_id": message.conversation_id,
        "seq": message.seq,
        "role": message.role,
        "speaker": message.name or message.role,
    }
    return Hit(tier=Tier.MESSAGES, id=message.id, **values | changes)


def truncate(text: str, tokens: int, counter: TokenCounter) -> str | None:
    """Return the first sentences, or where those would leave much unused the first words; None for none."""
    shorter = truncate_at_sentence(text, tokens, counter)
    if shorter is not None and counter.count(shorter) >= CLOSELY * tokens:
        return shorter
    words = [word.end() for word in islice(_WORD.finditer(text), max(0, tokens + 1))]
    return _truncate(text, words, tokens, counter) or shorter


def truncate_at_sentence(text: str, tokens: int, counter: TokenCounter) -> str | None:
    """Return the text's first sentences with a mark, as many as have at most so many tokens; None for none."""
    begun = text[: max(0, tokens) * CHARACTERS]
    whole = sentences(begun) if begun == text else sentences(begun)[:-1]  # the last one may go on
    return _truncate(text, [stop for _, stop in whole], tokens, counter)


def _truncate(text: str, ends: Sequence[int], tokens: int, counter: TokenCounter) -> str | None:
    least, most = 0, len(ends)
    while least < most:
        middle = (least + most + 1) // 2
        if counter.count(text[: ends[middle - 1]] + CUT_MARK) <= tokens:
            least = middle
        else:
            most = middle - 1
    return text[: ends[least - 1]] + CUT_MARK if least else None


def truncate_turn(turn: Turn, tokens: int, counter: TokenCounter) -> Turn | None:
    """Return a turn of one plain message with its text cut; None where that cannot be, as with calls of tools."""
    message = turn.messages[0]
    if len(turn.messages) > 1 or message.tool_calls or message.parts is not None or not message.text:
        return None
    around = counter.count_message(message.as_chat()) - counter.count(message.text)
    text = truncate_at_sentence(message.text, tokens - around, counter)
    return None if text is None else with_text(turn, text)


def with_text(turn: Turn, text: str) -> Turn:
    """Return a turn of one message with another text."""
    message = turn.messages[0]
    return replace(turn, messages=(type(message).model_construct(**(vars(message) | {"text": text})),))
