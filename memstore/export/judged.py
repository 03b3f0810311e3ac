"""What a line says, judged: beside what is stored (None where they are the same), and whether it can be used. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memstore.context.defaults import STRATEGIES, VISIBILITY, check_settings, check_size
from memstore.errors import InvalidInput
from memstore.models import Conversation, FactColumns, Json, Message, Summary
from memstore.store.archived import KnownFact, Whole
from memstore.store.fact_changes import recorded
from memstore.store.messages import CLEARED

STAYS = "what is stored stays as it is"
SAID = (
    "conversation_id",
    "seq",
    "role",
    "name",
    "content",
    "tool_calls",
    "tool_call_id",
    "tags",
    "meta",
    "external_id",
    "occurred_at",
)
SUMMED = ("text", "tokens", "counter", "occurred_at", "occurred_until")


def of_message(stored: Message, given: Message) -> str | None:
    """Say where a stored message differs from one of the same id. Tokens may be another counter's."""
    return _told("message", _differing(stored, given, SAID))


def of_summary(stored: Summary, given: Summary) -> str | None:
    """Say where a stored summary differs from one of the same id."""
    return _told("summary", _differing(stored, given, SUMMED))


def of_conversation(stored: Conversation, given: Conversation) -> str | None:
    """Say where a stored conversation differs from one of the same name."""
    return _told("conversation", _differing(stored, given, ("title", "channel", "settings")))


def of_fact(stored: KnownFact, given: Whole) -> str | None:
    """Say where a stored fact differs from one of the same id; one that went on from there does not."""
    changes = {change["id"] for change in given.history}
    if not changes <= stored.changes:
        return _told("fact", ["history"])
    if changes < stored.changes:
        return None
    was, told = _columns(stored.fact), _columns(given.fact)
    return _told("fact", [name for name in was if was[name] != told[name]])


def _columns(fact: FactColumns) -> Json:
    return recorded(fact) | {"confidence": np.float32(fact.confidence)}


def _differing(stored: Any, given: Any, names: Sequence[str]) -> list[str]:
    return [name for name in names if getattr(stored, name) != getattr(given, name)]


def _told(kind: str, names: Sequence[str]) -> str | None:
    return f"the {kind} is known with another {', another '.join(names)}; {STAYS}" if names else None


def usable(settings: Json) -> tuple[Json, list[str]]:
    """Give those of a conversation's settings that can be used, and of the others what is wrong with them.

    Strategies and rules that are not known here stay: contexts leave the ones out, and are refused for the others.
    """
    found: Json = {}
    wrong: list[str] = []
    for name, value in settings.items():
        try:
            _check_setting(name, value)
            found[name] = value
        except InvalidInput as error:
            wrong.append(f"its setting {name!r:.60} is left out: {error}")
    try:
        check_size(found)
    except InvalidInput as error:
        return {}, [*wrong, f"its settings are left out: {error}"]
    return found, wrong


def _check_setting(name: str, value: object) -> None:
    if name == CLEARED:
        if type(value) is not int or value < 0:
            raise InvalidInput("it is the number of a message.")
    elif name != STRATEGIES and not (name == VISIBILITY and isinstance(value, str)):
        check_settings({name: value})
