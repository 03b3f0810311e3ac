"""memstore's own format: one message a line, as JSON. Every other format is read into its words.

    {"user"?, "conversation", "role", "content", "name"?, "occurred_at"?, "external_id"?, "tool_calls"?,
     "tool_call_id"?, "metadata"?, "tags"?}

- `content` is a text, or a list of parts (objects), or null beside `tool_calls`. Any other null means "not given".
- `occurred_at` is ISO 8601 with a zone, or seconds since 1970. A time without a zone is refused, never guessed.
- A key that is not in the list is refused: `occured_at` would else be lost without a word. What is one's own goes
  under `metadata`.
- A message without `external_id` gets one made from what it says, where and when, and from how many equal ones came
  before it in the file. So the same file imported twice adds nothing. Of two files, though, the first "ok" of each in
  one conversation is the same message unless `occurred_at` or `external_id` tells them apart.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from memstore.errors import InvalidInput
from memstore.ingest.validation import DEEPEST
from memstore.models import Role

from .base import (
    DEFAULTS,
    Found,
    Importer,
    ImportOptions,
    Record,
    Skipped,
    check_storable,
    parse_time,
    printable,
)
from .external_sort import Occurrences, derive_id
from .files import BOM, HEAD, READ_ERRORS, ByteStream, check_file, open_file, read_head
from .json_stream import LONGEST_LINE, PRETTY, numbered_lines, parse_object

_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")  # only an escape can be of NUL, or of half a character
SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")

_ROLES = [role.value for role in Role]


def sniff(path: Path) -> float:
    """Return 1 for a head with a message, less where its keys are not all there, a little for the name alone."""
    if path.is_dir():
        return 0.0
    start = read_head(path).removeprefix(BOM)
    lines = [line for line in start.splitlines() if line.strip()]
    likeness = [_likeness(keys) for line in lines if (keys := _keys(line)) is not None]
    if likeness:
        return max(likeness)
    if len(start) == HEAD and len(lines) == 1 and _begins_message(lines[0]):
        return 0.5
    return 0.2 if path.name.lower().endswith(SUFFIXES) else 0.0


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield each line's message, and each line that holds none with the reason; blank lines are nothing."""
    check_file(path)
    if path.is_dir():
        raise InvalidInput(f"{printable(path.name)} is a folder; name the files in it that hold the history")
    name, number = printable(path.name), 0
    try:
        with open_file(path, options.on_read) as stream, Occurrences() as seen:
            for number, line in numbered_lines(cast(ByteStream, stream), LONGEST_LINE):
                if line is None:
                    yield Skipped(f"{name}, line {number}", f"the line is longer than {LONGEST_LINE:,} bytes; {PRETTY}")
                elif line.strip():
                    yield _read_line(line, f"{name}, line {number}", seen)
    except READ_ERRORS as error:
        reason = f"the file is cut off or damaged ({printable(str(error), 200)}); get it whole and import it again"
        yield Skipped(f"{name}, after line {number}", reason)


def _keys(line: bytes) -> set[str] | None:
    try:
        return set(parse_object(line))
    except InvalidInput:
        return None


def _likeness(keys: set[str]) -> float:
    if {"conversation", "role"} <= keys:
        return 1.0
    return 0.5 if {"role", "content"} <= keys else 0.0


def _begins_message(line: bytes) -> bool:
    return line.lstrip().startswith(b"{") and b'"role"' in line and b'"conversation"' in line


def _read_line(line: bytes, where: str, seen: Occurrences) -> Record | Skipped:
    try:
        given = parse_object(line)
        if _SUSPECT.search(line) or line.count(b"{") + line.count(b"[") > DEEPEST:
            check_storable(given)  # takes as long as the rest of reading a line
        given = {key: value for key, value in given.items() if value is not None}
        _check(given)
        message: dict[str, Any] = {"role": given["role"], "content": given.get("content")}
        message |= {key: given[key] for key in _MESSAGE_KEYS if key in given}
        if "occurred_at" in given:
            message["occurred_at"] = parse_time(given["occurred_at"])
        if "external_id" not in given:
            message["external_id"] = derive_id(given.get("user"), given["conversation"], message, seen)
    except InvalidInput as error:
        return Skipped(where, str(error))
    return Record(user=given.get("user"), conversation=given["conversation"], message=message, where=where)


def _check(given: dict[str, Any]) -> None:
    """Raise `InvalidInput` for the first thing that is not as the format has it."""
    for key in given.keys() - _RULES.keys():
        close = difflib.get_close_matches(key, _RULES, 1)
        hint = f'did you mean "{close[0]}"? What is your own goes' if close else "put what is your own"
        raise InvalidInput(f'the key "{printable(key)}" is unknown; {hint} under "metadata"')
    for key in ("conversation", "role"):
        if key not in given:
            raise InvalidInput(f'"{key}" is missing; add it')
    if "content" not in given and not given.get("tool_calls"):
        raise InvalidInput('"content" is missing; only a message with "tool_calls" can be without')
    for key, value in given.items():
        fits, what = _RULES[key]
        if not fits(value):
            raise InvalidInput(f'"{key}" must be {what}')


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


_TEXT = (_is_filled, "a text that is not blank")
_OBJECTS = (_are_objects, "a list of objects")
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "user": _TEXT,
    "conversation": _TEXT,
    "role": (lambda value: value in _ROLES, f"one of {', '.join(_ROLES)}"),
    "content": (lambda value: isinstance(value, str) or _are_objects(value), "a text or a list of parts (objects)"),
    "name": _TEXT,
    "occurred_at": (lambda value: True, "a time"),
    "external_id": _TEXT,
    "tool_calls": _OBJECTS,
    "tool_call_id": _TEXT,
    "metadata": (lambda value: isinstance(value, dict), "an object"),
    "tags": (lambda value: isinstance(value, list) and all(map(_is_filled, value)), "a list of texts"),
}
_MESSAGE_KEYS = [key for key in _RULES if key not in ("user", "conversation", "role", "content", "occurred_at")]


JSONL = Importer("jsonl", sniff, read)
