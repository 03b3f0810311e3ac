"""Strategies by name, and lists of them as JSON: what is kept in the settings of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, TypeGuard

from memstore.context.strategies.buffers import Hierarchical, SummaryBuffer, Threshold
from memstore.context.strategies.goals import GoalBatch
from memstore.context.strategies.tool_calls import ToolCalls
from memstore.context.strategies.view import Strategy
from memstore.context.strategies.windows import Semantic, SlidingWindow
from memstore.errors import InvalidInput
from memstore.models import Json

KNOWN: dict[str, type[Any]] = {
    made.name: made for made in (SlidingWindow, SummaryBuffer, Hierarchical, ToolCalls, Threshold, GoalBatch, Semantic)
}
MOST = 20  # strategies in a list
# A strategy, its name, its name and options as JSON, or a list of these.
One: TypeAlias = "Strategy | str | Json"
Strategies: TypeAlias = "One | Sequence[One]"


def strategies(given: Strategies) -> tuple[Strategy, ...]:
    """Give strategies from names, JSON objects or strategies, in order. Raises `InvalidInput`, which lists the known.

    >>> strategies(["tool_calls", {"strategy": "summary_buffer", "trigger": 0.9}])
    (ToolCalls(older_than=10, share=0.6, least=40, most=300), SummaryBuffer(trigger=0.9, target=0.6, summary=0.2))
    """
    listed = given if isinstance(given, list | tuple) else [given]
    if len(listed) > MOST:
        raise InvalidInput(f"{len(listed)} strategies are more than the {MOST} that a context may have.")
    return tuple(_made(one) for one in listed)


def read_back(given: object) -> tuple[list[Strategy], list[Json], list[str]]:
    """Give the strategies of what is kept, all of it as JSON, and for each one that this version cannot make why.

    What another version kept must not stop a context: such a strategy is left as it is, and out.
    """
    found: list[Strategy] = []
    written: list[Json] = []
    unknown: list[str] = []
    for one in given if isinstance(given, list | tuple) else [given]:
        try:
            made = _made(one)
            found.append(made)
            written += as_json(made)
        except InvalidInput as error:
            name = one.get("strategy") if isinstance(one, dict) else one
            written.append(one if isinstance(one, dict) else {"strategy": one})
            unknown.append(
                f"strategy {name!r:.60} is not known to this version as it is kept, and was left out: {error}"
            )
    return found, written, unknown


def as_json(given: Strategies) -> list[Json]:
    """Give a list of strategies as settings keep it. Raises `InvalidInput` for strategies that have no name there."""
    found = strategies(given)
    for one in found:
        if not _is_known(one):
            raise InvalidInput(f"{one!r} cannot be kept with a conversation, only given to context(); {_known()}.")
    return strategies_told(found)


def strategies_told(given: Iterable[Strategy]) -> list[Json]:
    """Give strategies as a receipt has them: of one's own the name alone."""
    return [{"strategy": one.name} | _options(one) for one in given]


def _options(one: Strategy) -> Json:
    return {option.name: getattr(one, option.name) for option in fields(KNOWN[one.name])} if _is_known(one) else {}


def _is_known(one: Strategy) -> bool:
    return type(one) is KNOWN.get(one.name)


def _made(one: object) -> Strategy:
    if isinstance(one, str):
        one = {"strategy": one}
    if _is_strategy(one):
        return one
    if not isinstance(one, dict):
        raise InvalidInput(f"{one!r} is no strategy: give a name, a strategy, or a name with options; {_known()}.")
    kind = KNOWN.get(str(one.get("strategy")))
    if kind is None:
        raise InvalidInput(f"The strategy {one.get('strategy')!r} is unknown; {_known()}.")
    options = {key: value for key, value in one.items() if key != "strategy"}
    names = [option.name for option in fields(kind)]
    if unknown := set(options) - set(names):
        raise InvalidInput(f"{kind.name} has no option {', '.join(sorted(unknown))}; it has {', '.join(names)}.")
    made: Strategy = kind(**options)
    return made


def _is_strategy(one: object) -> TypeGuard[Strategy]:
    return not isinstance(one, type) and all(hasattr(one, name) for name in ("name", "should_run", "run"))


def _known() -> str:
    return f"known are {', '.join(sorted(KNOWN))}"
