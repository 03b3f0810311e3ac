"""Days and speakers, put before what users said in formats that have no place of their own for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memstore.assemble.render.chosen import Part
from memstore.assemble.render.content import prefixed
from memstore.assemble.render.labels import label
from memstore.models import Message, Role
from memstore.times import day


class Heard(Message):
    """A message of another assistant's, as the viewer of a context hears it: a user's. Its speaker is always told."""


def marked(parts: Iterable[Part], *, dates: bool, speakers: bool) -> Iterator[Part]:
    """Give the parts; a user's message tells its speaker, and the first one of a day that day.

    Without `speakers` only other assistants are told: their words must not pass for the user's.
    Only what users said is marked: a model that sees its own words marked begins to write such marks.
    """
    last = None
    for part in parts:
        prefix = ""
        if dates and part.stored is not None and part.role == Role.USER:
            today = day(part.stored.occurred_at)
            prefix = f"[{today}]\n" if today != last else ""
            last = today
        told = speakers or isinstance(part.stored, Heard)
        if told and part.role == Role.USER and part.message.get("name"):
            prefix += f"{label(Role.USER, part.message['name'])}: "
        yield replace(part, message=_marked(part, prefix)) if prefix else part


def _marked(part: Part, prefix: str) -> dict[str, object]:
    return part.message | {"content": prefixed(part.message.get("content"), prefix)}
