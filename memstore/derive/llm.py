"""Shared by derivers that ask a chat model: prompts, messages fenced as data, texts split to fit, and costs.

A message goes to the model as a line of JSON, which no text can break out of.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from threading import Lock
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator

from memstore import ids
from memstore.derive.chunking import split_text
from memstore.errors import ModelAnswerInvalid, ModelUnavailable, PromptTooLong
from memstore.models import CallProgress, InvalidResponse, Message, Role, Usage
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.text import json_line, replace_invalid_chars

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MIN_TEXT_TOKENS = 64


_DAY = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt from `memstore/derive/prompts`. `digest` are 12 hex digits of the SHA-256 of its file."""

    text: str
    digest: str

    def fill(self, **values: object) -> str:
        return Template(self.text).substitute(values)


@cache
def load_prompt(name: str) -> Prompt:
    """Return the prompt of this name. Line ends do not count in its digest: a checkout may change them."""
    text = (files("memstore.derive") / "prompts" / f"{name}.md").read_text(encoding="utf-8").replace("\r\n", "\n")
    return Prompt(text, sha256(text.encode()).hexdigest()[:12])


def make_recipe(deriver: str, version: int, model: ChatModel, prompt: Prompt) -> str:
    """Return the recipe of rows by a model: another model or another prompt is another recipe."""
    return f"{deriver}/{version}/{model.name}/{prompt.digest}"


@dataclass(frozen=True, slots=True)
class Passage:
    """A line of the prompt: a message, a summary, or a part of one that begins at `start` characters."""

    item_id: UUID
    speaker: str
    role: str
    said: datetime
    text: str
    start: int = 0


def make_passages(segment: Sequence[Message], trusted: Collection[str] = ()) -> list[Passage]:
    """Return the words of users, of assistants, and of other trusted roles."""
    roles = {Role.USER, Role.ASSISTANT, *trusted}
    return [
        Passage(message.id, message.name or f"the {message.role}", message.role, message.occurred_at, message.text)
        for message in segment
        if message.role in roles and message.text and message.text.strip()
    ]


def make_chat(system: str, passages: Sequence[Passage], background: Sequence[str] = ()) -> list[ChatMessage]:
    """Return the chat that asks about these passages, numbered from 1. `background` are lines that stand before them.

    A line has its day where that differs from the line before.
    """
    lines, day = [], ""
    for number, passage in enumerate(passages, 1):
        fields: dict[str, object] = {"message": number}
        if (said := write_day(passage.said)) != day:
            fields["day"] = day = said
        lines.append(json_line(fields | {"from": passage.speaker, "text": passage.text}))
    data = "\n".join([*background, "The messages:", *lines, "Those were the messages. Answer with the JSON object."])
    return [{"role": "system", "content": system}, {"role": "user", "content": data}]


def write_day(moment: datetime) -> str:
    """Return a day as prompts write it: 2026-03-02 Monday."""
    return f"{moment.date().isoformat()} {WEEKDAYS[moment.weekday()]}"


def read_day(written: str | None, said: datetime) -> datetime | None:
    """Return the start of a day, month or year that the model wrote; None for anything else and for far away years."""
    match = _DAY.match((written or "").strip())
    if not match:
        return None
    year, month, day = (int(number or 1) for number in match.groups())
    # 9999 means for ever, and 1 no year.
    if abs(year - said.year) > 150:
        return None
    try:
        return datetime(year, month, day, tzinfo=said.tzinfo)
    except ValueError:
        return None


ChatMaker = Callable[[Sequence[Passage]], list[ChatMessage]]


def split_to_window(
    make: ChatMaker, passages: Sequence[Passage], model: ChatModel, max_tokens: int
) -> list[list[Passage]]:
    """Return the passages in groups that fit into one call each, answer included; long ones are cut between sentences.

    `make` returns the chat about a group. Raises `PromptTooLong` if the window leaves less than `MIN_TEXT_TOKENS` for
    text.
    """
    room = model.context_tokens - max_tokens
    if room - model.max_prompt_tokens(make([])) < MIN_TEXT_TOKENS:
        raise PromptTooLong(
            f"{model.name} has a window of {model.context_tokens} tokens: the prompt and an answer of {max_tokens} "
            "leave no room for messages. Give it a larger window."
        )
    groups: list[list[Passage]] = []
    for passage in passages:
        for part in _split_passage(passage, make, model, room):
            if groups and model.max_prompt_tokens(make([*groups[-1], part])) <= room:
                groups[-1].append(part)
            else:
                groups.append([part])
    return groups


def _split_passage(passage: Passage, make: ChatMaker, model: ChatModel, room: int) -> list[Passage]:
    def cost(text: str) -> int:
        return model.max_prompt_tokens(make([replace(passage, text=text)]))

    frame = cost("")
    if cost(passage.text) <= room:
        return [passage]
    spans = split_text(passage.text, max(1, room - frame), lambda text: cost(text) - frame, 0)
    return [replace(passage, start=start, text=passage.text[start:stop]) for start, stop in spans]


