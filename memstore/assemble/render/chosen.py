"""What goes into a context, and the order in which it stands there in every format. Pure.

    system prompt · the user's steady sections · standing facts · summaries of this conversation · recent turns │
    the user's other sections · facts and hits for this question · the question

What stands before the bar follows from what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from itertools import groupby

from memstore.assemble.render.fenced import added_text, memory_text, record_text, standing_text, summaries_text
from memstore.assemble.render.identified import identified
from memstore.assemble.strategies.view import Block, Entry
from memstore.models import Hit, Json, Message, Summary


@dataclass(frozen=True, slots=True)
class Added:
    """A section of the user's own, with its texts."""

    name: str
    texts: Sequence[str]


class Kind(Enum):
    """What a part of a context is."""

    SYSTEM = auto()
    STEADY = auto()
    STANDING = auto()
    SUMMARIES = auto()
    RECORD = auto()
    MESSAGE = auto()
    ADDED = auto()
    MEMORY = auto()
    QUESTION = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a context as a message of OpenAI's; `stored` is the message that it is, where it is one."""

    kind: Kind
    message: Json
    stored: Message | None = None

    @property
    def role(self) -> str:
        """Who speaks."""
        return str(self.message["role"])


@dataclass(frozen=True)
class Chosen:
    """What goes into a context, in the order in which it was chosen.

    `steady` and `standing` are at the start of every context of this conversation, `added` just before the question.
    """

    system: str | None = None
    summaries: Sequence[Summary] = ()
    turns: Sequence[Entry] = ()
    facts: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    question: Json | None = None
    question_seq: int | None = None
    steady: Sequence[Added] = ()
    standing: Sequence[Hit] = ()
    added: Sequence[Added] = ()

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the context in their order."""
        question = [Part(Kind.QUESTION, self.question)] if self.question else []
        memory = _told(Kind.MEMORY, memory_text(self.facts, self.hits))
        added = added_parts(Kind.ADDED, self.added)
        return [*self.parts_before, *added, *memory, *question, *spoken_parts(self.after)]

    @cached_property
    def parts_before(self) -> list[Part]:
        """The parts that follow from what is stored."""
        system = [Part(Kind.SYSTEM, _system(self.system))] if self.system is not None else []
        steady = [*added_parts(Kind.STEADY, self.steady), *_told(Kind.STANDING, standing_text(self.standing))]
        return [*system, *steady, *_told(Kind.SUMMARIES, summaries_text(self.summaries)), *spoken_parts(self.before)]

    @property
    def before(self) -> list[Entry]:
        """The turns before the question, in the order of the conversation."""
        return [turn for turn in self._ordered if self.question_seq is None or turn.first_seq < self.question_seq]

    @property
    def after(self) -> list[Entry]:
        """The turns after the question, such as the results of tools that the model waits for."""
        return [turn for turn in self._ordered if self.question_seq is not None and turn.first_seq >= self.question_seq]

    @property
    def _ordered(self) -> list[Entry]:
        return sorted(self.turns, key=lambda turn: turn.first_seq)


def parts(chosen: Chosen) -> list[Part]:
    """Give the parts of a context in their order, for formats of users' own."""
    return list(chosen.parts)


def added_parts(kind: Kind, sections: Iterable[Added]) -> list[Part]:
    """Give the user's own sections, a part each."""
    return [part for one in sections for part in _told(kind, added_text(one.name, one.texts))]


def spoken_parts(turns: Iterable[Entry]) -> list[Part]:
    """Give the messages of turns in the order of the conversation; blocks side by side are one record."""
    ordered = sorted(turns, key=lambda turn: turn.first_seq)
    found: list[Part] = []
    for recorded, group in groupby(ordered, key=lambda entry: isinstance(entry, Block)):
        if recorded:
            found += _told(Kind.RECORD, record_text([entry for entry in group if isinstance(entry, Block)]))
        else:
            found += [part for entry in group for part in _messages(entry)]
    return found


def _messages(entry: Entry) -> Iterator[Part]:
    for message, chat in zip(entry.messages, identified(entry.messages), strict=True):
        yield Part(Kind.MESSAGE, chat, message)


def _told(kind: Kind, text: str) -> list[Part]:
    return [Part(kind, _system(text))] if text else []


def _system(text: str) -> Json:
    return {"role": "system", "content": text}
