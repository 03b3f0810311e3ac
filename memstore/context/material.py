"""What a context is made of, and what it is made for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memstore.context.formats import OPENAI, Format
from memstore.context.strategies.view import Entry
from memstore.context.turns import Turn
from memstore.models import Compression, Decision, Hit, Json, Reason, Section, Summary
from memstore.providers import TokenCounter


@dataclass(frozen=True, slots=True)
class Material:
    """What a context may be made of, each in the order of preference; recent turns the newest first.

    `standing` are facts that are in whatever is asked; they are no part of `facts`. `sections` are the user's limits
    and texts. Turns may be blocks that strategies made of them, and `compressed` is what those did; turns are `steady`
    where another question would have made the same of them. `question` is the message to be answered, with its number
    where it is one of the conversation's; `ending` are the turns after it that must be there too: results of tools that
    the model waits for. `left_out` are decisions taken, `unlisted` how many candidates were looked at and are not
    offered, by reason.
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
    sections: Sequence[Section] = ()
    left_out: Sequence[Decision] = ()
    compressed: Sequence[Compression] = ()
    steady: bool = True
    unlisted: Mapping[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
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
