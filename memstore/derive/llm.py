"""What the derivers that ask a chat model share: prompts, messages fenced as data, and texts cut to fit. Pure.

A message goes to the model as a line of JSON, out of which no text can break.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any
from uuid import UUID

from memstore.derive.chunks import chunks
from memstore.errors import ModelAnswerInvalid, PromptTooLong
from memstore.models import Message, Role
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.text import json_line

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LEAST_ROOM = 64  # tokens of text to a call; a window with less room than that is too small for the prompt


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt from `memstore/derive/prompts`. `digest` are 12 hex digits of the SHA-256 of its file."""

    text: str
    digest: str

    def filled(self, **values: object) -> str:
        """Give the text with these values for its $names."""
        return Template(self.text).substitute(values)


@dataclass(frozen=True, slots=True)
class Passage:
    """A line of what the model is shown: a message, a summary, or a part of one that begins at `start` characters."""

    item_id: UUID
    speaker: str
    role: str
    said: datetime
    text: str
    start: int = 0


@cache
def prompt(name: str) -> Prompt:
    """Give the prompt of this name. Line ends do not count in its digest: a checkout may change them."""
    text = (files("memstore.derive") / "prompts" / f"{name}.md").read_text(encoding="utf-8").replace("\r\n", "\n")
    return Prompt(text, sha256(text.encode()).hexdigest()[:12])


def recipe(deriver: str, version: int, model: ChatModel, used: Prompt) -> str:
    """Give what the rows of a deriver are kept under: another model or another prompt is another recipe."""
    return f"{deriver}/{version}/{model.name}/{used.digest}"


def passages(stretch: Sequence[Message], trusted: Collection[str]) -> list[Passage]:
    """Give what the model is shown: the words of users, of assistants, and of roles that are trusted beside them."""
    shown = {Role.USER, Role.ASSISTANT, *trusted}
    return [
        Passage(each.id, each.name or f"the {each.role}", each.role, each.occurred_at, each.text)
        for each in stretch
        if each.role in shown and each.text and each.text.strip()
    ]


def chat(system: str, shown: Sequence[Passage]) -> list[ChatMessage]:
    """Give the chat that asks about these passages: they are numbered from 1."""
    lines = [_line(number, passage) for number, passage in enumerate(shown, 1)]
    data = "\n".join(["The messages:", *lines, "That were the messages. Answer with the JSON object."])
    return [{"role": "system", "content": system}, {"role": "user", "content": data}]


def _line(number: int, passage: Passage) -> str:
    fields = {
        "message": number,
        "day": f"{passage.said.date().isoformat()} {WEEKDAYS[passage.said.weekday()]}",
        "from": passage.speaker,
        "text": passage.text,
    }
    return json_line(fields)


def windows(system: str, shown: Sequence[Passage], model: ChatModel, max_tokens: int) -> list[list[Passage]]:
    """Give the passages in rows that fit into one call each, answer included; a long one is cut between sentences.

    Raises PromptTooLong where the window leaves less than `LEAST_ROOM` tokens for text.
    """
    room = model.context_tokens - max_tokens
    if room - model.max_prompt_tokens(chat(system, [])) < LEAST_ROOM:
        raise PromptTooLong(
            f"{model.name} has a window of {model.context_tokens} tokens: the prompt and an answer of {max_tokens} "
            "leave no room for messages. Give it a larger window."
        )
    rows: list[list[Passage]] = []
    for passage in shown:
        for part in _parts(passage, system, model, room):
            if rows and model.max_prompt_tokens(chat(system, [*rows[-1], part])) <= room:
                rows[-1].append(part)
            else:
                rows.append([part])
    return rows


def completions(
    model: ChatModel, chats: Sequence[Sequence[ChatMessage]], schema: type[T], max_tokens: int
) -> list[Completion[T]]:
    """Give the answer to each chat; raises what `ChatModel.complete` raises, at the cost of all that was asked."""
    made: list[Completion[T]] = []
    for chat in chats:
        try:
            made.append(model.complete(chat, schema, max_tokens=max_tokens))
        except ModelAnswerInvalid as error:
            calls, prompt_tokens, completion_tokens = spent(made)
            error.calls += calls
            error.prompt_tokens += prompt_tokens
            error.completion_tokens += completion_tokens
            raise
    return made


def spent(made: Sequence[Completion[Any]]) -> tuple[int, int, int]:
    """Give the calls that answers have taken, and their tokens: of the prompts, and of the answers."""
    return (
        sum(one.calls for one in made),
        sum(one.prompt_tokens for one in made),
        sum(one.completion_tokens for one in made),
    )


def _parts(passage: Passage, system: str, model: ChatModel, room: int) -> list[Passage]:
    """Give the passage, or where it alone is too long its parts."""

    def cost(text: str) -> int:
        return model.max_prompt_tokens(chat(system, [replace(passage, text=text)])) - frame

    frame = 0
    frame = cost("")  # what is around the text
    if cost(passage.text) <= room - frame:
        return [passage]
    spans = chunks(passage.text, max(1, room - frame), cost, 0)
    return [replace(passage, start=start, text=passage.text[start:stop]) for start, stop in spans]
