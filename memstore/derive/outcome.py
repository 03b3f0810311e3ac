"""What a tool's result says, in a few of its own words. Pure, by rules, no model.

A result is cut into excerpts: fields of JSON, rows, lines, sentences. Kept are those that one would look for: errors,
totals, what comes first and last, what is unlike the rest, what shares words with the request, and what others name by
an id or a number. Excerpts are verbatim, so that what is kept can be found; what is dropped is counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memstore.derive.sentences import sentences
from memstore.store.terms import terms

LONGEST = 240  # characters of an excerpt
MOST_EXCERPTS = 2000
UNLIKE = 0.3  # what an excerpt gains that has the shape of no other one
NUMBERED = 0.5  # what an excerpt with a number gains where no other has one
ROW = 12  # fields of a row

_FAILURE = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:ed|ure|s)?|fatal|denied|refused|invalid|timed? ?out|not found|missing"
    r"|fehler\w*|fehlgeschlagen)\b",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\b(?:total|sum|in all|passed|found|rows?|results?|matches|confirmed|created|accepted|completed?|succe\w+|booked"
    r"|deployed|wrote|written|updated|deleted|saved|published|reference|insgesamt|gesamt|gefunden|erfolgreich)\b",
    re.IGNORECASE,
)
_IDENTITY = re.compile(
    r"(?:^|[_.-])(?:id|ids|uuid|ref|reference|number|code|sha|revision|version|key|name|title|url|path)$", re.I
)
_STATE = re.compile(r"(?:^|[_.-])(?:status|state|ok|success|total|count|price|amount|date|until|error|message)$", re.I)
# What can be named again: words with a digit, or with a mark inside, such as off_K7, src/a.py, r-4411 or 412.50.
_WORDS = re.compile(r"\w+")
NAMED = re.compile(r"[^\W_](?:[\w./:@#+-]*[^\W_])?")
_SMALL = re.compile(r"\d{1,2}")  # a number that stands in many rows by chance
_MARKED = re.compile(r"\d|\w[_/@#:]\w|[a-z][A-Z]|[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Sought:
    """What a reader of the result has in mind: stems of the request, and names that others use."""

    stems: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a result, and from 0 up how much a reader would want it."""

    text: str
    worth: float


def names(text: str) -> frozenset[str]:
    """Give what a text names by an id, a number or a path."""
    return frozenset(found for found in NAMED.findall(text) if len(found) > 1 and _MARKED.search(found))


def outcome(text: str, sought: Sought, limit: int, count: Callable[[str], int]) -> str:
    """Give the outcome that a result tells, in at most about `limit` tokens."""
    said = text.strip()
    if not said:
        return "no output"
    if count(said) <= limit:
        return " ".join(said.split())
    excerpts = _unlike(list(_excerpts(said, sought))[:MOST_EXCERPTS])
    kept = _kept(excerpts, limit, count)
    left = len(excerpts) - len(kept)
    told = "; ".join(excerpts[place].text for place in kept)
    return f"{told} (and {left} more)" if left else told


def failed(text: str) -> bool:
    """Whether a result begins or ends as those of failures do, or is JSON that says so."""
    value = _json(text)
    if isinstance(value, dict):
        said = value.get("ok", value.get("success"))
        return bool(value.get("error") or value.get("errors")) or said is False
    lines = [line for line in text.splitlines() if line.strip()]
    return any(_FAILURE.search(line) for line in [*lines[:1], *lines[-2:]])


def _excerpts(text: str, sought: Sought) -> Iterator[Excerpt]:
    value = _json(text)
    if isinstance(value, dict | list):
        yield from _of_json(value, "", sought, 0)
        return
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if sum(len(line) > LONGEST for line in lines) * 2 > len(lines):
        lines = [" ".join(text[start:stop].split()) for start, stop in sentences(text)]
    for place, line in enumerate(lines):
        ends = (
            0.9 if place == 0 else 0.7 if place in (1, len(lines) - 1) else 0.3 if place in (2, len(lines) - 2) else 0.0
        )
        yield Excerpt(_cut(line), ends + _worth(line, sought))


