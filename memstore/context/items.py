"""The items of a context, each with the tokens that it is expected to add. Pure.

Lines are counted as they will stand there, and headers apart, so that the sum is the count of the whole but for what an
encoding merges over the ends of lines.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from memstore.formats import OPENAI
from memstore.formats.parts import (
    FACTS_HEAD,
    CustomSection,
    Format,
    PromptContent,
    RenderedPrompt,
    fact_line,
    hit_line,
    hits_head,
    indent,
    section_lines,
)
from memstore.models import Amount, Compression, Decision, Hit, Json, Message, Section, Summary
from memstore.providers import Count, TokenCounter
from memstore.strategies.base import FENCE_TOKENS, Block, Entry, Turn
from memstore.text import fence, format_day

FACTS, SUMMARIES, HITS, RECENT = "facts", "summaries", "hits", "recent"
# The parts of the room that sections may count on. Hits find more of what is asked than facts of the same length: on
# half of LoCoMo's questions 91.2 % of the evidence at 2,000 tokens and 93.9 % at 4,000, against 89.7 and 92.0 % with
# 0.35 for hits and 0.2 for facts and both falling from 800 tokens on (by `benchmarks/run.py locomo` then).
SECTION_WEIGHTS: Mapping[str, float] = {FACTS: 0.1, HITS: 0.45, SUMMARIES: 0.15, RECENT: 0.3}
# Facts and hits change with each question and break a model's prompt cache. Up to `FULL_SHARE_ROOM` tokens of room they
# have their full share; at `CAPPED_ROOM` they have as many tokens as there, and above more by the square root
# (benchmarks/prefix.py has the curve). Between the two hits grow slowly: with a fixed number of tokens for them a
# context of 5,000 tokens held 0.3 points more of LoCoMo's evidence than one of 3,000, so it holds 1.8 more.
FOR_THE_QUESTION = (FACTS, HITS)
FULL_SHARE_ROOM, CAPPED_ROOM = 2500, 8000
# A context of fewer tokens has no room for what held once beside what holds.
SMALL_CONTEXT = 1000


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a section may take of one budget, in tokens: `minimum` is its own, `share` it may count on.

    A minimum that was given in tokens is `required`: where it does not fit there is no context.
    """

    minimum: int
    share: int
    maximum: int
    priority: int = 0
    required: bool = False


def allowances(sections: Sequence[Section], room: int) -> dict[str, Allowance]:
    by_name = {name: Section(name) for name in SECTION_WEIGHTS} | {section.name: section for section in sections}
    least = {name: _tokens(section.minimum, room) for name, section in by_name.items()}
    weights = {name: _weight(section, room) for name, section in by_name.items()}
    rest = max(0.0, room - sum(least.values())) / max(1.0, sum(weights.values()))
    plan = {}
    for name, section in by_name.items():
        most = room if section.maximum is None else int(_tokens(section.maximum, room))
        # Rounding lets none fall as the room grows.
        share = min(most, int(least[name] + rest * weights[name] + 1e-6))
        required = isinstance(section.minimum, int) and section.minimum > 0
        plan[name] = Allowance(int(least[name]), share, most, section.priority, required)
    return plan


def merge_sections(kept: Sequence[Section], overrides: Sequence[Section]) -> tuple[Section, ...]:
    return tuple({section.name: section for section in (*kept, *overrides)}.values())


def _weight(section: Section, room: int) -> float:
    if section.weight is not None:
        return section.weight
    weight = SECTION_WEIGHTS.get(section.name, 0.25)
    if section.name not in FOR_THE_QUESTION or room <= FULL_SHARE_ROOM:
        return weight
    if section.name == HITS and room < CAPPED_ROOM:
        beyond = (room - FULL_SHARE_ROOM) / (CAPPED_ROOM - FULL_SHARE_ROOM)
        return weight * (1 - (1 - FULL_SHARE_ROOM / CAPPED_ROOM) * beyond)
    return weight * FULL_SHARE_ROOM / min(room, math.sqrt(room * CAPPED_ROOM))


