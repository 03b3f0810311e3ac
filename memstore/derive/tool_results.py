"""Tool calls and their results in a sentence or two: which tool, with what, and what came of it. Pure.

A result is cut into snippets: fields of JSON, rows, lines, sentences. Some are kept: errors, totals, the first and the
last, unusual ones, those that share words with the request, and those that others name by an id or a number. Snippets
are verbatim, so that recall finds them; dropped ones are counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from memstore.language import WORD, load_phrases, word_set
from memstore.language.sentences import sentences
from memstore.models import Json, Message
from memstore.store.tokenize import terms
from memstore.text import read_json
from memstore.tool_calls import name_of, raw_arguments

MAX_SNIPPET_CHARS = 240
MAX_ROW_FIELDS = 12
# A query or a path is whole, a file's text is not.
MAX_VALUE_CHARS = 160

Count = Callable[[str], int]

_TELLING_FIELDS = word_set("""
id ids uuid ref reference number code sha revision version key name title url path
status state ok success total count price amount date until error message
""")
_NAMED = re.compile(r"[^\W_](?:[\w./:@#+-]*[^\W_])?")


@dataclass(frozen=True, slots=True)
class Focus:
    """What a reader of results looks for: stems of the request, and names that others use."""

    stems: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


# A part of a result, and from 0 up how much a reader would want it.
Snippet = tuple[str, float]


def find_names(text: str) -> frozenset[str]:
    return frozenset(name for name in _NAMED.findall(text) if len(name) > 1 and _can_be_named_again(name))


def _can_be_named_again(name: str) -> bool:
    """Return whether a word has a digit, a mark or a capital inside: off_K7, src/a.py, r-4411, userId."""
    return name[1:] != name[1:].lower() or any(character.isdigit() or character in "_/@#:" for character in name)


def _summarize(text: str, focus: Focus, limit: int, count: Count) -> str:
    """Return the snippets that matter, in at most about `limit` tokens."""
    text = text.strip()
    if not text:
        return "no output"
    if count(text) <= limit:
        return " ".join(text.split())
    value = _parse_json(text)
    snippets = list(islice(_of_text(text, focus) if value is None else _of_json(value, "", focus, 0), 2000))
    kept: list[int] = []
    texts: set[str] = set()
    scores = _reward_unlike(snippets)
    for place in sorted(range(len(snippets)), key=lambda place: (-round(scores[place], 6), place)):
        if limit <= 0:
            break
        snippet = snippets[place][0]
        cost = count(f"{snippet}; ")
        if snippet not in texts and (cost <= limit or not kept):
            texts.add(snippet)
            kept.append(place)
            limit -= cost
    left = len(snippets) - len(kept)
    summary = "; ".join(snippets[place][0] for place in sorted(kept))
    return f"{summary} (and {left} more)" if left else summary


def _has_failed(text: str) -> bool:
    """Return whether a result begins or ends as those of failures do, or is JSON that says so."""
    value = _parse_json(text)
    if isinstance(value, dict):
        return bool(value.get("error") or value.get("errors")) or value.get("ok", value.get("success")) is False
    lines = [line for line in text.splitlines() if line.strip()]
    return any(load_phrases("failures").search(line) for line in [*lines[:1], *lines[-2:]])


def _of_text(text: str, focus: Focus) -> Iterator[Snippet]:
    """Yield lines, the first and the last ones above all; sentences where lines are long."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if sum(len(line) > MAX_SNIPPET_CHARS for line in lines) * 2 > len(lines):
        lines = [" ".join(text[start:stop].split()) for start, stop in sentences(text)]
    ends = {2: 0.3, len(lines) - 2: 0.3, 1: 0.7, len(lines) - 1: 0.7, 0: 0.9}
    for place, line in enumerate(lines):
        yield _truncate(line), ends.get(place, 0.0) + _score(line, focus)


def _reward_unlike(snippets: Sequence[Snippet]) -> list[float]:
    """Score snippets unlike the others higher: the one definition among forty uses, the one number in a page."""
    # Every word and number is alike.
    shapes = [WORD.sub("w", text)[:40] for text, _ in snippets]
    frequency = Counter(shapes)
    most = max(frequency.values())
    numbered = [bool(re.search(r"\d", text)) for text, _ in snippets]
    rare = 0.5 * (1 - sum(numbered) / len(snippets))
    return [
        score + 0.3 * (1 - frequency[shape] / most) + (0.1 + rare) * has_number
        for (_, score), shape, has_number in zip(snippets, shapes, numbered, strict=True)
    ]