def _strip(text: str) -> str:
    # Postgres cannot keep NUL.
    if not (words := text.replace("\0", " ").strip()):
        raise ValueError("it is blank")
    return words


NotBlank = Annotated[str, AfterValidator(_strip)]


class CallMeter:
    """Counts what calls of chat models cost, by deriver and model, and calls `show` as each begins and as it ends.

    `left` are the tokens that they may still use today; None for any number. Threads share it.
    """

    def __init__(self, show: Callable[[CallProgress], None] = lambda _: None) -> None:
        self.show = show
        self.left: int | None = None
        self.usage: dict[tuple[str, str], Usage] = {}
        self._asked: list[float] = []
        self._lock = Lock()

    def check(self) -> None:
        """Raise `ModelUnavailable` if the day's tokens are used up: pending work waits, as for a model away."""
        if self.left is not None and self.left <= 0:
            raise ModelUnavailable(
                "The tokens that chat models may use in a day are used up; pending messages wait for tomorrow (UTC). "
                "MEMSTORE_LLM_DAILY_TOKENS sets their number."
            )

    def begin(self, call: Usage) -> float:
        """Record that a call begins; return when."""
        began = time.monotonic()
        with self._lock:
            self._asked.append(began)
            self._add(call, has_ended=False)
        return began

    def end(self, began: float, call: Usage) -> None:
        """Record the cost of a call that began then."""
        with self._lock:
            self._asked.remove(began)
            if self.left is not None:
                self.left -= call.prompt_tokens + call.completion_tokens
            self._add(call, has_ended=True)

    def _add(self, call: Usage, *, has_ended: bool) -> None:
        key = call.deriver, call.model
        self.usage[key] = total = self.usage.get(key, Usage(*key)).plus(call)
        self.show(CallProgress(total, has_ended, min(self._asked, default=None)))


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A request about a range of a conversation, by a deriver and its recipe; `part` tells two answers to it apart."""

    conversation_id: UUID
    deriver: str
    from_seq: int
    to_seq: int
    recipe: str
    part: str = ""

    @property
    def id(self) -> UUID:
        """The id of the invalid response to this request: repeated, it is the same one."""
        return ids.invalid_response_id(
            self.conversation_id, self.deriver + self.part, self.from_seq, self.to_seq, self.recipe
        )


def usage_of(
    call: Usage,
    answer: Completion[Any] | ModelAnswerInvalid,
    began: float,
    price: tuple[float, float] | None = None,
) -> Usage:
    """Return the cost of a call that began then and was answered now, also if the answer cannot be used."""
    prompt, completion = answer.prompt_tokens, answer.completion_tokens
    cost = price and (prompt * price[0] + completion * price[1]) / 1e6
    return Usage(call.deriver, call.model, answer.calls, prompt, completion, time.monotonic() - began, cost)


class CallsLost(Exception):
    """A batch failed with `error` after calls for it, whose cost counts all the same."""

    def __init__(self, llm_session: LLMSession, error: Exception) -> None:
        super().__init__(str(error))
        self.llm_session, self.error = llm_session, error


@dataclass(slots=True)
class LLMSession:
    """A deriver's calls for a batch: their cost, and the responses that could not be used.

    `price` is of a million tokens of prompts and of answers.
    """

    model: ChatModel
    meter: CallMeter
    deriver: str
    price: tuple[float, float] | None = None
    usage: Usage = field(default_factory=lambda: Usage("", ""))
    invalid_responses: list[InvalidResponse] = field(default_factory=list)

    def complete(self, chat: Sequence[ChatMessage], schema: type[T], max_tokens: int) -> Completion[T]:
        """Return the model's answer. Its cost is counted, also if it cannot be used.

        Raises what `ChatModel.complete` raises, and `ModelUnavailable` if the day's tokens are used up.
        """
        self.meter.check()
        call = Usage(self.deriver, self.model.name)
        began = self.meter.begin(call)
        try:
            answer = self.model.complete(chat, schema, max_tokens=max_tokens)
            call = usage_of(call, answer, began, self.price)
            return answer
        except ModelAnswerInvalid as error:
            call = usage_of(call, error, began, self.price)
            raise
        finally:
            # First: who is shown the call may raise.
            self.usage = self.usage.plus(call)
            self.meter.end(began, call)

    def reject(self, request: LLMRequest, error: str, payload: str) -> None:
        """Record an answer, or a part of one, that cannot be used."""
        self.invalid_responses.append(
            InvalidResponse.model_construct(
                id=request.id,
                conversation_id=request.conversation_id,
                deriver=request.deriver,
                from_seq=request.from_seq,
                to_seq=request.to_seq,
                recipe=request.recipe,
                error=replace_invalid_chars(error),
                payload=replace_invalid_chars(payload[:100_000]),
            )
        )
