"""What went wrong, in words that a model can act on. What memstore did not expect is logged, and not told."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from memstore.errors import DatabaseUnreachable, EmbeddedError, MemstoreError

MOST = 5  # wrong arguments that are told at once
SHOWN = 60  # characters of a wrong value
SAID = 300  # characters of why nothing answers: the log has all of it

AWAY = "The memory cannot be reached now, nothing was stored or found: go on without it, and tell the user."
SLOW = (
    "This took too long and was given up: ask for less. What it was to store may be there: look before you repeat it."
)
UNEXPECTED = "memstore failed in a way that it did not expect; its log says how. The same call will hardly do better."

logger = logging.getLogger("memstore")


def words(error: Exception, tool: str) -> str:
    """Give what a model is told of an error of a tool."""
    if isinstance(error, DatabaseUnreachable | EmbeddedError):
        logger.warning("%s: %s", tool, error)
        return f"{AWAY} ({str(error).splitlines()[0][:SAID]})"
    if isinstance(error, MemstoreError):
        return str(error)
    if isinstance(error, TimeoutError):
        logger.warning("%s took too long", tool)
        return SLOW
    logger.error("%s failed", tool, exc_info=error)
    return UNEXPECTED


def wrong(error: ValidationError, model: type[BaseModel], tool: str) -> str:
    """Give what is wrong with the arguments of a tool, and what they may be."""
    found = error.errors(include_url=False, include_context=False)
    told = [_wrong(one, model, tool) for one in found[:MOST]]
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return f"{tool} was not called: {'; '.join([*told, *more])}."


def _wrong(one: Any, model: type[BaseModel], tool: str) -> str:
    name = _path(one["loc"]) or "arguments"
    if one["type"] == "extra_forbidden":
        known = f": it has {', '.join(model.model_fields)}" if len(one["loc"]) == 1 else ""
        return f"{name} is no argument of {tool}{known}"
    if one["type"] == "missing":
        return f"{name} is missing"
    given = "" if isinstance(one["input"], dict | list) else f", not {_short(one['input'])}"
    return f"{name}: {one['msg'][:1].lower()}{one['msg'][1:]}{given}"


def _path(parts: Iterable[int | str]) -> str:
    """Give the name of an argument, as messages[2].role."""
    named = ""
    for part in parts:
        named += f"[{part}]" if isinstance(part, int) else f".{part}" if named else part
    return named[:SHOWN]


def _short(value: object) -> str:
    text = repr(value) if not isinstance(value, str) else repr(value[:SHOWN])
    return text if len(str(value)) <= SHOWN else f"{text[:SHOWN]}… ({len(str(value)):,} characters)"
