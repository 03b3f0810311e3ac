"""What a format is, and how what it makes is counted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Protocol, TypeVar

from memstore.assemble.render.chosen import Chosen
from memstore.assemble.strategies.view import Entry
from memstore.models import Json
from memstore.providers import Count, TokenCounter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A finished context: chat messages, with the system prompt apart where the format has it so, or one text."""

    messages: list[Json] = field(default_factory=list)
    system: str | None = None
    text: str | None = None

    @property
    def whole(self) -> list[Json]:
        """What is counted as messages: those of the chat, the system prompt first."""
        return [*([{"role": "system", "content": self.system}] if self.system is not None else []), *self.messages]

    @property
    def sent(self) -> list[Json]:
        """What is sent, as one list for digests and receipts: a text is one message of a user's."""
        return self.whole if self.text is None else [{"role": "user", "content": self.text}]


class Format(Protocol):
    """A way to write a context. Pure: the same material gives the same bytes."""

    @property
    def name(self) -> str:
        """The name in receipts."""

    def render(self, chosen: Chosen) -> Rendered:
        """Give the context."""


def counted(rendered: Rendered, counter: TokenCounter, tools: Sequence[Json] = ()) -> Count:
    """Give the tokens of a finished context: of its text, or of its chat with all that is around the messages.

    Definitions of `tools` are sent beside either.
    """
    if rendered.text is None:
        return counter.count_messages(rendered.whole, tools)
    none = counter.count_messages([])
    beside = counter.count_messages([], tools) - none if tools else 0
    return Count(counter.count(rendered.text) + beside, none.kind)


def shared_tokens(one: Rendered, other: Rendered, counter: TokenCounter) -> int:
    """Give the tokens of what both begin with: whole messages, or a text up to the end of a line."""
    if one.text is None or other.text is None:
        return sum(counter.count_message(message) for message in _shared(one.whole, other.whole))
    lines = _shared(one.text.splitlines(keepends=True), other.text.splitlines(keepends=True))
    return counter.count("".join(lines))


def _shared(one: Sequence[T], other: Sequence[T]) -> list[T]:
    return [first for first, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))]


def section_tokens(chosen: Chosen, ending: Collection[Entry], format: Format, counter: TokenCounter) -> dict[str, int]:
    """Give the tokens of each section, and of `overhead`; they add up to the whole. `ending` are turns of the question.

    Each is what it adds to those before it, the system prompt and the question being the first: only so are figures
    right where messages are merged, or where a text has a heading for a section.
    """
    tokens: int = counted(format.render(Chosen()), counter)
    found, before = {"overhead": int(tokens)}, int(tokens)
    for name, stage in _stages(chosen, ending):
        tokens = counted(format.render(stage), counter)
        found[name] = found.get(name, 0) + tokens - before
        before = tokens
    last = {name: found.pop(name) for name in ("question", "overhead")}
    return found | last


def _stages(chosen: Chosen, ending: Collection[Entry]) -> Iterator[tuple[str, Chosen]]:
    last = Chosen(system=chosen.system)
    yield "system", last
    last = replace(last, question=chosen.question, question_seq=chosen.question_seq, turns=list(ending))
    yield "question", last
    for place, one in enumerate(chosen.steady, 1):
        last = replace(last, steady=chosen.steady[:place])
        yield one.name, last
    last = replace(last, summaries=chosen.summaries)
    yield "summaries", last
    last = replace(last, turns=chosen.turns)
    yield "recent", last
    last = replace(last, standing=chosen.standing, facts=chosen.facts)
    yield "facts", last
    for place, one in enumerate(chosen.added, 1):
        last = replace(last, added=chosen.added[:place])
        yield one.name, last
    yield "hits", chosen
