"""How a conversation is compressed: for `conversation.update(strategy=…)` and `context(strategy=…)`.

A strategy of one's own is a frozen subclass of `Strategy`; see docs/reference/strategies.md.
base: turns, blocks, and the view that strategies compress · buffers: strategies that shorten turns. Here are those that
leave turns out (old ones, or those unrelated to the question), strategies by name, and lists of them as JSON. Pure,
with no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any, ClassVar, TypeAlias

from memstore.errors import InvalidInput
from memstore.models import Json
from memstore.strategies.base import (
    Block as Block,
    ConversationView as ConversationView,
    Strategy as Strategy,
    Turn,
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
class SlidingWindow(Strategy):
    """The newest `turns` turns stay."""

    turns: int = 40
    name: ClassVar[str] = "sliding_window"

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view without the turns before the window."""
        return view.without(self, view.turns_before(self.turns), f"older than the newest {self.turns} turns")


@dataclass(frozen=True, slots=True)
class Semantic(Strategy):
    """Retrieved instead of recent: the newest `recent` turns stay, and of the others those that answer to the question.

    The best of them are taken until `share` of the room is full, and stand in their old order. Without a question, or
    where nothing answers to it, nothing is done. The choice depends on the question, so the prompt cannot be cached by
    a model's server.
    """

    recent: int = 6
    share: float = 0.6
    name: ClassVar[str] = "semantic"
    by_question: ClassVar[bool] = True

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view without the older turns that were not retrieved."""
        if not view.relevance:
            return view
        room = self.share * view.room
        gone = []
        for turn in sorted(view.turns_before(self.recent), key=lambda turn: (-_score(view, turn), -turn.first_seq)):
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
    return tuple(map(_get_strategy, choice if isinstance(choice, list | tuple) else [choice]))


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


def _get_strategy(item: object) -> Strategy:
    if isinstance(item, str | dict):
        item = _from_json(item if isinstance(item, dict) else {"strategy": item})
    if not isinstance(item, Strategy):
        raise InvalidInput(
            f"{item!r} is no strategy: give a name, a strategy, or a name with options; {_known_names()}."
        )
    if _is_known(item):
        _check_options(item)
    return item


def _from_json(given: Json) -> Strategy:
    kind = STRATEGY_KINDS.get(str(given.get("strategy")))
    if kind is None:
        raise InvalidInput(f"The strategy {given.get('strategy')!r} is unknown; {_known_names()}.")
    options = {key: value for key, value in given.items() if key != "strategy"}
    names = [option.name for option in fields(kind)]
    if unknown := set(options) - set(names):
        raise InvalidInput(f"{kind.name} has no option {', '.join(sorted(unknown))}; it has {', '.join(names)}.")
    strategy: Strategy = kind(**options)
    return strategy


def _check_options(strategy: Any) -> None:
    """Raise `InvalidInput` for what is no option's value: numbers are whole, shares above 0 and at most 1."""
    for option in fields(strategy):
        value = getattr(strategy, option.name)
        setting = f"{strategy.name}: {option.name}={value!r}"
        if option.type == "int" and (type(value) is not int or not 0 <= value <= 1_000_000):
            raise InvalidInput(f"{setting}: give a whole number from 0 to 1000000.")
        if option.type == "float" and (type(value) not in (int, float) or not 0 < value <= 1):
            raise InvalidInput(f"{setting}: give a share above 0 and at most 1.")
    if isinstance(strategy, SummaryBuffer):
        trigger, target, summary = astuple(strategy)
        if not trigger > target > summary:
            raise InvalidInput(f"{strategy!r}: each option must be above the next.")
    if isinstance(strategy, Hierarchical) and strategy.recent + strategy.summary + strategy.facts > 1:
        raise InvalidInput(f"{strategy!r}: recent, summary and facts are more than the whole room.")


def _is_known(strategy: Strategy) -> bool:
    return type(strategy) is STRATEGY_KINDS.get(strategy.name)


def _known_names() -> str:
    return f"known are {', '.join(sorted(STRATEGY_KINDS))}"
