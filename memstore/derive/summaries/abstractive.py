"""Abstractive summaries: a chat model is asked for each range. Where its answer is of no use, sentences are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memstore.derive.asked import Asked, Inquiry
from memstore.derive.resources import Resources
from memstore.derive.summaries import llm_summary
from memstore.derive.summaries.extractive import ExtractiveSummarizer
from memstore.derive.summaries.llm_summary import WrittenSummary
from memstore.derive.summaries.nest import Range
from memstore.models import Summary
from memstore.providers import ChatModel

MESSAGES = 64  # thought about at once: what is lost when the model goes away in the middle


def inquiry_of(one: Range, recipe: str) -> Inquiry:
    """Give what a model is asked about: a range of the nest, or (level 0) one that somebody wants a summary of."""
    return Inquiry(one.conversation_id, "summarize" if one.level else "summary", one.from_seq, one.to_seq, recipe)


class AbstractiveSummarizer:
    """Makes summaries by asking a chat model."""

    batch = MESSAGES
    asks = True

    def __init__(self, resources: Resources, model: ChatModel) -> None:
        self.resources, self.model = resources, model
        self.extractive = ExtractiveSummarizer(resources)

    @property
    def recipe(self) -> str:
        """The model and its prompt. Raises `ModelUnavailable`."""
        return llm_summary.recipe(self.model)

    def asked(self) -> Asked:
        """Give a new account of what is asked for one conversation."""
        return Asked(self.model.name, self.resources.allowance)

    def summarize(self, ranges: Sequence[Range], tokens: int, asked: Sequence[Asked | None]) -> list[Summary]:
        """Give a summary of at most `tokens` tokens for each range, or for the first ones, where another one fails.

        Raises `ModelUnavailable`, and whatever else stops it, where that is so at once: what was paid for is kept.
        """
        made: list[Summary] = []
        for one, account in zip(ranges, asked, strict=True):
            try:
                made.append(self._summary(one, tokens, account or self.asked()))
            except Exception:  # what was paid for before is kept, and what fails here is asked again next time
                if not made:
                    raise
                break
        return made

    def _summary(self, one: Range, tokens: int, asked: Asked) -> Summary:
        recipe = self.recipe
        inquiry = inquiry_of(one, recipe)
        answer = asked.ask(inquiry, partial(self._answer, one, tokens)) if one.messages or one.below else None
        if answer is None:  # of no use, or there were no words, or too many to be held
            return self.extractive.summarize([one], tokens)[0]
        return one.summary(answer.text, recipe, self.resources)

    def _answer(self, one: Range, tokens: int) -> WrittenSummary | None:
        count = self.resources.counter.count
        if one.below:
            return llm_summary.summary_of_summaries(one.below, self.model, tokens, count)
        return llm_summary.summary_of(one.messages, self.model, tokens, count)