def _tokens(amount: Amount, room: int) -> float:
    return amount if isinstance(amount, int) else amount * room


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a context may be made of, each in the order of preference; recent turns the newest first.

    `standing` are facts that are in whatever is asked, as far as they fit; `facts` has those too that answer to the
    question. `sections` are the user's limits and texts. Turns may be blocks that strategies made of them, and
    `compressed` is what those did; turns are `static` where another question would have made the same of them.
    `find_antecedent` returns the sentence that a hit answers. `asks_for_several`: a list or an overview is asked for.
    `relevance` is that of what is stored, where it was asked for.
    `question` is the message to be answered, with its number where it is one of the conversation's; `ending` are the
    turns after it that must be there too: results of tools that the model waits for. `left_out` are decisions taken.
    """

    system: str | None = None
    question: Json | None = None
    question_seq: int | None = None
    ending: Sequence[Turn] = ()
    turns: Sequence[Entry] = ()
    summaries: Sequence[Summary] = ()
    standing: Sequence[Hit] = ()
    facts: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    find_antecedent: Callable[[Hit], Hit | None] = lambda _: None
    asks_for_several: bool = False
    relevance: float | None = None
    sections: Sequence[Section] = ()
    left_out: Sequence[Decision] = ()
    compressed: Sequence[Compression] = ()
    static: bool = True

    @property
    def custom_sections(self) -> list[Section]:
        return [section for section in self.sections if section.text is not None]

    def content(self, chosen: Mapping[str, Sequence[ContextItem]]) -> PromptContent:
        """Return the content of a context with these items: the system prompt and the question are always in it."""
        contents = {section: [item.content for item in items] for section, items in chosen.items()}
        facts = chosen.get(FACTS, ())
        static, custom = list[CustomSection](), list[CustomSection]()
        for section in self.custom_sections:
            texts = CustomSection(section.name, contents.get(section.name, []))
            (static if section.static else custom).append(texts)
        return PromptContent(
            system=self.system,
            summaries=contents.get(SUMMARIES, []),
            turns=[*contents.get(RECENT, []), *self.ending],
            facts=[item.content for item in facts if not item.standing],
            hits=contents.get(HITS, []),
            question=self.question,
            question_seq=self.question_seq,
            static_sections=static,
            standing_facts=[item.content for item in facts if item.standing],
            custom_sections=custom,
        )


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """The target of a context: at most `budget` tokens less `reserve`, as `counter` counts the messages of `format`.

    Definitions of `tools` are sent with it, and counted.
    """

    budget: int
    counter: TokenCounter
    reserve: int = 0
    format: Format = OPENAI
    tools: Sequence[Json] = ()

    @property
    def limit(self) -> int:
        return self.budget - self.reserve

    def room_for_sections(self, system: str | None) -> int:
        """Return the limit less the system prompt, which sections have shares of. No question changes it."""
        return self.limit - self.render(PromptContent(system=system)).tokens

    def render(self, content: PromptContent) -> Rendering:
        """The one place where what was selected is rendered, and where what was rendered is counted."""
        prompt = self.format.render(content)
        return Rendering(content, prompt, count_prompt(prompt, self.counter, self.tools))


@dataclass(frozen=True, slots=True)
class Rendering:
    content: PromptContent
    prompt: RenderedPrompt
    tokens: Count


def count_prompt(prompt: RenderedPrompt, counter: TokenCounter, tools: Sequence[Json] = ()) -> Count:
    """Return the tokens of a finished context: of its text, or of its chat with all that is around the messages.

    Definitions of `tools` are sent with either.
    """
    if prompt.text is None:
        return counter.count_messages(prompt.chat, tools)
    no_messages = counter.count_messages([])
    tool_tokens = counter.count_messages([], tools) - no_messages if tools else 0
    return Count(counter.count(prompt.text) + tool_tokens, no_messages.kind)


@dataclass(frozen=True, slots=True, eq=False)
class SectionHeader:
    """Something that stands over items, such as a fence or a day: paid once, by the first of them."""

    name: str
    tokens: int


# Not frozen: to make one takes three times as long then, and a context has hundreds.
@dataclass(eq=False)
class ContextItem:
    """Something that may go into a section; `tokens` is what it is expected to add, below its headers.

    A turn `shows` messages; a summary begins at `first_seq`, as a turn does. `standing` is in whatever is asked, as far
    as it fits; `sources` are the messages that it was made from. `note` is for the receipt.
    """

    section: str
    kind: str
    id: UUID | None
    tokens: int
    content: Any
    text: str
    score: float | None = None
    shows: frozenset[UUID] = frozenset()
    first_seq: float = -math.inf
    note: str = ""
    standing: bool = False
    sources: tuple[UUID, ...] = ()
    headers: tuple[SectionHeader, ...] = ()
    find_antecedent: Callable[[], ContextItem | None] = lambda: None

    @cached_property
    def antecedent(self) -> ContextItem | None:
        """The question or sentence before a hit that it answers: it comes with the hit."""
        return self.find_antecedent()

    @cached_property
    def shingles(self) -> list[str]:
        """Every four words that follow one another, by which texts are compared; a shorter text is one."""
        # A look at a text of megabytes takes seconds.
        if len(self.text) > 100_000:
            return []
        words = _words(self.text)
        # As texts: the garbage collector would follow every tuple, and a context has thousands.
        rows = map(" ".join, zip(words, words[1:], words[2:], words[3:], strict=False))
        return list(rows) if len(words) >= 4 else [" ".join(words)] if words else []


# Every byte, and for punctuation a blank.
_BLANKED = bytes(ord(" ") if chr(byte) in string.punctuation else byte for byte in range(256))


def _words(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation.

    As bytes, in which a character that is not ASCII has none that is: `str.translate` takes three times as long.
    """
    words = text.casefold().encode("utf-8", "surrogatepass").translate(_BLANKED).decode("utf-8", "surrogatepass")
    return (words if text.isascii() else re.sub("[“”„‘’«»…–—]", " ", words)).split()


