"""Summaries that a chat model writes, held to their length. Pure but for the model's call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel

from memstore.derive import llm
from memstore.derive.llm import Passage, completions, passages, spent, windows
from memstore.derive.sentences import sentences
from memstore.derive.summaries.lines import NOTHING
from memstore.errors import ModelAnswerInvalid
from memstore.models import Message, Summary
from memstore.providers import ChatModel

VERSION = 1
WORDS = 0.6  # words that are asked for, to a token that is allowed: English has 0.75, most languages less
SLACK = 64  # tokens around the summary in an answer
LEAST = 24  # tokens of a part's summary; with more parts than that allows, the last ones are cut off


def _not_blank(text: str) -> str:
    if not (words := text.replace("\0", " ").strip()):  # Postgres cannot keep NUL
        raise ValueError("it is blank")
    return words


class _Summary(BaseModel):
    summary: Annotated[str, AfterValidator(_not_blank)]


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A summary that a model wrote, and the calls with their cost in the model's tokens."""

    text: str
    calls: int
    prompt_tokens: int
    completion_tokens: int


def recipe(model: ChatModel) -> str:
    """Give what the summaries of this model are kept under. Raises ModelUnavailable where its server is away."""
    return llm.recipe("llm-summary", VERSION, model, llm.prompt("summary"))


def summary_of(
    stretch: Sequence[Message],
    model: ChatModel,
    max_tokens: int,
    count: Callable[[str], int],
    *,
    trusted: Collection[str] = (),
) -> WrittenSummary | None:
    """Give a summary of a stretch of a conversation, of at most `max_tokens` tokens of `count`; None of no words.

    A stretch that is longer than the model's window is summarized in parts, which share the tokens. `trusted` are
    roles that are shown beside users and assistants. A summary that is too long ends after the last sentence that
    fits; raises ModelAnswerInvalid where not even the first one does, and whatever `ChatModel.complete` raises.
    """
    return _written(passages(stretch, trusted), model, max_tokens, count)


def summary_of_summaries(
    below: Sequence[Summary], model: ChatModel, max_tokens: int, count: Callable[[str], int]
) -> WrittenSummary | None:
    """Give a summary of summaries, as `summary_of` does of messages."""
    shown = [
        Passage(each.id, "a summary", "summary", each.occurred_at, each.text) for each in below if each.text != NOTHING
    ]
    return _written(shown, model, max_tokens, count)


def _written(
    shown: Sequence[Passage], model: ChatModel, max_tokens: int, count: Callable[[str], int]
) -> WrittenSummary | None:
    if not shown:
        return None
    most = 2 * max_tokens + SLACK  # the model's tokens may be shorter than the counter's
    rows = windows(_system(max_tokens), shown, model, most)
    share = max(LEAST, max_tokens // len(rows))
    made = completions(model, [llm.chat(_system(share), row) for row in rows], _Summary, 2 * share + SLACK)
    calls, prompt_tokens, completion_tokens = spent(made)
    written = "\n".join(" ".join(each.answer.summary.split()) for each in made)
    text = shortened(written, max_tokens, count)
    if not text:
        raise ModelAnswerInvalid(
            f"{model.name} wrote a first sentence of more than {max_tokens} tokens. A larger model may do better.",
            written,
            prompt_tokens,
            completion_tokens,
            calls,
        )
    return WrittenSummary(text, calls, prompt_tokens, completion_tokens)


def _system(tokens: int) -> str:
    return llm.prompt("summary").filled(words=max(10, round(tokens * WORDS)))


def shortened(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """Give the text up to the last sentence with which it has at most `max_tokens` tokens; "" where none fits."""
    if count(text) <= max_tokens:
        return text
    stops = [stop for _, stop in sentences(text)]
    while stops and count(text[: stops[-1]]) > max_tokens:
        stops.pop()
    return text[: stops[-1]] if stops else ""
