"""What providers that ask a server share: asking again, the server's own wait, and answers read as a schema."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

from pydantic import ValidationError

from memstore.errors import ModelAnswerInvalid, ModelUnavailable
from memstore.providers import Completion, T

R = TypeVar("R")
Prompt = list[dict[str, str]]

TRIES = 4
FEEDBACK = 500  # bytes of what is wrong with an answer, to be kept free in the window for the second try

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


class TransientError(Exception):
    """A failure that may pass, and the seconds to wait for that where the server says so."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Retries:
    """Asks a service again for what may pass: `TRIES` times within `seconds`, with pauses that grow from `backoff`.

    Pauses double and differ by chance, or are as long as the server asks for.
    """

    service: str  # as it is called in errors
    seconds: float
    backoff: float

    def run(self, call: Callable[[float], R]) -> R:
        """Return what `call` does within the seconds that it is given; raise `ModelUnavailable` after the last try."""
        end = time.monotonic() + self.seconds
        for attempt in count(1):
            try:
                return call(max(0.001, end - time.monotonic()))
            except TransientError as failure:
                self.pause(attempt, failure, end)
        raise AssertionError("count() has no end")

    def pause(self, attempt: int, failure: TransientError, end: float) -> None:
        """Wait for the next attempt; raise `ModelUnavailable` where there is none, or not before the end."""
        growing = self.backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        wait = growing if failure.wait is None else failure.wait
        if attempt == TRIES or time.monotonic() + wait >= end:
            raise ModelUnavailable(f"{self.service} is away: {failure}") from failure
        time.sleep(wait)


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After asks for, by number or by date; None where it says nothing of use."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What a model has said, whether it came to its end, and what it cost."""

    text: str
    is_whole: bool
    prompt_tokens: int
    completion_tokens: int


class UnusableAnswer(Exception):
    """An answer that is not what was asked for; the message tells the model what is wrong with it."""


def complete(model: str, prompt: Prompt, schema: type[T], ask: Callable[[Prompt], RawAnswer]) -> Completion[T]:
    """Return the answer that `ask` has to a prompt, as `schema`; ask once more, with what was wrong, where it is none.

    Raises `ModelAnswerInvalid` where the second answer cannot be used either.
    """
    first = ask(prompt)
    try:
        return Completion(parse_answer(first, schema), first.prompt_tokens, first.completion_tokens)
    except UnusableAnswer as wrong:
        second = ask(_with_feedback(prompt, str(wrong)))
    spent = first.prompt_tokens + second.prompt_tokens, first.completion_tokens + second.completion_tokens
    try:
        return Completion(parse_answer(second, schema), *spent, calls=2)
    except UnusableAnswer as wrong:
        raise ModelAnswerInvalid(
            f"{model} answered twice with what cannot be used: {wrong} A larger model may do better.",
            second.text,
            *spent,
            calls=2,
        ) from None


def parse_answer(answer: RawAnswer, schema: type[T]) -> T:
    """Return what the answer holds. Words or a fence around the JSON are forgiven: some models ignore the schema."""
    if not answer.is_whole:
        raise UnusableAnswer(f"It was cut off after {answer.completion_tokens} tokens: give less.")
    text = _THOUGHT.sub("", answer.text)
    start, stop = text.find("{"), text.rfind("}")
    if start < 0 or stop < start:
        raise UnusableAnswer("It holds no JSON object.")
    try:
        return schema.model_validate_json(text[start : stop + 1])
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}".removeprefix(": ") for e in error.errors()]
        raise UnusableAnswer("; ".join(wrong[:5])[:300] + ".") from None


def _with_feedback(prompt: Prompt, wrong: str) -> Prompt:
    # In the last message: some templates refuse two of one role.
    more = f"\n\nAn earlier answer to this could not be used. {wrong} Answer anew, with the JSON object alone."
    kept = more.encode("utf-8", "replace")[:FEEDBACK].decode("utf-8", "ignore")
    *others, last = prompt
    return [*others, last | {"content": last["content"] + kept}]