def _parse_json(text: str) -> Any:
    """Return an object or a list; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return read_json(text)
    except ValueError:
        return None


def _of_json(value: Any, path: str, focus: Focus, depth: int) -> Iterator[Snippet]:
    """Yield scalars as "path: value", lists of rows by their number and a row each, nested objects in turn."""
    if depth > 6 or not isinstance(value, dict | list):
        text = _truncate(f"{path}: {_scalar(value)}" if path else _scalar(value))
        name = path.replace("_", ".").replace("-", ".").rpartition(".")[2].casefold()
        field = 0.4 + 0.8 * (name in _TELLING_FIELDS)
        yield text, field + _score(text, focus) - 0.05 * depth - 0.3 * (len(text) > 120)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _of_json(inner, f"{path}.{key}" if path else str(key), focus, depth + 1)
    else:
        fields = _common_fields(value)
        of = f" of {', '.join(fields)}" if fields else ""
        yield _truncate(f"{path or 'list'}: {len(value)} entries{of}"), 3.0 if fields else 1.0
        for place, row in enumerate(value):
            text = _truncate(", ".join(_scalar(row[field]) for field in fields) if fields else _row(row))
            first = 1.0 if place == 0 else 0.3 if place < 3 else 0.0
            yield text, first + _score(text, focus) - 0.15 * depth


def _common_fields(rows: Sequence[Any]) -> list[str]:
    """Return the names of the fields of rows that are alike: said once, they save tokens."""
    if len(rows) < 2 or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        return []
    return [key for key, value in rows[0].items() if not isinstance(value, dict | list)][:MAX_ROW_FIELDS]


def _row(value: Any) -> str:
    if not isinstance(value, dict):
        return _scalar(value)
    scalars = [(key, inner) for key, inner in value.items() if not isinstance(inner, dict | list)]
    return ", ".join(f"{key} {_scalar(inner)}" for key, inner in scalars[:MAX_ROW_FIELDS])


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False, default=str)


def _score(text: str, focus: Focus) -> float:
    score = 0.8 * bool(load_phrases("failures").search(text)) + 0.6 * bool(load_phrases("results").search(text))
    shared = find_names(text) & focus.names
    # A small number stands in many rows by chance.
    score += min(3.0, sum(0.2 if name.isdecimal() and len(name) < 3 else 1.5 for name in shared))
    return score + min(1.5, 0.5 * len(terms(text).keys() & focus.stems))


def _truncate(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_SNIPPET_CHARS else f"{flat[:MAX_SNIPPET_CHARS]}…"


def describe_turn(call: Message, results: Sequence[Message], focus: Focus, limit: int, count: Count) -> str:
    """Return the words of a message, its calls and their results, with `limit` tokens for each result."""
    words = " ".join((call.text or "").split())
    return " ".join(part for part in (words, *describe_calls(call, results, focus, limit, count)) if part)


def describe_calls(
    call: Message,
    results: Sequence[Message],
    focus: Focus,
    limit: int,
    count: Count,
    *,
    max_value: int = MAX_VALUE_CHARS,
) -> Iterator[str]:
    """Yield a sentence for each call, without a result what was asked of the tool.

    Inputs of at most `max_value` characters are whole.
    """
    for tool_call, result in _pair_results(call.tool_calls or [], results):
        sentence = f"{name_of(tool_call)}({_describe_inputs(raw_arguments(tool_call), max_value)})"
        if result is not None:
            text = result.text or ""
            sentence = (
                f"{sentence} {'failed' if _has_failed(text) else 'gave'}: {_summarize(text, focus, limit, count)}"
            )
        yield f"{sentence}."


def call_inputs(call: Message) -> str:
    """Return the inputs of all calls of a message, in which readers look for names."""
    return " ".join(_describe_inputs(raw_arguments(tool_call), MAX_VALUE_CHARS) for tool_call in call.tool_calls or ())


def _describe_inputs(arguments: object, max_value: int) -> str:
    """Return the first arguments: short ones whole, of long ones the beginning."""
    if not isinstance(arguments, dict):
        return "" if arguments in (None, "") else _describe_value(arguments, max_value)
    inputs = [f"{key}={_describe_value(value, max_value)}" for key, value in islice(arguments.items(), 8)]
    return ", ".join(inputs)


def _describe_value(value: object, max_value: int) -> str:
    flat = _scalar(value)
    return flat if len(flat) <= max_value else f"{flat[: max_value - 20]}… ({len(flat):,} characters)"


def _pair_results(calls: Sequence[Json], results: Sequence[Message]) -> list[tuple[Json, Message | None]]:
    """Return each call with its result: by id where all have ids, else by their order."""
    by_id = {result.tool_call_id: result for result in results}
    if None not in by_id and all("id" in call for call in calls):
        return [(call, by_id.get(call["id"])) for call in calls]
    return [(call, results[place] if place < len(results) else None) for place, call in enumerate(calls)]
