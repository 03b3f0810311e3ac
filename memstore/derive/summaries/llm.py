"""Summaries that a chat model writes, held to their length. If an answer is of no use, sentences are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pydantic import BaseModel

from memstore.derive import llm
from memstore.derive.dependencies import Dependencies
from memstore.derive.summaries.extractive import (
    EMPTY_SUMMARY,
    MAX_VERBATIM_TOKENS,
    ExtractiveSummarizer,
    Segment,
    summary_limit,
)
from memstore.errors import ModelAnswerInvalid
from memstore.language.sentences import sentences
from memstore.models import Summary
from memstore.providers import ChatModel

VERSION = 1
ANSWER_FRAME_TOKENS = 64


class LLMSummarizer:
    # What is lost when this is killed.
    batch_size = 64
    uses_llm = True

    def __init__(self, dependencies: Dependencies, model: ChatModel) -> None:
        self.dependencies, self.model = dependencies, model
        self.extractive = ExtractiveSummarizer(dependencies.counter, dependencies.settings)

    @property
    def recipe(self) -> str:
        """The model and its prompt. Raises `ModelUnavailable`."""
        return llm.make_recipe("llm-summary", VERSION, self.model, llm.load_prompt("summary"))

    def start_session(self) -> llm.LLMSession:
        return self.dependencies.start_session(self.model, "summaries")

    def summarize(self, segments: Sequence[Segment], session: llm.LLMSession | None) -> Iterator[Summary]:
        for segment in segments:
            recipe, text = self.recipe, None
            # What is short is its own summary; very many messages are summarized by their sentences.
            if session and segment.tokens > MAX_VERBATIM_TOKENS and len(segment.messages) <= 512:
                passages = [
                    llm.Passage(summary.id, "a summary", "summary", summary.occurred_at, summary.text)
                    for summary in segment.below
                    if summary.text != EMPTY_SUMMARY
                ]
                passages = passages if segment.below else llm.make_passages(segment.messages)
                limit = summary_limit(segment, self.dependencies.settings)
                try:
                    text = write_summary(passages, session, limit, self.dependencies.counter.count)
                except ModelAnswerInvalid as error:
                    session.reject(make_request(segment, recipe), str(error), error.payload)
            # The answer was of no use, or there were no words.
            if text is None:
                yield from self.extractive.summarize([segment])
            else:
                yield segment.make_summary(text, recipe, self.dependencies.counter)


def make_request(segment: Segment, recipe: str) -> llm.LLMRequest:
    deriver = "summaries" if segment.level else "summary"
    return llm.LLMRequest(segment.conversation_id, deriver, segment.from_seq, segment.to_seq, recipe)


class _Summary(BaseModel):
    summary: llm.NotBlank


def write_summary(
    passages: Sequence[llm.Passage], session: llm.LLMSession, max_tokens: int, count: Callable[[str], int]
) -> str | None:
    """Return a summary of at most `max_tokens` tokens of `count`; None without passages.

    Passages that exceed the model's window are summarized in parts, which share the tokens. A summary that is too long
    ends after the last sentence that fits; raises `ModelAnswerInvalid` if not even the first one does, and whatever
    `LLMSession.complete` raises.
    """
    if not passages:
        return None
    # The model's tokens may be shorter than the counter's.
    limit = 2 * max_tokens + ANSWER_FRAME_TOKENS
    groups = llm.split_to_window(partial(llm.make_chat, _system_prompt(max_tokens)), passages, session.model, limit)
    # With more parts than that allows, the last ones are cut off.
    share = max(24, max_tokens // len(groups))
    chats = [llm.make_chat(_system_prompt(share), group) for group in groups]
    answers = [session.complete(chat, _Summary, 2 * share + ANSWER_FRAME_TOKENS).answer.summary for chat in chats]
    answer = "\n".join(" ".join(summary.split()) for summary in answers)
    text = _truncate_to_sentence(answer, max_tokens, count)
    if not text:
        why = f"{session.model.name} wrote a first sentence of more than {max_tokens} tokens."
        raise ModelAnswerInvalid(f"{why} A larger model may do better.", answer, calls=0)
    return text


def _system_prompt(tokens: int) -> str:
    # English has 0.75 words a token, most languages less.
    return llm.load_prompt("summary").fill(words=max(10, round(tokens * 0.6)))


def _truncate_to_sentence(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    if count(text) <= max_tokens:
        return text
    stops = [stop for _, stop in sentences(text)]
    while stops and count(text[: stops[-1]]) > max_tokens:
        stops.pop()
    return text[: stops[-1]] if stops else ""
