"""Views of a conversation, which strategies make: turns are whole, or replaced by blocks. Pure.

Messages never change, so a strategy makes a view of them. Every message is in one place: in a turn, under one block, or
among what was dropped. This module enforces the rules of every strategy:

- protected turns are never touched: instructions, the newest turns, the question, results that wait for their answer;
- a call of tools and its results stay together, for strategies take turns;
- a turn belongs to the first strategy that takes it: a later one may take a block whole into a larger one, which is
  made from the messages again and not from the block's text, but never cuts it open or leaves it out;
- nothing grows: a block that is no shorter than its turns is not put in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, takewhile
from typing import Any, ClassVar, TypeAlias, TypeVar
from uuid import UUID

from memstore.models import INSTRUCTION_ROLES, Compression, Fact, Message, Role, Summary
from memstore.providers import TokenCounter

PROTECTED_TURNS = 4
MESSAGE_OVERHEAD_TOKENS = 4
FENCE_TOKENS = 24
S = TypeVar("S", bound=Any)  # a summary, or its outline


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages that go into a context together or not at all: one, or a call of tools with all its results."""

    messages: tuple[Message, ...]

    @property
    def first_seq(self) -> int:
        """The number of its first message."""
        return self.messages[0].seq

    @property
    def last_seq(self) -> int:
        """The number of its last message."""
        return self.messages[-1].seq

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Itself, as a block has the turns that it stands for."""
        return (self,)


def split_turns(messages: Sequence[Message]) -> tuple[list[Turn], list[Message]]:
    """Cut a conversation's messages, in order, into turns; return those and the messages that no API would accept.

    Every chat API rejects a tool's result without its call and a call without all its results.
    """
    turns: list[Turn] = []
    unpaired: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        results: list[Message] = []
        if message.tool_calls:
            results = list(takewhile(lambda follower: follower.role == Role.TOOL, messages[position + 1 :]))
        if message.role == Role.TOOL or (message.tool_calls and not _is_complete(message, results)):
            unpaired += [message, *results]
        else:
            turns.append(Turn((message, *results)))
        position += 1 + len(results)
    return turns, unpaired


def _is_complete(call: Message, results: Sequence[Message]) -> bool:
    """Every call is answered and nothing else is: by id where calls have ids, else by number."""
    asked = [tool_call.get("id") for tool_call in call.tool_calls or ()]
    answered = [message.tool_call_id for message in results]
    if None in asked or None in answered:
        return len(asked) == len(answered)
    return set(asked) == set(answered) and len(answered) == len(asked)


@dataclass(frozen=True, slots=True)
class Block:
    """A text that stands for turns; `tokens` are the text's.

    `since` is the number of the message with which the view came to have it: until then the turns stood there whole.
    """

    strategy: str
    text: str
    turns: tuple[Turn, ...]
    tokens: int
    since: int

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that it stands for."""
        return tuple(message for turn in self.turns for message in turn.messages)

    @property
    def first_seq(self) -> int:
        """The number of the first message."""
        return self.turns[0].first_seq

    @property
    def last_seq(self) -> int:
        """The number of the last message."""
        return self.turns[-1].last_seq


Entry: TypeAlias = Turn | Block


@dataclass(frozen=True, slots=True)
class Dropped:
    """Turns that are in no entry any more, by which strategy and why."""

    turns: tuple[Turn, ...]
    strategy: str
    reason: str


class Strategy(ABC):
    """A way to compress a view: a frozen dataclass with its options.

    `by_question`: the result depends on the question, by `view.relevance`, and is no part of a context's stable prefix.
    `by_facts`: it reads `view.facts`, which are not fetched for others.
    """

    name: ClassVar[str]
    by_question: ClassVar[bool] = False
    by_facts: ClassVar[bool] = False

    @abstractmethod
    def run(self, view: ConversationView) -> ConversationView:
        """Return the view compressed, or as it is. The same view gives the same result."""


