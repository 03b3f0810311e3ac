"""What other assistants say, as a viewer's model hears it: from others, never as words of its own. Pure.

A chat knows two sides. A model takes whatever stands under the role assistant for what it has said itself, and goes on
in that voice: so another assistant's message is a user's to it, with the speaker's name before the words. What another
one did with tools is told in words, because no API takes calls from a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memstore.context.formats.parts import OtherAssistantMessage, content_parts
from memstore.context.turns import Turn
from memstore.context.visibility import same_name
from memstore.models import Json, Message, Role
from memstore.tool_calls import arguments_text, describe_call, describe_result, name_of

NOBODY = "another assistant"  # one without a name
PREFIX = 2  # tokens of what is before the words, about, besides one for four letters of the name


def heard_turns(turns: Iterable[Turn], viewer: str | None) -> list[Turn]:
    """Give turns as the viewer hears them; as they are where there is no viewer."""
    return list(turns) if viewer is None else [heard(turn, viewer) for turn in turns]


def heard(turn: Turn, viewer: str) -> Turn:
    """Give a turn as the viewer hears it: another assistant's as a user's, its calls and their results in words."""
    first = turn.messages[0]
    if first.role != Role.ASSISTANT or same_name(first.name, viewer):
        return turn
    tools = {call.get("id"): name_of(call) for call in first.tool_calls or ()}
    name = first.name or NOBODY
    return replace(turn, messages=tuple(_heard(one, name, tools.get(one.tool_call_id)) for one in turn.messages))


def _heard(message: Message, name: str, tool: str | None) -> Message:
    own: Json = {"role": str(Role.USER), "name": name, "tool_calls": None, "tool_call_id": None}
    own |= {"tokens": message.tokens + PREFIX + len(name) // 4}
    if message.role == Role.TOOL:
        opening, calls = f"{describe_result(tool or message.name)}\n", []
    else:
        opening, calls = "", [describe_call(name_of(call), arguments_text(call)) for call in message.tool_calls or ()]
    if opening or calls:
        own |= {"counter": ""}  # its text is another one than was counted
    if message.parts is None:
        text = "\n".join(filter(None, [f"{opening}{message.text or ''}", *calls]))
        return OtherAssistantMessage.model_construct(**(vars(message) | own | {"text": text}))
    before, after = ([{"type": "text", "text": text} for text in texts if text] for texts in ([opening.strip()], calls))
    return OtherAssistantMessage.model_construct(
        **(vars(message) | own | {"parts": [*before, *_kept(message.parts), *after]})
    )


def _kept(parts: list[Json]) -> Iterator[Json]:
    """Give the parts that a user may send, texts as a user's; what another model thought it did not say."""
    for one in content_parts(parts):
        if one.kind != "thought":
            yield {"type": "text", "text": one.text} if one.kind == "text" else one.raw
