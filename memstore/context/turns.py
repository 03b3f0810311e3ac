"""Recent messages as turns: what must stay together does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memstore.models import Message, Role


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages that go into a context together or not at all: one, or a call of tools with all its results."""

    messages: tuple[Message, ...]

    @property
    def first_seq(self) -> int:
        """The number of its first message."""
        return self.messages[0].seq


def turns(messages: Sequence[Message]) -> tuple[list[Turn], list[Message]]:
    """Cut a conversation's messages, in order, into turns; give those and the messages that no API would accept.

    Every chat API rejects a tool's result without its call and a call without all its results.
    """
    found: list[Turn] = []
    refused: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        results = _results(messages, position) if message.tool_calls else []
        if message.role == Role.TOOL or (message.tool_calls and not _complete(message, results)):
            refused += [message, *results]
        else:
            found.append(Turn((message, *results)))
        position += 1 + len(results)
    return found, refused


def _results(messages: Sequence[Message], call: int) -> list[Message]:
    results = []
    for message in messages[call + 1 :]:
        if message.role != Role.TOOL:
            break
        results.append(message)
    return results


def _complete(call: Message, results: Sequence[Message]) -> bool:
    """Every call is answered and nothing else is: by id where calls have ids, else by number."""
    asked = [one.get("id") for one in call.tool_calls or ()]
    answered = [message.tool_call_id for message in results]
    if None in asked or None in answered:
        return len(asked) == len(answered)
    return set(asked) == set(answered) and len(answered) == len(asked)