@dataclass(frozen=True)
class ConversationView:
    """Entries in the order of the conversation, and what strategies decide by.

    `room` are the tokens that the view may count on. `relevance` gives messages that answer to the question their
    score, the higher the better. `protected` are first numbers of turns; `sizes` the tokens of every turn of the
    conversation, in order, by its first number.
    """

    entries: tuple[Entry, ...]
    room: int
    counter: TokenCounter
    sizes: Mapping[int, int]
    protected: frozenset[int]
    summaries: tuple[Summary, ...] = ()
    facts: tuple[Fact, ...] = ()
    relevance: Mapping[UUID, float] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    steps: tuple[Compression, ...] = ()

    @cached_property
    def tokens(self) -> int:
        """About the tokens of the view as it will stand in a context."""
        runs = sum(
            isinstance(entry, Block) and not (place and isinstance(self.entries[place - 1], Block))
            for place, entry in enumerate(self.entries)
        )
        return sum(self.size(entry) for entry in self.entries) + runs * FENCE_TOKENS

    def turns_before(self, newest: int) -> list[Turn]:
        """Return the whole turns, without those among the `newest` turns of the conversation."""
        before = {*list(self.sizes)[: max(0, len(self.sizes) - newest)]}
        return [entry for entry in self.entries if isinstance(entry, Turn) and entry.first_seq in before]

    def size(self, entry: Entry) -> int:
        """Return the tokens of an entry."""
        return entry.tokens if isinstance(entry, Block) else self.sizes[entry.first_seq]

    def whole(self, entry: Entry) -> int:
        """Return the tokens of the turns of an entry before anything was compressed."""
        return sum(self.sizes[turn.first_seq] for turn in entry.turns)

    def is_protected(self, entry: Entry) -> bool:
        """Return whether the entry must stay as it is."""
        return entry.first_seq in self.protected

    def block(self, strategy: Strategy, entries: Sequence[Entry], text: str, since: int) -> Block:
        """Return a block for entries that stand side by side."""
        covered = tuple(turn for entry in entries for turn in entry.turns)
        return Block(strategy.name, text, covered, self.counter.count(f"{text}\n"), since)

    def with_blocks(self, blocks: Sequence[Block]) -> ConversationView:
        """Return the view with blocks in the place of what they stand for, where they are shorter.

        Raises ValueError where a block takes a protected turn or a part of another block.
        """
        block_of = {turn.first_seq: block for block in blocks for turn in block.turns}
        entries: list[Entry] = []
        for block, group in groupby(self.entries, key=lambda entry: block_of.get(entry.first_seq)):
            taken = list(group)
            if block is None:
                entries += taken
                continue
            covered = tuple(turn for entry in taken for turn in entry.turns)
            if covered != block.turns or any(map(self.is_protected, taken)):
                raise ValueError(f"A block takes what is not to be taken: the turn {taken[0].first_seq}")
            shorter = block.tokens + FENCE_TOKENS < sum(map(self.size, taken))
            entries += [block] if shorter else taken
        return replace(self, entries=tuple(entries))

    def without(self, strategy: Strategy, turns: Sequence[Turn], reason: str) -> ConversationView:
        """Return the view without these turns; protected ones, and what another strategy has taken, stay."""
        gone = {turn.first_seq for turn in turns} - self.protected
        left_out = [entry for entry in self.entries if isinstance(entry, Turn) and entry.first_seq in gone]
        if not left_out:
            return self
        entries = tuple(entry for entry in self.entries if isinstance(entry, Block) or entry.first_seq not in gone)
        dropped = Dropped(tuple(left_out), strategy.name, reason)
        return replace(self, entries=entries, dropped=(*self.dropped, dropped))

    def runs(self, begin: int, end: int) -> list[list[Entry]]:
        """Return the entries from index `begin` to before `end` that may be taken, as runs between protected ones."""
        groups = groupby(self.entries[begin:end], key=self.is_protected)
        return [list(run) for is_protected, run in groups if not is_protected]


def view_of(
    turns: Sequence[Turn],
    room: int,
    counter: TokenCounter,
    *,
    keep: frozenset[int] = frozenset(),
    summaries: Sequence[Summary] = (),
    facts: Sequence[Fact] = (),
    relevance: Mapping[UUID, float] | None = None,
) -> ConversationView:
    """Return the view of a conversation in which nothing is compressed.

    The newest turns are protected, and those whose first numbers are in `keep`.
    """
    instructions = {turn.first_seq for turn in turns if turn.messages[0].role in INSTRUCTION_ROLES}
    return ConversationView(
        entries=tuple(turns),
        room=room,
        counter=counter,
        sizes={turn.first_seq: sum(_tokens_of(message, counter) for message in turn.messages) for turn in turns},
        protected=frozenset(instructions | keep | {turn.first_seq for turn in turns[-PROTECTED_TURNS:]}),
        summaries=tuple(summaries),
        facts=tuple(facts),
        relevance=relevance or {},
    )


