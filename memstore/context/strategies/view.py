"""A conversation as one context shall see it: turns kept whole, and blocks that stand for turns. Pure.

Messages never change, so a strategy makes a view of them. Every message is in one place: in a turn, under one block, or
among what was left out. What holds for every strategy is held here:

- the floor is never touched: instructions, the newest turns, the question, results that wait for their answer;
- a call of tools and its results stay together, for strategies take turns;
- who takes a turn has it: a later strategy may take a block whole into a larger one, which is made from the messages
  again and not from the block's text, but never cuts it open or leaves it out;
- nothing grows: a block that would be no shorter than what it stands for is not put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias
from uuid import UUID

from memstore.context.turns import Turn
from memstore.models import Compression, Fact, Message, Role, Summary
from memstore.providers import TokenCounter

FLOOR = 4  # the newest turns, which are never compressed
MESSAGE = 4  # tokens of a message besides its content, about
FENCE = 24  # tokens around blocks that stand together, about
INSTRUCTIONS = frozenset({Role.SYSTEM, Role.DEVELOPER})


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
        return self.turns[-1].messages[-1].seq


Entry: TypeAlias = Turn | Block


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A turn that is in no entry any more, by which strategy and why."""

    turn: Turn
    strategy: str
    reason: str


class Strategy(Protocol):
    """A way to compress a view. Frozen and compared by its options, so that a view knows which ones it has been by.

    One whose result depends on the question, by `view.relevance`, says so with an attribute `by_question = True`: what
    it leaves is then not part of a context's stable prefix. One that reads `view.facts` says `by_facts = True`: for
    others they are not fetched.
    """

    @property
    def name(self) -> str:
        """The name in settings and receipts."""

    def should_run(self, view: View) -> bool:
        """Whether there is anything to compress."""

    def run(self, view: View) -> View:
        """Give the view compressed. The same view gives the same result."""


@dataclass(frozen=True)
class View:
    """Entries in the order of the conversation, and what strategies decide by.

    `room` are the tokens that the view may count on. `relevance` gives messages that answer to the question their
    score, the higher the better. `floor` are first numbers of turns; `sizes` the tokens of every turn of the
    conversation, in order, by its first number.
    """

    entries: tuple[Entry, ...]
    room: int
    counter: TokenCounter
    sizes: Mapping[int, int]
    floor: frozenset[int]
    summaries: tuple[Summary, ...] = ()
    facts: tuple[Fact, ...] = ()
    relevance: Mapping[UUID, float] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    steps: tuple[Compression, ...] = ()
    considered: tuple[Strategy, ...] = ()

    @cached_property
    def tokens(self) -> int:
        """About the tokens of the view as it will stand in a context."""
        runs = sum(
            isinstance(entry, Block) and not (place and isinstance(self.entries[place - 1], Block))
            for place, entry in enumerate(self.entries)
        )
        return sum(self.size(entry) for entry in self.entries) + runs * FENCE

    @property
    def count(self) -> int:
        """The number of turns of the conversation."""
        return len(self.sizes)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {seq: place for place, seq in enumerate(self.sizes)}

    def place(self, turn: Turn) -> int:
        """Give the index of a turn in the conversation."""
        return self._places[turn.first_seq]

    def size(self, entry: Entry) -> int:
        """Give the tokens of an entry."""
        return entry.tokens if isinstance(entry, Block) else self.sizes[entry.first_seq]

    def whole(self, entry: Entry) -> int:
        """Give the tokens of the turns of an entry before anything was compressed."""
        return sum(self.sizes[turn.first_seq] for turn in turns_of(entry))

    def fixed(self, entry: Entry) -> bool:
        """Whether the entry belongs to the floor."""
        return entry.first_seq in self.floor

    def block(self, strategy: Strategy, entries: Sequence[Entry], text: str, since: int) -> Block:
        """Give a block for entries that stand side by side."""
        covered = tuple(turn for entry in entries for turn in turns_of(entry))
        return Block(strategy.name, text, covered, self.counter.count(f"{text}\n"), since)

    def with_blocks(self, blocks: Sequence[Block]) -> View:
        """Give the view with blocks in the place of what they stand for, where they are shorter.

        Raises ValueError where a block takes a turn of the floor or a part of another block.
        """
        found = {turn.first_seq: block for block in blocks for turn in block.turns}
        taken: dict[int, list[Entry]] = {}
        for entry in self.entries:
            over = {id(found.get(turn.first_seq)): found.get(turn.first_seq) for turn in turns_of(entry)}
            block = next(iter(over.values()))
            if len(over) > 1 or (block is not None and self.fixed(entry)):
                raise ValueError(f"A block takes what is not to be taken: the turn {entry.first_seq}")
            if block is not None:
                taken.setdefault(id(block), []).append(entry)
        shorter = {
            id(block): block
            for block in blocks
            if block.tokens + FENCE < sum(self.size(entry) for entry in taken.get(id(block), ()))
        }
        entries: list[Entry] = []
        for entry in self.entries:
            stands = shorter.get(id(found.get(entry.first_seq)))
            if stands is None:
                entries.append(entry)
            elif not entries or entries[-1] is not stands:
                entries.append(stands)
        return replace(self, entries=tuple(entries))

    def without(self, strategy: Strategy, turns: Sequence[Turn], reason: str) -> View:
        """Give the view without these turns; those of the floor, and what another strategy has taken, stay."""
        gone = {turn.first_seq for turn in turns} - self.floor
        left = [entry for entry in self.entries if isinstance(entry, Turn) and entry.first_seq in gone]
        entries = tuple(entry for entry in self.entries if isinstance(entry, Block) or entry.first_seq not in gone)
        added = tuple(LeftOut(turn, strategy.name, reason) for turn in left)
        return replace(self, entries=entries, left_out=self.left_out + added)

    def runs(self, begin: int, end: int) -> list[list[Entry]]:
        """Give the entries from index `begin` to before `end` that may be taken, as runs that the floor parts."""
        found: list[list[Entry]] = [[]]
        for entry in self.entries[begin:end]:
            if self.fixed(entry):
                found.append([])
            else:
                found[-1].append(entry)
        return [run for run in found if run]


