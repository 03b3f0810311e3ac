"""A call of tools and its results in a sentence or two: which tool, with what, why, and what came of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memstore.derive.outcome import Sought, failed, outcome
from memstore.derive.sentences import sentences
from memstore.models import Json, Message
from memstore.tool_calls import name_of, raw_arguments

LONGEST_VALUE = 160  # characters of an argument: a query or a path is whole, a file's text is not
LONGEST_WHY = 100
MOST_INPUTS = 8
Count = Callable[[str], int]


def turn_told(
    call: Message, results: Sequence[Message], asked: Message | None, sought: Sought, limit: int, count: Count
) -> str:
    """Tell a call and its results, after the words beside it; `limit` are tokens for each outcome.

    `asked` is the user's message before it: the reason of a call without words.
    """
    beside = " ".join((call.text or "").split())
    done = tell(call, results, sought, limit, count, why="" if beside else _why(asked))
    return " ".join(part for part in (beside, *done) if part)


def tell(
    call: Message,
    results: Sequence[Message],
    sought: Sought,
    limit: int,
    count: Count,
    *,
    why: str = "",
    longest: int = LONGEST_VALUE,
) -> Iterator[str]:
    """Give a sentence for each call, and for those of which there are no results (yet) what was asked of the tool.

    `longest` are the characters of an input that is given whole.
    """
    for made, result in _pairs(call.tool_calls or [], results):
        said = f"{name_of(made)}({inputs(raw_arguments(made), longest)}){why}"
        yield f"{said} {came_of(result, sought, limit, count)}." if result else f"{said}."
        why = ""  # the calls of one turn have one reason


def came_of(result: Message, sought: Sought, limit: int, count: Count) -> str:
    """Tell a result, in about `limit` tokens."""
    text = result.text or ""
    return f"{'failed' if failed(text) else 'gave'}: {outcome(text, sought, limit, count)}"


def inputs(arguments: object, longest: int = LONGEST_VALUE) -> str:
    """Give the most telling arguments, in their order: short ones whole, of long ones the beginning."""
    if not isinstance(arguments, dict):
        return _value(arguments, longest) if arguments not in (None, "") else ""
    flat = list(_flat(arguments, "", longest))
    short = sorted(range(len(flat)), key=lambda place: (len(flat[place][1]) > longest, place))[:MOST_INPUTS]
    return ", ".join(f"{flat[place][0]}={flat[place][1]}" for place in sorted(short))


def named_by(call: Message) -> str:
    """Give the inputs of all calls of a message, in which their reader looks for names."""
    return " ".join(inputs(raw_arguments(made)) for made in call.tool_calls or ())


def _flat(arguments: dict[str, Any], path: str, longest: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in arguments.items():
        if isinstance(value, dict) and path.count(".") < 3:
            found += _flat(value, f"{path}{key}.", longest)
        else:
            found.append((f"{path}{key}", _value(value, longest)))
    return found


def _value(value: object, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 20]}… ({len(text):,} characters)"


def _pairs(calls: Sequence[Json], results: Sequence[Message]) -> list[tuple[Json, Message | None]]:
    """Give each call with its result: by id where all have ids, else by their order."""
    by_id = {result.tool_call_id: result for result in results}
    if None not in by_id and all("id" in call for call in calls):
        return [(call, by_id.get(call["id"])) for call in calls]
    return [(call, results[place] if place < len(results) else None) for place, call in enumerate(calls)]


def _why(asked: Message | None) -> str:
    """Give the reason of a call without words: the first sentence of what the user asked for."""
    if asked is None or not asked.text:
        return ""
    start, stop = next(iter(sentences(asked.text)), (0, 0))
    said = " ".join(asked.text[start:stop].split())
    return f", for “{said[:LONGEST_WHY]}{'…' if len(said) > LONGEST_WHY else ''}”," if said else ""
