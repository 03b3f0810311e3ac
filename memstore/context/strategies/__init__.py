"""How a conversation is compressed for a context: strategies by name, and lists of them as JSON. Pure, with no model.

base: turns, blocks, and the view that strategies compress · windows: leave turns out · buffers: summarize when there is
too much · tool_calls, goals: tell what was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, TypeGuard

from memstore.context.strategies.base import Strategy
from memstore.context.strategies.buffers import Hierarchical, SummaryBuffer, Threshold
from memstore.context.strategies.goals import GoalBatch
from memstore.context.strategies.tool_calls import ToolCalls
from memstore.context.strategies.windows import Semantic, SlidingWindow
from memstore.errors import InvalidInput
from memstore.models import Json

KNOWN: dict[str, type[Any]] = {
    kind.name: kind for kind in (SlidingWindow, SummaryBuffer, Hierarchical, ToolCalls, Threshold, GoalBatch, Semantic)
}
MOST = 20  # strategies in a list
# A strategy, its name, its name and options as JSON, or a list of these.
One: TypeAlias = "Strategy | str | Json"
Strategies: TypeAlias = "One | Sequence[One]"


def get_strategies(given: Strategies) -> tuple[Strategy, ...]:
    """Return strategies from names, JSON objects or strategies, in order. Raises `InvalidInput`, which lists the known.

    >>> get_strategies(["tool_calls", {"strategy": "summary_buffer", "trigger": 0.9}])
    (ToolCalls(older_than=10, share=0.6, least=40, most=300), SummaryBuffer(trigger=0.9, target=0.6, summary=0.2))
    """
    listed = given if isinstance(given, list | tuple) else [given]
    if len(listed) > MOST:
        raise InvalidInput(f"{len(listed)} strategies are more than the {MOST} that a context may have.")
    return tuple(_get_strategy(one) for one in listed)


def read_stored(stored: object) -> tuple[list[Strategy], list[Json], list[str]]:
    """Return the strategies of what is kept, all of it as JSON, and for each one that this version cannot make why.

    What another version kept must not stop a context: such a strategy is left as it is, and out.
    """
    found: list[Strategy] = []
    written: list[Json] = []
    unknown: list[str] = []
    for one in stored if isinstance(stored, list | tuple) else [stored]:
        try:
            strategy = _get_strategy(one)
            found.append(strategy)
            written += as_json(strategy)
        except InvalidInput as error:
            name = one.get("strategy") if isinstance(one, dict) else one
            written.append(one if isinstance(one, dict) else {"strategy": one})
            unknown.append(
                f"strategy {name!r:.60} is not known to this version as it is kept, and was left out: {error}"
            )
    return found, written, unknown


def as_json(given: Strategies) -> list[Json]:
    """Return strategies as settings keep them. Raises `InvalidInput` for strategies that have no name there."""
    strategies = get_strategies(given)
    for strategy in strategies:
        if not _is_known(strategy):
            raise InvalidInput(
                f"{strategy!r} cannot be kept with a conversation, only given to context(); {_known_names()}."
            )
    return describe_strategies(strategies)


def describe_strategies(strategies: Iterable[Strategy]) -> list[Json]:
    """Return strategies as a receipt has them: of one's own the name alone."""
    described = []
    for strategy in strategies:
        options = fields(KNOWN[strategy.name]) if _is_known(strategy) else ()
        described.append({"strategy": strategy.name} | {one.name: getattr(strategy, one.name) for one in options})
    return described


def _is_known(strategy: Strategy) -> bool:
    return type(strategy) is KNOWN.get(strategy.name)


def _get_strategy(one: object) -> Strategy:
    if isinstance(one, str):
        one = {"strategy": one}
    if _is_strategy(one):
        return one
    if not isinstance(one, dict):
        raise InvalidInput(
            f"{one!r} is no strategy: give a name, a strategy, or a name with options; {_known_names()}."
        )
    kind = KNOWN.get(str(one.get("strategy")))
    if kind is None:
        raise InvalidInput(f"The strategy {one.get('strategy')!r} is unknown; {_known_names()}.")
    options = {key: value for key, value in one.items() if key != "strategy"}
    names = [option.name for option in fields(kind)]
    if unknown := set(options) - set(names):
        raise InvalidInput(f"{kind.name} has no option {', '.join(sorted(unknown))}; it has {', '.join(names)}.")
    strategy: Strategy = kind(**options)
    return strategy


def _is_strategy(one: object) -> TypeGuard[Strategy]:
    return not isinstance(one, type) and all(hasattr(one, name) for name in ("name", "should_run", "run"))


def _known_names() -> str:
    return f"known are {', '.join(sorted(KNOWN))}"