def turns_of(entry: Entry) -> tuple[Turn, ...]:
    """Give the turns of an entry."""
    return entry.turns if isinstance(entry, Block) else (entry,)


def view_of(
    turns: Sequence[Turn],
    room: int,
    counter: TokenCounter,
    *,
    floor: int = FLOOR,
    keep: frozenset[int] = frozenset(),
    summaries: Sequence[Summary] = (),
    facts: Sequence[Fact] = (),
    relevance: Mapping[UUID, float] | None = None,
) -> View:
    """Give the view of a conversation in which nothing is compressed; `keep` are first numbers of turns to be kept."""
    instructions = {turn.first_seq for turn in turns if turn.messages[0].role in INSTRUCTIONS}
    newest = {turn.first_seq for turn in turns[len(turns) - max(1, floor) :]} if len(turns) > floor else None
    fixed = instructions | keep | (newest if newest is not None else {turn.first_seq for turn in turns})
    return View(
        entries=tuple(turns),
        room=room,
        counter=counter,
        sizes={turn.first_seq: sum(tokens_of(message, counter) for message in turn.messages) for turn in turns},
        floor=frozenset(fixed),
        summaries=tuple(summaries),
        facts=tuple(facts),
        relevance=relevance or {},
    )


def tokens_of(message: Message, counter: TokenCounter) -> int:
    """Give about the tokens of a message: what is stored, where the same counter counted it."""
    return message.tokens + MESSAGE if message.counter == counter.name else counter.count_message(message.as_chat())


def compress(view: View, strategies: Sequence[Strategy]) -> View:
    """Give the view after these strategies, one after the other; each is asked once in a view's life."""
    for strategy in strategies:
        if strategy in view.considered:
            continue
        after = strategy.run(view) if strategy.should_run(view) else view
        steps = view.steps
        if after.entries != view.entries:
            steps = (*steps, Compression(strategy.name, view.tokens, after.tokens, _taken(view, after)))
        view = replace(after, steps=steps, considered=(*view.considered, strategy))
    return view


def _taken(before: View, after: View) -> int:
    """Count the turns that are not in the entry that they were in."""
    kept = set(map(id, after.entries))
    return sum(len(turns_of(entry)) for entry in before.entries if id(entry) not in kept)
