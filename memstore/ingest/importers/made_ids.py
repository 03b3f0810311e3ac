"""Ids for what brings none: they follow from what is said, so that a second import meets the first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from .scratch import Occurrences

SAID = ("role", "name", "content", "tool_calls", "tool_call_id", "occurred_at")


def made_id(user: str | None, conversation: str, message: Mapping[str, Any], seen: Occurrences) -> str:
    """Give an id that follows from the message and from how many equal ones came before it."""
    said = [message.get(key) for key in SAID]
    place = json.dumps([conversation, said], sort_keys=True, default=str)
    # The user counts but is no part of the id: a file has the same ids whether it or the caller names the user.
    count = seen.count(json.dumps([user, place]))
    return "line:" + sha256(json.dumps([place, count]).encode()).hexdigest()


def made_name(messages: object, kind: str, seen: Occurrences) -> str:
    """Give a name that follows from a conversation's messages, and from how many equal ones came before it."""
    name = digest(messages)
    count = seen.count(name)
    return f"{kind}-{name}" + (f"-{count}" if count > 1 else "")


def digest(value: object) -> str:
    """Give a short name that follows from JSON: 20 hexadecimal digits."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]