class ItemFactory:
    """Makes items, counting with one counter. Text around items is counted once."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        memory = self._fence("memory")
        self._facts = (memory, SectionHeader("facts", self._line(FACTS_HEAD)))
        self._memory = memory
        self._heads: dict[str, SectionHeader] = {}
        self._around: dict[tuple[str | None, ...], int] = {}

    def summaries(self, summaries: Sequence[Summary]) -> list[ContextItem]:
        headers = (self._fence(SUMMARIES),) if summaries else ()
        items = []
        for summary in summaries:
            about = (SUMMARIES, "summary", summary.id, self._line(indent(summary.text)), summary, summary.text)
            items.append(ContextItem(*about, first_seq=summary.from_seq, headers=headers))
        return items

    def facts(self, standing: Sequence[Hit], answers: Sequence[Hit]) -> list[ContextItem]:
        fence = (self._fence("standing"),) if standing else ()
        return [self._fact(fact, fence, standing=True) for fact in standing] + [
            self._fact(fact, self._facts) for fact in answers
        ]

    def turns(self, turns: Sequence[Entry]) -> list[ContextItem]:
        return [self._block(turn) if isinstance(turn, Block) else self._turn(turn) for turn in turns]

    def texts(self, section: Section) -> list[ContextItem]:
        around = {"role": "system", "content": f"<{section.name}>\n</{section.name}>"}
        headers = (SectionHeader(section.name, self.counter.count_message(around)),)
        return [
            ContextItem(section.name, "text", None, self._line(section_lines(text)), text, text, headers=headers)
            for text in section.texts
        ]

    def hits(
        self, hits: Sequence[Hit], find_antecedent: Callable[[Hit], Hit | None] = lambda _: None
    ) -> list[ContextItem]:
        return [self._hit(hit, find_antecedent=partial(self._antecedent, hit, find_antecedent)) for hit in hits]

    def _hit(self, hit: Hit, **values: Any) -> ContextItem:
        head, day = hits_head(hit), f"[{format_day(hit.occurred_at)}]"
        for key, line in ((head, head), (head + day, day)):
            if key not in self._heads:
                self._heads[key] = SectionHeader(key, self._line(line))
        about = (HITS, hit.tier, hit.id, self._line(hit_line(hit)), hit, hit.text, hit.score)
        return ContextItem(*about, headers=(self._memory, self._heads[head], self._heads[head + day]), **values)

    def _antecedent(self, hit: Hit, find: Callable[[Hit], Hit | None]) -> ContextItem | None:
        antecedent = find(hit)
        return None if antecedent is None else self._hit(antecedent, note="what the next hit refers to")

    def _fact(self, fact: Hit, headers: tuple[SectionHeader, ...], *, standing: bool = False) -> ContextItem:
        about = (FACTS, "fact", fact.id, self._line(fact_line(fact)), fact, fact.text, fact.score)
        return ContextItem(*about, standing=standing, sources=fact.sources, headers=headers)

    def _block(self, block: Block) -> ContextItem:
        tokens, seq = FENCE_TOKENS + self._line(indent(block.text)), block.first_seq
        note = f"{block.strategy}: messages {seq} to {block.last_seq}"
        return ContextItem(RECENT, "block", block.messages[0].id, tokens, block, block.text, note=note, first_seq=seq)

    def _turn(self, turn: Turn) -> ContextItem:
        tokens = sum(map(self._message, turn.messages))
        text = "\n".join(message.text or "" for message in turn.messages)
        shows = frozenset(message.id for message in turn.messages)
        about = (RECENT, "turn", turn.messages[0].id, tokens, turn, text)
        return ContextItem(*about, shows=shows, first_seq=turn.first_seq)

    def _message(self, message: Message) -> int:
        """Return what a message adds: what is stored for its text, where the same counter counted it."""
        if message.counter != self.counter.name or message.parts is not None or message.tool_calls:
            return self.counter.count_message(message.as_chat())
        around = (message.role, message.name, message.tool_call_id)
        if around not in self._around:
            self._around[around] = self.counter.count_message(message.as_chat() | {"content": ""})
        return message.tokens + self._around[around]

    def _fence(self, name: str) -> SectionHeader:
        return SectionHeader(name, self.counter.count_message({"role": "system", "content": "\n".join(fence(name))}))

    def _line(self, line: str) -> int:
        return self.counter.count(f"{line}\n")
