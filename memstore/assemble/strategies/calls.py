"""A call of tools and its results in two or three sentences: which tool, with what, why, and what came of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memstore.assemble.strategies.outcome import Sought, failed, names, outcome
from memstore.assemble.strategies.view import View
from memstore.assemble.turns import Turn
from memstore.ingest.sentences import sentences
from memstore.models import Json, Message, Role
from memstore.store.terms import terms

LONGEST_VALUE = 160  # characters of an argument: a query or a path is whole, a file's text is not
LONGEST_WHY = 100
MOST_INPUTS = 8
BEFORE = 6  # turns whose names count beside those after the call
Count = Callable[[str], int]


def told(turn: Turn, asked: Message | None, sought: Sought, limit: int, count: Count) -> str:
    """Tell the calls of a turn; `limit` are tokens for each outcome, `asked` the user's message before them."""
    call, results = turn.messages[0], turn.messages[1:]
    beside = " ".join((call.text or "").split())
    parts = [f"{beside.rstrip()}" if beside else ""]
    why = "" if beside else _why(asked)
    for made, result in _pairs(call.tool_calls or [], results):
        name, arguments = function_of(made)
        text = result.text or ""
        verb = "failed" if failed(text) else "gave"
        parts.append(f"{name}({inputs(arguments)}){why} {verb}: {outcome(text, sought, limit, count)}.")
        why = ""  # the calls of one turn have one reason
    return " ".join(part for part in parts if part)


def function_of(made: Json) -> tuple[str, object]:
    """Give the name and the arguments of a call, of whatever shape it is."""
    function = made.get("function")
    inner = function if isinstance(function, dict) else made
    arguments: object = inner.get("arguments", inner.get("input"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(inner.get("name", "tool")), arguments
    return str(inner.get("name", "tool")), arguments


def inputs(arguments: object) -> str:
    """Give the most telling arguments, in their order: short ones whole, of long ones the beginning."""
    if not isinstance(arguments, dict):
        return _value(arguments) if arguments not in (None, "") else ""
    flat = list(_flat(arguments, ""))
    short = sorted(range(len(flat)), key=lambda place: (len(flat[place][1]) > LONGEST_VALUE, place))[:MOST_INPUTS]
    return ", ".join(f"{flat[place][0]}={flat[place][1]}" for place in sorted(short))


def _flat(arguments: dict[str, Any], path: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in arguments.items():
        if isinstance(value, dict) and path.count(".") < 3:
            found += _flat(value, f"{path}{key}.")
        else:
            found.append((f"{path}{key}", _value(value)))
    return found


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_VALUE else f"{flat[: LONGEST_VALUE - 20]}… ({len(text):,} characters)"


def _pairs(calls: Sequence[Json], results: Sequence[Message]) -> list[tuple[Json, Message]]:
    """Give each call with its result: by id where all have ids, else by their order."""
    by_id = {result.tool_call_id: result for result in results}
    if None not in by_id and all(call.get("id") in by_id for call in calls):
        return [(call, by_id[call.get("id")]) for call in calls]
    return list(zip(calls, results, strict=False))


def _why(asked: Message | None) -> str:
    """Give the reason of a call without words: the first sentence of what the user asked for."""
    if asked is None or not asked.text:
        return ""
    start, stop = next(iter(sentences(asked.text)), (0, 0))
    said = " ".join(asked.text[start:stop].split())
    return f", for “{said[:LONGEST_WHY]}{'…' if len(said) > LONGEST_WHY else ''}”," if said else ""


def is_call(turn: Turn) -> bool:
    """Whether the turn is a call of tools with its results."""
    return bool(turn.messages[0].tool_calls) and turn.messages[-1].role == Role.TOOL


@dataclass(frozen=True)
class Telling:
    """The turns of a view, and what is sought in the result of each."""

    turns: Sequence[Turn]
    view: View

    @cached_property
    def places(self) -> dict[int, int]:
        """The index of each turn by its first number."""
        return {turn.first_seq: place for place, turn in enumerate(self.turns)}

    @cached_property
    def free(self) -> frozenset[int]:
        """The first numbers of the turns that may be taken."""
        return frozenset(one.first_seq for one in self.view.entries if isinstance(one, Turn)) - self.view.floor

    @cached_property
    def names(self) -> list[frozenset[str]]:
        """What each turn names, but for results of tools."""
        return [names(_spoken(turn)) for turn in self.turns]

    @cached_property
    def asked(self) -> list[Message | None]:
        """The user's newest message before each turn."""
        found: list[Message | None] = []
        newest: Message | None = None
        for turn in self.turns:
            found.append(newest)
            newest = turn.messages[0] if turn.messages[0].role == Role.USER else newest
        return found

    def told(self, place: int, upto: int, limit: int) -> str:
        """Tell the calls of the turn at `place` by what was named up to the turn at `upto`, which is the present.

        `limit` are the tokens of each outcome.
        """
        turn, asked = self.turns[place], self.asked[place]
        around = self.names[max(0, place - BEFORE) : place] + self.names[place : upto + 1]
        request = f"{asked.text if asked else ''} {_spoken(turn)}"
        sought = Sought(frozenset(terms(request)), frozenset().union(*around))
        return told(turn, asked, sought, limit, self.view.counter.count)


def _spoken(turn: Turn) -> str:
    """Give the words of a turn and the arguments of its calls."""
    first = turn.messages[0]
    made = [inputs(function_of(call)[1]) for call in first.tool_calls or ()]
    return " ".join([(first.text or "") if first.role != Role.TOOL else "", *made])