def _unlike(excerpts: list[Excerpt]) -> list[Excerpt]:
    """Give more to excerpts unlike the others: the one definition among forty uses, the one number in a page."""
    shapes = [_shape(excerpt.text) for excerpt in excerpts]
    often = Counter(shapes)
    most = max(often.values())
    numbered = [bool(re.search(r"\d", excerpt.text)) for excerpt in excerpts]
    rare = NUMBERED * (1 - sum(numbered) / len(excerpts))
    gains = [
        UNLIKE * (1 - often[shape] / most) + (0.1 + rare) * number
        for shape, number in zip(shapes, numbered, strict=True)
    ]
    return [replace(excerpt, worth=excerpt.worth + gain) for excerpt, gain in zip(excerpts, gains, strict=True)]


def _shape(text: str) -> str:
    """Give a text with every word and number alike, as far as its beginning."""
    return _WORDS.sub("w", text)[:40]


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_json(value: Any, path: str, sought: Sought, depth: int) -> Iterator[Excerpt]:
    """Give scalars as "path: value", lists of rows by their number and a row each, nested objects in turn."""
    if depth > 6 or not isinstance(value, dict | list):
        text = _cut(f"{path}: {_scalar(value)}" if path else _scalar(value))
        yield Excerpt(text, _field(path) + _worth(text, sought) - 0.05 * depth - 0.3 * (len(text) > 120))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _of_json(inner, f"{path}.{key}" if path else str(key), sought, depth + 1)
    else:
        fields = _fields(value)
        of = f" of {', '.join(fields)}" if fields else ""
        yield Excerpt(_cut(f"{path or 'list'}: {len(value)} entries{of}"), 3.0 if fields else 1.0)
        for place, row in enumerate(value):
            text = _cut(", ".join(_scalar(row[field]) for field in fields) if fields else _row(row))
            first = 1.0 if place == 0 else 0.3 if place < 3 else 0.0
            yield Excerpt(text, first + _worth(text, sought) - 0.15 * depth)


def _fields(rows: Sequence[Any]) -> list[str]:
    """Give the names of the fields that all rows have, short ones first: said once, they are a third of the tokens.

    Empty where the rows are not alike, or have nested fields only.
    """
    if len(rows) < 2 or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        return []
    scalars = [key for key, one in rows[0].items() if not isinstance(one, dict | list)]
    return sorted(scalars, key=lambda key: max(len(str(row[key])) for row in rows) > 60)[:ROW]


def _row(value: Any) -> str:
    if isinstance(value, dict):
        scalars = [(key, one) for key, one in value.items() if not isinstance(one, dict | list)]
        telling = sorted(scalars, key=lambda pair: len(str(pair[1])) > 60)[:ROW]
        return ", ".join(f"{key} {_scalar(one)}" for key, one in telling)
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False, default=str)


def _field(path: str) -> float:
    return 0.8 * bool(_IDENTITY.search(path)) + 0.8 * bool(_STATE.search(path)) + 0.4


def _worth(text: str, sought: Sought) -> float:
    worth = 0.8 * bool(_FAILURE.search(text)) + 0.6 * bool(_RESULT.search(text))
    shared = names(text) & sought.names
    worth += min(3.0, sum(0.2 if _SMALL.fullmatch(name) else 1.5 for name in shared))
    if sought.stems:
        found = terms(text).keys() & sought.stems
        worth += min(1.5, 0.5 * len(found))
    return worth


def _kept(excerpts: Sequence[Excerpt], limit: int, count: Callable[[str], int]) -> list[int]:
    """Give the indices of the excerpts that are worth most and fit, each text once, in the order of the result."""
    kept: list[int] = []
    seen: set[str] = set()
    for place in sorted(range(len(excerpts)), key=lambda place: (-round(excerpts[place].worth, 6), place)):
        if limit <= 0:
            break
        cost = count(f"{excerpts[place].text}; ")
        if excerpts[place].text in seen or (cost > limit and kept):
            continue
        seen.add(excerpts[place].text)
        kept.append(place)
        limit -= cost
    return sorted(kept)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}…"
