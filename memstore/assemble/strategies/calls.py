"""A call of tools and its results in two or three sentences: which tool, with what, why, and what came of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from memstore.assemble.strategies.outcome import Sought, failed, outcome
from memstore.assemble.turns import Turn
from memstore.ingest.sentences import sentences
from memstore.models import Json, Message, Role

LONGEST_VALUE = 160  # characters of an argument: a query or a path is whole, a file's text is not
LONGEST_WHY = 100
MOST_INPUTS = 8
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
