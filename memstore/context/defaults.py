"""What a context is made by where the caller does not say: the conversation's own settings, else the system's. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from memstore.context import sections
from memstore.context.strategies.registry import as_json, read_back
from memstore.context.visibility import rule_of
from memstore.errors import InvalidInput, MemstoreError
from memstore.ingest.validation import KEPT_FOR, check_name, validate_days
from memstore.models import Json
from memstore.settings import Settings
from memstore.store.messages import CLEARED

# A conversation may have these of its own; all but its sections are settings of the system too.
BUDGET, RESERVE, VIEWER = "context_budget", "context_reserve", "context_viewer"
STRATEGIES, VISIBILITY, SECTIONS = "strategies", "visibility", "sections"
NAMES = (BUDGET, RESERVE, VIEWER, STRATEGIES, VISIBILITY, SECTIONS)
LARGEST_BUDGET = 10**9
LARGEST_SETTINGS = 64_000  # characters of JSON
MISSPELT = 0.85  # so like a known name that it must be meant


def effective(kept: Mapping[str, Any] | None, system: Settings) -> Json:
    """Give every setting of a conversation by name: its own, else the system's; then what else is kept with it."""
    own = {name: value for name, value in (kept or {}).items() if value is not None and name != CLEARED}
    whole = {name: own.pop(name, getattr(system, name, None)) for name in NAMES}
    whole[STRATEGIES] = read_back(whole[STRATEGIES] or [])[1]
    return whole | own


def check_size(given: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` where a name is no text, or one's own settings are too large: each context reads them.

    What memstore's own settings may be is bounded where they are read.
    """
    for name in given:
        if not isinstance(name, str):
            raise InvalidInput(f"A setting's name is a text, not {name!r:.60}.")
    size = len(json.dumps({name: value for name, value in given.items() if name not in NAMES}, ensure_ascii=False))
    if size > LARGEST_SETTINGS:
        raise InvalidInput(
            f"Settings of one's own may have {LARGEST_SETTINGS:,} characters of JSON, and these have {size:,}. "
            "Keep what is large in messages, or in a store of your own."
        )


def check_settings(given: Mapping[str, Any]) -> Json:
    """Give a conversation's settings as they are kept; None takes one away. Other names than memstore's are free.

    Raises `InvalidInput` for a value that cannot be, and for a name that is nearly one of memstore's.
    """
    for name in given:
        known = (*NAMES, KEPT_FOR)
        near = [] if name in known else get_close_matches(str(name), known, n=1, cutoff=MISSPELT)
        if near:
            raise InvalidInput(f"A conversation has no setting {name!r}; did you mean {near[0]!r}?")
    if CLEARED in given:
        raise InvalidInput(f"{CLEARED!r} is what clear() keeps with the conversation; call that.")
    return {name: _checked(str(name), value) for name, value in given.items()}


def _checked(name: str, value: Any) -> Any:
    if name == STRATEGIES:
        return None if value is None else as_json(value)
    if value is None:
        return None
    if name == KEPT_FOR:
        return validate_days(value)
    if name == SECTIONS:
        return sections.as_json(value)
    if name in (BUDGET, RESERVE):
        least = 1 if name == BUDGET else 0
        if type(value) is not int or not least <= value <= LARGEST_BUDGET:
            raise InvalidInput(f"{name}={value!r:.60}: give a whole number of tokens from {least} to 10**9.")
    elif name == VIEWER:
        check_name(value, name)
    elif name == VISIBILITY:
        _check_rule(value)
    return value


def _check_rule(value: object) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{VISIBILITY}={value!r:.60}: a rule is kept by its name; give a function to context().")
    try:
        rule_of(value)
    except MemstoreError as error:
        raise InvalidInput(str(error)) from None