def _tokens_of(message: Message, counter: TokenCounter) -> int:
    """Return about the tokens of a message: what is stored, where the same counter counted it."""
    if message.counter == counter.name:
        return message.tokens + MESSAGE_OVERHEAD_TOKENS
    return counter.count_message(message.as_chat())


def compress(view: ConversationView, strategies: Sequence[Strategy]) -> ConversationView:
    """Return the view after these strategies, one after the other, each once."""
    for place, strategy in enumerate(strategies):
        if strategy in strategies[:place]:
            continue
        after = strategy.run(view)
        if after.entries != view.entries:
            kept = set(map(id, after.entries))
            turns = sum(len(entry.turns) for entry in view.entries if id(entry) not in kept)
            step = Compression(strategy.name, view.tokens, after.tokens, turns)
            after = replace(after, steps=(*view.steps, step))
        view = after
    return view


# The cover: which summaries stand for what is older than the recent turns. Old coarse, near fine.


class _SummaryTree:
    """Summaries, each followed by those under it.

    The ones under a summary are looked up on demand: a cover refines few.
    """

    def __init__(self, summaries: Iterable[S], upto_seq: int) -> None:
        self.ordered = sorted(summaries, key=lambda each: (each.from_seq, -each.to_seq, -each.level, each.id))
        self._starts = [summary.from_seq for summary in self.ordered]
        self._upto_seq = upto_seq

    def siblings(self, place: int, to_seq: float) -> list[int]:
        """Return the places, from one on, of the largest summaries up to a message."""
        places = []
        while place < len(self._starts) and self._starts[place] <= to_seq:
            places.append(place)
            place = bisect_right(self._starts, self.ordered[place].to_seq, place)
        return places

    def children(self, place: int) -> tuple[list[int], int]:
        """Return the places of those right under a summary, and how much longer they are; none where they leave out
        messages: refining must lose none."""
        summary = self.ordered[place]
        under = self.siblings(place + 1, summary.to_seq)
        reach = summary.from_seq
        for child in under:
            if self._starts[child] != reach:
                break
            reach = self.ordered[child].to_seq + 1
        if reach <= min(summary.to_seq, self._upto_seq):
            return [], 0
        return under, sum(self.ordered[child].tokens for child in under) - summary.tokens


def cover(summaries: Sequence[S], upto_seq: int, tokens: int) -> list[S]:
    """Return the finest summaries that cover the messages up to `upto_seq` within `tokens`, the newest first.

    `summaries` are those of one conversation in any order, of level 1 and above; others (level 0, made on demand) take
    no part. Each message up to `upto_seq` that is under one of them is under exactly one of those returned; the newest
    may reach beyond `upto_seq`, where no finer one that fits ends nearer to it.

    The coarsest come first: as many as fit, without a gap from the newest on, so where even they are too many the
    oldest are left out. Then each is replaced by the finer ones under it while they fit, the newest first. So with more
    tokens never fewer messages are covered, and nothing that is returned could be refined within the tokens left.
    """
    covering = [summary for summary in summaries if summary.level >= 1 and summary.from_seq <= upto_seq]
    tree = _SummaryTree(covering, upto_seq)
    chosen: list[int] = []
    for root in reversed(tree.siblings(0, math.inf)):
        if tree.ordered[root].tokens > tokens:
            break
        chosen.append(root)
        tokens -= tree.ordered[root].tokens
    place = 0
    while place < len(chosen):
        under, longer_by = tree.children(chosen[place])
        if under and longer_by <= tokens:
            tokens -= longer_by
            chosen[place : place + 1] = reversed(under)
            if longer_by < 0:
                # Others may fit now.
                place = 0
        else:
            place += 1
    return [tree.ordered[position] for position in chosen]
