"""Calls of tools and their results as the formats of chat need them: with ids. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memstore.models import Json, Message, Role


def identified(messages: Sequence[Message]) -> list[Json]:
    """Give a turn's messages as they were stored; calls and results without an id get one, from the call's number.

    A server that gives no ids (Ollama's of old) pairs them by their order, and so is it done here.
    """
    found = [message.as_chat() for message in messages]
    calls = messages[0].tool_calls if messages else None
    if not calls:
        return found
    results = [one for one in found if one["role"] == Role.TOOL]
    if len(calls) != len(results):
        return found
    known = [call.get("id") for call in calls], [result.get("tool_call_id") for result in results]
    if None not in known[0] and None not in known[1]:
        return found
    fresh = [f"call_{messages[0].seq}_{number}" for number in range(1, len(calls) + 1)]
    ids = [call or result or new for call, result, new in zip(*known, fresh, strict=True)]
    found[0] = found[0] | {"tool_calls": [call | {"id": id} for call, id in zip(calls, ids, strict=True)]}
    for place, (result, id) in enumerate(zip(results, ids, strict=True), len(found) - len(results)):
        found[place] = result | {"tool_call_id": id}
    return found
