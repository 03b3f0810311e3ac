"""How a conversation is compressed: for `conversation.update(strategy=…)` and `context(strategy=…)`.

A strategy of one's own is a frozen class with `name` and `run`, as `Strategy` says; see docs/reference/strategies.md.
base: turns, blocks, and the view that strategies compress · buffers: strategies that shorten turns. Here are those that
leave turns out (old ones, or those unrelated to the question), strategies by name, and lists of them as JSON. Pure,
with no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias, TypeGuard

from memstore.errors import InvalidInput
from memstore.models import Json
from memstore.strategies.base import (
    Block as Block,
    ConversationView as ConversationView,
    Strategy as Strategy,
    Turn,
    check_options,
    compress as compress,
    view_of as view_of,
)
from memstore.strategies.buffers import (
    GoalBatch as GoalBatch,
    Hierarchical as Hierarchical,
    SummaryBuffer as SummaryBuffer,
    Threshold as Threshold,
    ToolCalls as ToolCalls,
)


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """The newest `turns` turns stay."""

    turns: int = 40
    name: ClassVar[str] = "sliding_window"

    def __post_init__(self) -> None:
        check_options(self)

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view without the turns before the window."""
        turns = [entry for entry in view.entries if isinstance(entry, Turn)]
        before = [turn for turn in turns if view.index(turn) < view.count - self.turns]
        return view.without(self, before, f"older than the newest {self.turns} turns")


@dataclass(frozen=True, slots=True)
class Semantic:
    """Retrieved instead of recent: the newest `recent` turns stay, and of the others those that answer to the question.

    The best of them are taken until `share` of the room is full, and stand in their old order. Without a question, or
    where nothing answers to it, nothing is done. The choice depends on the question, so the prompt cannot be cached by
    a model's server.
    """

    recent: int = 6
    share: float = 0.6
    name: ClassVar[str] = "semantic"
    by_question: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self, zero=("recent",))

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view without the older turns that were not retrieved."""
        if not view.relevance:
            return view
        older = [
            entry for entry in view.entries if isinstance(entry, Turn) and view.index(entry) < view.count - self.recent
        ]
        room = self.share * view.room
        gone = []
        for turn in sorted(older, key=lambda turn: (-_score(view, turn), -turn.first_seq)):
            if view.size(turn) > room or not _score(view, turn):
                gone.append(turn)
            else:
                room -= view.size(turn)
        return view.without(self, gone, "not what the question asks for")


def _score(view: ConversationView, turn: Turn) -> float:
    return max(view.relevance.get(message.id, 0.0) for message in turn.messages)


STRATEGY_KINDS: dict[str, type[Any]] = {
    kind.name: kind for kind in (SlidingWindow, SummaryBuffer, Hierarchical, ToolCalls, Threshold, GoalBatch, Semantic)
}
# A strategy, its name, its name and options as JSON, or a list of these.
One: TypeAlias = "Strategy | str | Json"
Strategies: TypeAlias = "One | Sequence[One]"


def get_strategies(choice: Strategies) -> tuple[Strategy, ...]:
    """Return strategies from names, JSON objects or strategies, in order. Raises `InvalidInput`, which lists the known.

    >>> get_strategies(["tool_calls", {"strategy": "summary_buffer", "trigger": 0.9}])
    (ToolCalls(older_than=10, share=0.6, least=40, most=300), SummaryBuffer(trigger=0.9, target=0.6, summary=0.2))
    """
    listed = choice if isinstance(choice, list | tuple) else [choice]
    return tuple(_get_strategy(item) for item in listed)


def as_json(choice: Strategies) -> list[Json]:
    """Return strategies as settings keep them. Raises `InvalidInput` for strategies that have no name there."""
    strategies = get_strategies(choice)
    for strategy in strategies:
        if not _is_known(strategy):
            raise InvalidInput(
                f"{strategy!r} cannot be kept with a conversation, only given to context(); {_known_names()}."
            )
    return describe_strategies(strategies)


def describe_strategies(strategies: Iterable[Strategy]) -> list[Json]:
    """Return strategies as a receipt has them: of one's own the name alone."""
    return [{"strategy": strategy.name} | (asdict(strategy) if _is_known(strategy) else {}) for strategy in strategies]  # type: ignore[call-overload]


def _is_known(strategy: Strategy) -> bool:
    return type(strategy) is STRATEGY_KINDS.get(strategy.name)


def _get_strategy(item: object) -> Strategy:
    if isinstance(item, str):
        item = {"strategy": item}
    if _is_strategy(item):
        return item
    if not isinstance(item, dict):
        raise InvalidInput(
            f"{item!r} is no strategy: give a name, a strategy, or a name with options; {_known_names()}."
        )
    kind = STRATEGY_KINDS.get(str(item.get("strategy")))
    if kind is None:
        raise InvalidInput(f"The strategy {item.get('strategy')!r} is unknown; {_known_names()}.")
    options = {key: value for key, value in item.items() if key != "strategy"}
    names = [option.name for option in fields(kind)]
    if unknown := set(options) - set(names):
        raise InvalidInput(f"{kind.name} has no option {', '.join(sorted(unknown))}; it has {', '.join(names)}.")
    strategy: Strategy = kind(**options)
    return strategy


def _is_strategy(item: object) -> TypeGuard[Strategy]:
    return not isinstance(item, type) and all(hasattr(item, name) for name in ("name", "run"))


def _known_names() -> str:
    return f"known are {', '.join(sorted(STRATEGY_KINDS))}"
